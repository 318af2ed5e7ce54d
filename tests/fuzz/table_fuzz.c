/* The policy table's checker, and everything that reads a table it accepted, fed with bytes from anywhere.
 *
 * LLVMFuzzerTestOneInput() is libFuzzer's entry (build with -fsanitize=fuzzer -DWITH_LIBFUZZER). Without libFuzzer
 * there is a main(): table_fuzz corrupt SEED...            every byte of every seed changed, to several values, the
 * checksum made right again table_fuzz truncate SEED...           every length table_fuzz mutate SECONDS SEED... random
 * changes, deterministic from a fixed state, until the time is over Build it with -fsanitize=address,undefined: the
 * sanitizers are the judges. Prints how many inputs were tried and accepted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../shim/core/core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
        overlap_match_kernel(&view, policy->kernels, kernels[1]);
        overlap_match_any(&view, policy->libraries, "libnccl.so.2");
        overlap_match_any(&view, policy->stream_creators, "libnccl.so.2");
        overlap_match_kernel(&view, policy->fixed_size, kernels[1]);
        length += strlen(view.strings + policy->name) + strlen(view.strings + policy->hash);
        overlap_blocks_beside(&gpu, &policy->footprint, &policy->footprint);
    }
    if (length > OVERLAP_TABLE_MAX_SIZE * 16)
        abort();
}

static long tried, accepted;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1); /* of this very size, so that one byte behind it is noticed */
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    tried++;
    if (!overlap_table_check(copy, size)) {
        accepted++;
        use(copy);
    }
    free(copy);
    return 0;
}

#ifndef WITH_LIBFUZZER
static uint8_t bytes[OVERLAP_TABLE_MAX_SIZE + 64];

static size_t read_seed(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        exit(2);
    const size_t size = fread(bytes, 1, OVERLAP_TABLE_MAX_SIZE, file);
    fclose(file);
    return size;
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

/* A right checksum, so that the checks behind it are what is tested. */
static void sign(size_t size) {
    if (size < sizeof(struct overlap_table))
        return;
    const uint32_t sum = checksum(bytes + sizeof(struct overlap_table), size - sizeof(struct overlap_table));
    memcpy(bytes + offsetof(struct overlap_table, checksum), &sum, sizeof sum);
}

static void corrupt(size_t size) {
    static const uint8_t values[] = {0, 1, 3, 4, 100, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < size; at++) {
        const uint8_t before = bytes[at];
        for (size_t i = 0; i < sizeof values + 2; i++) {
            bytes[at] = i < sizeof values ? values[i] : (uint8_t)(before + (i - sizeof values) * 2 - 1);
            if (at < offsetof(struct overlap_table, checksum) || at >= offsetof(struct overlap_table, policy_count))
                sign(size);
            LLVMFuzzerTestOneInput(bytes, size);
        }
        bytes[at] = before;
    }
}

static void cut(size_t size) {
    const uint32_t whole = (uint32_t)size;
    for (uint32_t length = 0; length < whole; length++) {
        LLVMFuzzerTestOneInput(bytes, length);
        uint8_t kept[sizeof(struct overlap_table)];
        memcpy(kept, bytes, sizeof kept);
        memcpy(bytes + offsetof(struct overlap_table, size), &length, sizeof length);
        sign(length);
        LLVMFuzzerTestOneInput(bytes, length);
        memcpy(bytes, kept, sizeof kept);
    }
}

static uint64_t state = 88172645463325252U;

static uint32_t random_below(uint32_t limit) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16) % limit;
}

/* One to four changes: a byte, a bit, a 32-bit number that means something, or a record over another. */
static size_t mutate(size_t size) {
    static const uint32_t numbers[] = {0,          1,          2,          3,          99,         100,       101,
                                       0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x20000000, 0x2e8ba2e9};
    for (uint32_t n = 1 + random_below(4); n; n--) {
        const uint32_t at = random_below(4) ? random_below((uint32_t)size) : random_below(32) % (uint32_t)size;
        const uint32_t kind = random_below(4);
        if (kind == 0)
            bytes[at] = (uint8_t)random_below(256);
        else if (kind == 1)
            bytes[at] ^= (uint8_t)(1U << random_below(8));
        else if (kind == 2 && at / 4 * 4 + 4 <= size)
            memcpy(bytes + at / 4 * 4, &numbers[random_below(sizeof numbers / sizeof *numbers)], 4);
        else if (size > 64)
            memmove(bytes + at / 8 * 8 % (size - 32), bytes + random_below((uint32_t)size - 32), 1 + random_below(31));
    }
    if (random_below(8) == 0) {
        size = 1 + random_below((uint32_t)size);
        const uint32_t told = (uint32_t)size;
        if (size >= 12)
            memcpy(bytes + offsetof(struct overlap_table, size), &told, sizeof told);
    }
    return size;
}

int main(int argc, char **argv) {
    const int first = argc > 1 && strcmp(argv[1], "mutate") == 0 ? 3 : 2;
    if (argc <= first)
        return 2;
    const time_t end = time(NULL) + (first == 3 ? atol(argv[2]) : 0);
    do
        for (int i = first; i < argc; i++) {
            const size_t size = read_seed(argv[i]);
            if (strcmp(argv[1], "corrupt") == 0)
                corrupt(size);
            else if (strcmp(argv[1], "truncate") == 0)
                cut(size);
            for (int n = 0; first == 3 && size && n < 200; n++) {
                static uint8_t seed[sizeof bytes];
                if (n == 0)
                    memcpy(seed, bytes, size);
                memcpy(bytes, seed, size);
                const size_t changed = mutate(size);
                sign(changed);
                LLVMFuzzerTestOneInput(bytes, changed);
            }
        }
    while (first == 3 && time(NULL) < end);
    printf("%ld %ld\n", tried, accepted);
    return 0;
}
#endif
