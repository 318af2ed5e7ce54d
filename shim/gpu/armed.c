/* Is the library armed in this process, and what do its policies need? */
#include <errno.h>
#include <sys/auxv.h>

#include "../sys/sys.h"
#include "../sys/system.h"
#include "page.h"
#include "hook.h"

/* Names that no program may define (ISO C 7.1.3). */
extern unsigned long __getauxval(unsigned long type) __attribute__((weak));
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *handle)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden"), weak));

uint32_t overlap_table_decoded = OVERLAP_FRESH;
static const char *wrong; /* why the table is ignored, or NULL */
static uint32_t wrong_said = OVERLAP_FRESH;

/* glibc's shared libraries export pthread_atfork(3) for old programs only; __register_atfork is what it calls. Allocates nothing. */
void overlap_watch_forks(void) {
    static bool watched;
    if (!__register_atfork || __atomic_exchange_n(&watched, true, __ATOMIC_RELAXED))
        return;
    const int saved = errno;
    __register_atfork(NULL, NULL, overlap_in_child, &__dso_handle ? __dso_handle : NULL);
    errno = saved;
}

/* Other C libraries have pthread_atfork only, which allocates. So it is called when a driver is used, not at start: without a driver
 * there is nothing that a child must not inherit. */
static void watch_forks_late(void) {
    const int saved = errno;
    int (*at_fork)(void (*)(void), void (*)(void), void (*)(void)) =
        __register_atfork ? NULL
                          : (int (*)(void (*)(void), void (*)(void), void (*)(void)))overlap_libc("pthread_atfork");
    if (at_fork)
        at_fork(NULL, NULL, overlap_in_child);
    errno = saved;
}

/* In place: the bytes are fewer than the characters they come from. */
static void decode_table(void) {
    /* A program with raised rights ignores our variables (getauxval(3)). Not checked before a driver is used: until then nothing is
     * done with the copied text. */
    if (__getauxval && __getauxval(AT_SECURE))
        return;
    size_t size = overlap_decode_base64(overlap_start.text, overlap_start.length, (uint8_t *)overlap_start.text);
    wrong = size == SIZE_MAX ? "it is not base64" : overlap_table_check(overlap_start.text, size);
    if (wrong)
        return;
    overlap_find_rank(&overlap_start.settings);
    overlap_start.settings.table = overlap_start.text;
    overlap_watch_forks();
    watch_forks_late();
}

const struct overlap_settings *overlap_settings(void) {
    if (!overlap_is_set_up() || !overlap_once(&overlap_table_decoded, decode_table))
        return NULL;
    return overlap_start.settings.table ? &overlap_start.settings : NULL;
}

static void say_what_is_wrong(void) {
    overlap_say("the policy in OVERLAP_TABLE is ignored: ", wrong, ": nothing is done here");
}

const struct overlap_settings *overlap_armed(void) {
    const struct overlap_settings *settings = overlap_settings();
    if (!settings && __atomic_load_n(&overlap_table_decoded, __ATOMIC_ACQUIRE) == OVERLAP_DONE && wrong)
        overlap_once(&wrong_said, say_what_is_wrong);
    return settings;
}

/* ---- What the policies need ---- */

uint32_t streams_needed;

static bool shapes(const struct overlap_rule *rule) {
    return rule->shape != OVERLAP_SHAPE_LEAVE;
}

RARE uint32_t streams_need(void) {
    const struct overlap_settings *const settings = overlap_armed();
    uint32_t needed = STREAMS_KNOWN;
    if (!settings) {
        if (overlap_is_off())
            __atomic_store_n(&streams_needed, needed, __ATOMIC_RELAXED);
        return 0;
    }
    const struct overlap_view view = overlap_table_view(settings->table);
    for (uint32_t i = 0; i < view.table->policy_count; i++)
        needed |= view.policies[i].raise_share || view.policies[i].stream_creators.count ? STREAMS_RAISES : 0;
    for (uint32_t i = 0; i < view.table->rule_count; i++)
        if (shapes(&view.rules[i]))
            needed |= STREAMS_SHAPES | (view.rules[i].when == OVERLAP_WHEN_ALWAYS ? 0 : STREAMS_WINDOWS);
    __atomic_store_n(&streams_needed, needed, __ATOMIC_RELAXED);
    return needed;
}
