/* SPDX-License-Identifier: Apache-2.0
 * The program that every row of the suite runs: identical steps of what its words say, one JSON line each on stdout.
 *
 *   program CUBIN ARM STEPS stream|graph WORD...
 *
 * It knows nothing of overlap-run and uses the driver as PyTorch with NCCL does: computation on one stream, collectives
 * on another, events between them; a collective uploads a description of its work in front of its kernel and so comes to
 * the GPU a moment after the computation that the host launches behind it.
 *
 *   k:SYMBOL:BLOCKS:THREADS:DYNAMIC   computation
 *   c:SYMBOL:BLOCKS:THREADS:DYNAMIC   a collective of what was computed so far
 *   p:SYMBOL:BLOCKS:THREADS:DYNAMIC   a collective that needs nothing of this step (a prefetch)
 *   w | wN                            computation waits for all collectives so far, or for number N of this step
 *   s                                 the host waits for everything
 *
 * ARM: plain, as written; priority, the stream of the collectives has the greatest. graph: the step is captured once and
 * launched as often.
 *
 * NCCL's own variables act as in NCCL: NCCL_NTHREADS where the algorithm is Ring, NCCL_ALGO, NCCL_CGA_CLUSTER_SIZE. A
 * kernel with a suffix "_small" in the cubin is what runs with fewer threads: it may have a cost of its own.
 */
#include <stdbool.h>
#include <stdint.h>

enum { MOST_WORDS = 256, MOST_STEPS = 100, NAME = 256 };
enum { ATTRIBUTE_MAJOR = 75, MAX_DYNAMIC = 8, CLUSTER = 4 }; /* CU_DEVICE_..., CU_FUNC_..., CU_LAUNCH_ATTRIBUTE_... */
enum { NON_BLOCKING = 1, NO_TIMING = 2, CAPTURE_RELAXED = 2 };
enum { NCCL_WARPS_SYNC = 32, NCCL_CLUSTER = 4, WORK_BYTES = 64 };

#define PROGRAM "suite-program"
#define API(X)                                                                                                         \
    DRIVER_API(X)                                                                                                      \
    X(cuLaunchKernelEx, (const struct config *, void *, void **, void **))

#include "../../demo/stencil_api.h"

#include "../../demo/driver.h"

struct word {
    char kind; /* k c p w s */
    char symbol[NAME];
    unsigned blocks, threads, dynamic;
    int number; /* of w: which collective, 0: all */
    void *function, *ready, *done;
    bool cluster;
};

static struct word words[MOST_WORDS];
static int word_count;
static void *compute, *communication;
static uint64_t work;
static const char description[WORK_BYTES];

static void read_word(struct word *word, const char *text) {
    word->kind = text[0];
    if (word->kind == 'w' && (text[1] == '\0' || (word->number = atoi(text + 1)) > 0))
        return;
    if (word->kind == 's' && text[1] == '\0')
        return;
    char end;
    if (strchr("kcp", word->kind) == NULL || sscanf(text + 1, ":%255[^:]:%u:%u:%u%c", word->symbol, &word->blocks,
                                                    &word->threads, &word->dynamic, &end) != 4)
        fail("not a word of a step: %s", text);
}

/* What NCCL makes of its variables. Trees and send/receive have 640 threads whatever is set. */
static void configure_collective(struct word *word, int major) {
    const char *const algorithm = getenv("NCCL_ALGO"), *const threads = getenv("NCCL_NTHREADS"),
                      *const cluster = getenv("NCCL_CGA_CLUSTER_SIZE");
    const bool ring_only = algorithm != NULL && strcmp(algorithm, "Ring") == 0;
    const bool sends = strstr(word->symbol, "SendRecv") != NULL;
    const unsigned wanted = threads != NULL ? (unsigned)atoi(threads) : 0;
    if (!sends && wanted > 0 && (ring_only || strstr(word->symbol, "_RING_") != NULL)) {
        word->threads = wanted + NCCL_WARPS_SYNC;
        if (wanted < 512)
            strcat(word->symbol, "_small");
    }
    word->cluster = major >= 9 && word->blocks % NCCL_CLUSTER == 0 && (cluster == NULL || atoi(cluster) > 1);
}

static void open_words(void *module, int major) {
    for (int i = 0; i < word_count; i++) {
        struct word *const word = &words[i];
        if (word->symbol[0] == '\0')
            continue;
        const bool collective = word->kind != 'k';
        if (collective)
            configure_collective(word, major);
        check(cuModuleGetFunction(&word->function, module, word->symbol), word->symbol);
        if (word->dynamic > 0)
            check(cuFuncSetAttribute(word->function, MAX_DYNAMIC, (int)word->dynamic), word->symbol);
        if (collective) {
            check(cuEventCreate(&word->ready, NO_TIMING), "event");
            check(cuEventCreate(&word->done, NO_TIMING), "event");
        }
    }
}

static void open_streams(const char *arm) {
    int least = 0, greatest = 0;
    check(cuStreamCreate(&compute, NON_BLOCKING), "stream");
    if (strcmp(arm, "priority") == 0) {
        check(cuCtxGetStreamPriorityRange(&least, &greatest), "priorities");
        check(cuStreamCreateWithPriority(&communication, NON_BLOCKING, greatest), "stream");
    } else {
        check(cuStreamCreate(&communication, NON_BLOCKING), "stream");
    }
}

static void launch_collective(struct word *word) {
    if (word->kind == 'c') {
        check(cuEventRecord(word->ready, compute), "event");
        check(cuStreamWaitEvent(communication, word->ready, 0), "event");
    }
    struct attribute cluster = {.id = CLUSTER, .value.dimension = {NCCL_CLUSTER, 1, 1}};
    const struct config config = {.grid = {word->blocks, 1, 1},
                                  .block = {word->threads, 1, 1},
                                  .shared = word->dynamic,
                                  .stream = communication,
                                  .attributes = &cluster,
                                  .count = word->cluster};
    check(cuMemcpyHtoDAsync_v2(work, description, sizeof description, communication), "memory");
    check(cuLaunchKernelEx(&config, word->function, NULL, NULL), word->symbol);
    check(cuEventRecord(word->done, communication), "event");
}

/* The last of the first `number` collectives of a step, or of all in front of the word `end`; NULL: there is none. */
static struct word *collective(int number, int end) {
    struct word *found = NULL;
    for (int i = 0, count = 0; i < end && (number == 0 || count < number); i++)
        if (words[i].kind == 'c' || words[i].kind == 'p') {
            found = &words[i];
            count++;
        }
    return found;
}

static void wait_for(int number, int end) {
    const struct word *const last = collective(number, end);
    if (last != NULL)
        check(cuStreamWaitEvent(compute, last->done, 0), "event");
}

/* Ends with computation waiting for everything, as an optimiser does: the next step needs the results. */
static void step(void) {
    for (int i = 0; i < word_count; i++) {
        struct word *const word = &words[i];
        if (word->kind == 'k')
            check(cuLaunchKernel(word->function, word->blocks, 1, 1, word->threads, 1, 1, word->dynamic, compute, NULL,
                                 NULL),
                  word->symbol);
        else if (word->kind == 'c' || word->kind == 'p')
            launch_collective(word);
        else if (word->kind == 'w')
            wait_for(word->number, i);
        else if (word->kind == 's')
            check(cuCtxSynchronize(), "step");
    }
    wait_for(0, word_count);
}

/* A prefetch has no event of computation to wait for, so the capture is led to its stream by hand. */
static void *capture(void) {
    void *graph = NULL, *executable = NULL, *fork = NULL;
    check(cuEventCreate(&fork, NO_TIMING), "event");
    check(cuStreamBeginCapture_v2(compute, CAPTURE_RELAXED), "capture");
    if (collective(0, word_count) != NULL) {
        check(cuEventRecord(fork, compute), "capture");
        check(cuStreamWaitEvent(communication, fork, 0), "capture");
    }
    step();
    check(cuStreamEndCapture(compute, &graph), "capture");
    check(cuGraphInstantiateWithFlags(&executable, graph, 0), "graph");
    return executable;
}

int main(int count, char **arguments) {
    if (count < 6 || count - 5 > MOST_WORDS)
        fail("usage: suite-program CUBIN ARM STEPS stream|graph WORD...");
    const int steps = atoi(arguments[3]);
    if (steps < 1 || steps > MOST_STEPS)
        fail("STEPS is a number from 1 to %d", MOST_STEPS);
    for (int i = 5; i < count; i++)
        read_word(&words[word_count++], arguments[i]);
    void *context = NULL, *start = NULL, *stop = NULL, *graph = NULL;
    int major = 0;
    open_driver();
    check(cuInit(0), "no GPU");
    check(cuDevicePrimaryCtxRetain(&context, 0), "no GPU");
    check(cuCtxSetCurrent(context), "no GPU");
    check(cuDeviceGetAttribute(&major, ATTRIBUTE_MAJOR, 0), "no GPU");
    open_words(load_cubin(arguments[1]), major);
    open_streams(arguments[2]);
    check(cuMemAlloc_v2(&work, WORK_BYTES), "memory");
    check(cuEventCreate(&start, 0), "event");
    check(cuEventCreate(&stop, 0), "event");
    if (strcmp(arguments[4], "graph") == 0)
        graph = capture();
    for (int i = 0; i < steps; i++) {
        float milliseconds = 0;
        check(cuEventRecord(start, compute), "event");
        if (graph != NULL)
            check(cuGraphLaunch(graph, compute), "graph");
        else
            step();
        check(cuEventRecord(stop, compute), "event");
        check(cuEventSynchronize(stop), "step");
        check(cuEventElapsedTime(&milliseconds, start, stop), "event");
        printf("{\"step\": %d, \"milliseconds\": %.6f}\n", i + 1, (double)milliseconds);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
