/* Validates a policy table. Its bytes come from an environment that any program may have changed, so every count, offset, enum
 * and terminator is checked here once. The rest of core then reads the table without further checks. */
#include <string.h>

#include "core.h"

static uint32_t crc32_of(const uint8_t *bytes, size_t size) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (UINT32_C(0xEDB88320) & (0U - (crc & 1)));
    }
    return ~crc;
}

struct overlap_view overlap_table_view(const void *table) {
    struct overlap_view view = {.table = table};
    const char *section = (const char *)table + sizeof *view.table;
    view.policies = (const struct overlap_policy *)section;
    section += (size_t)view.table->policy_count * sizeof *view.policies;
    view.rules = (const struct overlap_rule *)section;
    section += (size_t)view.table->rule_count * sizeof *view.rules;
    view.patterns = (const uint32_t *)section;
    section += (size_t)view.table->pattern_count * sizeof *view.patterns;
    view.strings = section;
    return view;
}

static bool span_ok(const struct overlap_table *table, struct overlap_span span) {
    return span.first <= table->pattern_count && span.count <= table->pattern_count - span.first;
}

static bool string_ok(const struct overlap_table *table, uint32_t offset) {
    return offset < table->string_size;
}

static const char *check_policy(const struct overlap_table *table, const struct overlap_policy *policy) {
    if (!string_ok(table, policy->name) || !string_ok(table, policy->hash))
        return "a policy's name lies outside the table";
    if (!span_ok(table, policy->gpus) || !span_ok(table, policy->kernels) || !span_ok(table, policy->libraries) ||
        !span_ok(table, policy->stream_creators) || !span_ok(table, policy->fixed_size))
        return "a policy's patterns lie outside the table";
    if (policy->first_rule > table->rule_count || policy->rule_count > table->rule_count - policy->first_rule)
        return "a policy's rules lie outside the table";
    if (policy->raise_share > OVERLAP_OBSERVED + 100)
        return "a policy raises streams of an impossible share";
    return NULL;
}

static const char *check_rule(const struct overlap_table *table, const struct overlap_rule *rule) {
    if (!span_ok(table, rule->kernels) || !span_ok(table, rule->libraries))
        return "a rule's patterns lie outside the table";
    if (rule->shape > OVERLAP_SHAPE_MAKE_ROOM || rule->when > OVERLAP_WHEN_ALWAYS)
        return "a rule has an unknown shape or time";
    if (rule->shape == OVERLAP_SHAPE_BLOCKS && rule->value == 0)
        return "a rule asks for no blocks";
    if (rule->shape == OVERLAP_SHAPE_PERCENT && (rule->value == 0 || rule->value > 100))
        return "a rule asks for a percentage outside 1 to 100";
    if (rule->keep_at_least > 100)
        return "a rule keeps more than all blocks";
    return NULL;
}

OVERLAP_EXPORT const char *overlap_table_check(const void *bytes, uint64_t size) {
    const struct overlap_table *table = bytes;
    if (size < sizeof *table || size > OVERLAP_TABLE_MAX_SIZE)
        return "the table has an impossible size";
    if (table->magic != OVERLAP_TABLE_MAGIC)
        return "this is not a policy table";
    if (table->version != OVERLAP_ABI_VERSION)
        return "the policy table is of another version of overlap-run";
    if (table->size != size)
        return "the policy table was cut or extended";
    /* 64-bit sums: 32-bit counts times record sizes cannot wrap. */
    uint64_t needed = sizeof *table + (uint64_t)table->policy_count * sizeof(struct overlap_policy) +
                      (uint64_t)table->rule_count * sizeof(struct overlap_rule) +
                      (uint64_t)table->pattern_count * sizeof(uint32_t) + table->string_size;
    if (needed != size || table->string_size == 0)
        return "the sections of the policy table do not add up";
    if (crc32_of((const uint8_t *)bytes + sizeof *table, (size_t)size - sizeof *table) != table->checksum)
        return "the checksum of the policy table is wrong";

    struct overlap_view view = overlap_table_view(bytes);
    if (view.strings[0] != 0 || view.strings[table->string_size - 1] != 0)
        return "the strings of the policy table are not terminated";
    for (uint32_t i = 0; i < table->pattern_count; i++)
        if (!string_ok(table, view.patterns[i]))
            return "a pattern lies outside the table";
    const char *wrong = NULL;
    for (uint32_t i = 0; !wrong && i < table->policy_count; i++)
        wrong = check_policy(table, &view.policies[i]);
    for (uint32_t i = 0; !wrong && i < table->rule_count; i++)
        wrong = check_rule(table, &view.rules[i]);
    return wrong;
}

OVERLAP_EXPORT uint32_t overlap_policy_for(const void *table, const char *device, const char *architecture) {
    struct overlap_view view = overlap_table_view(table);
    for (uint32_t i = 0; i < view.table->policy_count; i++) {
        struct overlap_span gpus = view.policies[i].gpus;
        if (gpus.count == 0 || overlap_match_any(&view, gpus, device) || overlap_match_any(&view, gpus, architecture))
            return i;
    }
    return OVERLAP_NO_POLICY;
}
