/* What the programs of this folder share. tools/checks/fuzz.py builds and runs them.
 *
 * LLVMFuzzerTestOneInput() is libFuzzer's entry (build with -fsanitize=fuzzer -DWITH_LIBFUZZER). Without libFuzzer there is a
 * main():
 *   PROGRAM corrupt SEED...         every byte of every seed changed, to several values
 *   PROGRAM truncate SEED...        every length
 *   PROGRAM mutate SECONDS SEED...  random changes, deterministic from a fixed state, until the time is over
 *   PROGRAM repeat FILE...          each as it is
 *
 * Build it with -fsanitize=address,undefined: the sanitizers are the judges. Prints how many inputs were tried and accepted.
 * Both, and the input that is tried, are in the file that FUZZ_STATE names, too, for whoever finds this process dead.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Whether the bytes were accepted. Of each program. */
static bool fuzz_one(const uint8_t *data, size_t size);
/* Makes right what guards the bytes, after one of them was changed (SIZE_MAX: some were). */
static void fuzz_repair(uint8_t *bytes, size_t size, size_t changed);
/* Makes the bytes say that there are so many of them; false: they say nothing of the kind. */
static bool fuzz_announce(uint8_t *bytes, size_t size);

struct fuzz_state {
    uint64_t size, tried, accepted;
    uint8_t input[FUZZ_MOST];
};

static struct fuzz_state *fuzz_state(void) {
    static struct fuzz_state *state;
    const char *path = getenv("FUZZ_STATE");
    if (state)
        return state;
    const int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (path && (file < 0 || ftruncate(file, sizeof *state)))
        exit(2);
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
    if (state == MAP_FAILED)
        exit(2);
    return state;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_state *state = fuzz_state();
    state->size = size < FUZZ_MOST ? size : FUZZ_MOST;
    if (size)
        memcpy(state->input, data, state->size);
    state->tried++;
    state->accepted += fuzz_one(data, size);
    return 0;
}

#ifdef WITH_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);

/* libFuzzer's own changes; behind a checksum that is wrong nothing would be learned. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed) {
    const size_t changed = LLVMFuzzerMutate(data, size, most);
    if (seed % 16 && changed > 16) /* else they may stay wrong */
        fuzz_announce(data, changed);
    fuzz_repair(data, changed, SIZE_MAX);
    return changed;
}
#else
static uint8_t bytes[FUZZ_MOST + 64];

static size_t read_seed(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        exit(2);
    const size_t size = fread(bytes, 1, FUZZ_MOST, file);
    fclose(file);
    return size;
}

static void corrupt(size_t size) {
    static const uint8_t values[] = {0, 1, 3, 4, 100, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < size; at++) {
        const uint8_t before = bytes[at];
        for (size_t i = 0; i < sizeof values + 2; i++) {
            bytes[at] = i < sizeof values ? values[i] : (uint8_t)(before + (i - sizeof values) * 2 - 1);
            fuzz_repair(bytes, size, at);
            LLVMFuzzerTestOneInput(bytes, size);
        }
        bytes[at] = before;
    }
}

static void cut(size_t size) {
    for (size_t length = 0; length < size; length++) {
        uint8_t kept[64];
        LLVMFuzzerTestOneInput(bytes, length);
        memcpy(kept, bytes, sizeof kept);
        if (fuzz_announce(bytes, length)) {
            fuzz_repair(bytes, length, SIZE_MAX);
            LLVMFuzzerTestOneInput(bytes, length);
        }
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
        if (size >= 12)
            fuzz_announce(bytes, size);
    }
    fuzz_repair(bytes, size, SIZE_MAX);
    return size;
}

int main(int argc, char **argv) {
    enum { HANGS = 60 }; /* seconds: for one seed and its changes */
    const int first = argc > 1 && strcmp(argv[1], "mutate") == 0 ? 3 : 2;
    if (argc <= first)
        return 2;
    const time_t end = time(NULL) + (first == 3 ? atol(argv[2]) : 0);
    do
        for (int i = first; i < argc; i++) {
            const size_t size = read_seed(argv[i]);
            if (first == 3)
                alarm(HANGS);
            if (strcmp(argv[1], "repeat") == 0)
                LLVMFuzzerTestOneInput(bytes, size);
            else if (strcmp(argv[1], "corrupt") == 0)
                corrupt(size);
            else if (strcmp(argv[1], "truncate") == 0)
                cut(size);
            for (int n = 0; first == 3 && size && n < 200; n++) {
                static uint8_t seed[sizeof bytes];
                if (n == 0)
                    memcpy(seed, bytes, size);
                memcpy(bytes, seed, size);
                LLVMFuzzerTestOneInput(bytes, mutate(size));
            }
        }
    while (first == 3 && time(NULL) < end);
    printf("%llu %llu\n", (unsigned long long)fuzz_state()->tried, (unsigned long long)fuzz_state()->accepted);
    return 0;
}
#endif
