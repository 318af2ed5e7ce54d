/* The policy table's checker, and everything that reads a table it accepted, fed with bytes from anywhere (fuzz.h). A table
 * whose bytes were changed gets a right checksum again, so that the checks behind it are what is tested.
 */
#include "../../shim/core/core.h"

#define FUZZ_MOST OVERLAP_TABLE_MAX_SIZE
#include "fuzz.h"

static const char *const kernels[] = {"gemm", "_ZN7cutlass7Kernel2I4GemmEEvNT_6ParamsE", "_Z4gemm6Params", ""};

static void decide(const void *table, uint32_t policy, const struct overlap_gpu *gpu) {
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        const struct overlap_launch launch = {
            .blocks = i % 2 ? 100000 : 7,
            .flags = i == 3 ? OVERLAP_LAUNCH_REFUSED : 0,
            .maximum_dynamic = gpu->shared_optin,
            .footprint = {
                .threads = 128, .registers = 64, .static_shared = 1000, .dynamic_shared = (uint32_t)i * 8000}};
        const struct overlap_footprint beside = {
            .threads = 288, .registers = 96, .static_shared = 20832, .dynamic_shared = 82240};
        struct overlap_decision decision;
        overlap_decide(table, policy, gpu, kernels[i], i % 2 ? "libcublasLt.so.13" : NULL, &launch,
                       i < 2 ? &beside : NULL, &decision);
        if (decision.reason >= OVERLAP_REASON_COUNT || decision.control > OVERLAP_CONTROL_CAP ||
            decision.dynamic_shared < launch.footprint.dynamic_shared ||
            decision.dynamic_shared > launch.maximum_dynamic || launch.blocks < decision.minimum_blocks ||
            launch.blocks > decision.maximum_blocks)
            abort();
    }
}

/* What the library does with a table that it believes. */
static void use(const void *table) {
    struct overlap_gpu gpu;
    const struct overlap_view view = overlap_table_view(table);
    overlap_gpu_known(3, &gpu);
    const uint32_t found = overlap_policy_for(table, "NVIDIA H100 80GB HBM3", "sm_90");
    if (found != OVERLAP_NO_POLICY && found >= view.table->policy_count)
        abort();
    decide(table, OVERLAP_NO_POLICY, &gpu);
    size_t length = 0;
    /* A table may name one rule a thousand times: more policies of it tell nothing new. */
    for (uint32_t i = 0; i < view.table->policy_count && i < 8; i++) {
        const struct overlap_policy *policy = &view.policies[i];
        decide(table, i, &gpu);
        struct overlap_matches matches;
        overlap_match_kernel(&view, i, kernels[1], &matches);
        overlap_match_any(&view, policy->libraries, "libnccl.so.2");
        overlap_match_any(&view, policy->stream_creators, "libnccl.so.2");
        length += strlen(view.strings + policy->name) + strlen(view.strings + policy->hash);
        if (policy->raise_share > OVERLAP_OBSERVED + 100)
            abort();
    }
    if (length > OVERLAP_TABLE_MAX_SIZE * 16)
        abort();
}

static bool fuzz_one(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1); /* of this very size, so that one byte behind it is noticed */
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    const bool good = !overlap_table_check(copy, size);
    if (good)
        use(copy);
    free(copy);
    return good;
}

/* zlib's CRC-32, by table: this program computes many. */
static uint32_t checksum(const uint8_t *data, size_t size) {
    static uint32_t table[256];
    for (uint32_t i = 0; i < 256 && !table[255]; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (UINT32_C(0xEDB88320) & (0U - (crc & 1)));
        table[i] = crc;
    }
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++)
        crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
    return ~crc;
}

static void fuzz_repair(uint8_t *bytes, size_t size, size_t changed) {
    const bool meant =
        changed >= offsetof(struct overlap_table, checksum) && changed < offsetof(struct overlap_table, policy_count);
    if (meant || size < sizeof(struct overlap_table))
        return;
    const uint32_t sum = checksum(bytes + sizeof(struct overlap_table), size - sizeof(struct overlap_table));
    memcpy(bytes + offsetof(struct overlap_table, checksum), &sum, sizeof sum);
}

static bool fuzz_announce(uint8_t *bytes, size_t size) {
    const uint32_t told = (uint32_t)size;
    memcpy(bytes + offsetof(struct overlap_table, size), &told, sizeof told);
    return true;
}
