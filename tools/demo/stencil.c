/* SPDX-License-Identifier: Apache-2.0
 * Programs whose host or whose collectives wait for a short piece of work while a long kernel runs, and programs that
 * only look like them: a table of patterns, one JSON line for each step.
 *
 *   demo-stencil [IMAGE ARM STEPS PATTERN [N [spans]]]
 *
 * Without words it runs one pattern and prints a sentence about it.
 * A 7-point stencil over N * N * N points (default 256) as HPC codes write it: boundary planes, their exchange, and the
 * interior beside it. It sets no priority, knows nothing of overlap-run and runs on a real GPU of NVIDIA and on simulated
 * ones of NVIDIA and AMD.
 * A line has the milliseconds of an iteration, by events, and the launches so far. The host waits between iterations
 * only where the pattern does.
 *
 * ARM: plain, as written; raise, one stream has the greatest priority (that of the exchange unless the pattern names
 * another one); level, all streams have it; one, everything on one stream; compute, nothing is exchanged; communication,
 * the interior is left out.
 * STEPS are of two iterations. IMAGE: stencil.cu, compiled, or on the simulated GPU any module with its kernels; - for the
 * file beside this program. spans: another line has, for each iteration of the last step of a stencil/ or host-staged/
 * pattern, the microseconds at which its boundary is ready, done and exchanged, and its interior is ready and done.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    MOST_STEPS = 20000,
    STEPS = 20,
    LAST = 5,
    SOLVE = 5,
    ITERATIONS = 2,
    WIDTH = 32,
    HEIGHT = 16,
    DEPTH = 8,
    MOST_POINTS = 1024,
    BATCH = 4 << 20
};
enum { NCCL_BLOCKS = 8, NCCL_THREADS = 640, NCCL_DYNAMIC = 82240, RCCL_THREADS = 256 };
enum { NON_BLOCKING = 1, NO_TIMING = 2, CAPTURE_RELAXED = 2, MAX_DYNAMIC = 8, USE_NODE_PRIORITY = 8, NOT_READY = 600 };

#define PROGRAM "demo-stencil"
#define USAGE "usage: demo-stencil [IMAGE|- plain|raise|level|one|compute|communication STEPS PATTERN [N [spans]]]"
#define API DRIVER_API
#include "stencil_api.h"

#include "driver.h"

#include "stencil_gpu.h"

enum boundary { ON_HALO, ON_COMPUTE, ON_THIRD };
enum wait { NO_WAIT, BY_STREAM, BY_EVENT, POLL_EVENT, POLL_STREAM, BLOCKING_COPY, HOST_FUNCTION };

struct pattern {
    const char *name;
    void (*iterate)(int iteration);
    enum boundary boundary; /* the stream on which the boundary planes are computed */
    enum wait wait;         /* staged through the host, which waits so; NO_WAIT: a collective */
    bool pageable, graph, swapped, warm_up, reset, one_stream, raise_compute, anew;
};

static void stencil(int iteration), synchronised(int iteration), equal(int iteration), loader(int iteration),
    logger(int iteration);

static const struct pattern patterns[] = {
    {.name = "stencil/style-0", .iterate = stencil},
    {.name = "stencil/style-1", .iterate = stencil, .boundary = ON_COMPUTE},
    {.name = "stencil/style-2", .iterate = stencil, .boundary = ON_THIRD},
    {.name = "stencil/one", .iterate = stencil, .one_stream = true},
    {.name = "stencil/graph", .iterate = stencil, .graph = true},
    {.name = "stencil/swapped", .iterate = stencil, .swapped = true},
    {.name = "stencil/anew", .iterate = stencil, .anew = true},
    {.name = "host-staged/stream", .iterate = stencil, .wait = BY_STREAM},
    {.name = "host-staged/event", .iterate = stencil, .wait = BY_EVENT},
    {.name = "host-staged/poll", .iterate = stencil, .wait = POLL_EVENT},
    {.name = "host-staged/poll-stream", .iterate = stencil, .wait = POLL_STREAM},
    {.name = "host-staged/blocking", .iterate = stencil, .wait = BLOCKING_COPY},
    {.name = "host-staged/function", .iterate = stencil, .wait = HOST_FUNCTION},
    {.name = "host-staged/pageable", .iterate = stencil, .wait = BY_STREAM, .pageable = true},
    {.name = "trap/warm-up", .iterate = stencil, .warm_up = true},
    {.name = "trap/reset", .iterate = stencil, .warm_up = true, .reset = true},
    {.name = "trap/synchronised", .iterate = synchronised, .raise_compute = true},
    {.name = "trap/equal", .iterate = equal},
    {.name = "trap/loader", .iterate = loader},
    {.name = "trap/logger", .iterate = logger, .raise_compute = true},
};

static const struct pattern *pattern;
static bool with_exchange = true, with_interior = true;
static int n = 256;
static size_t plane_bytes;
static void *compute, *halo, *third;
static void *interior_kernel, *boundary_kernel, *collective_kernel;
static void *started, *computed, *exchanged, *was_reset, *marks[MOST_STEPS + 1];
static uint64_t points[2], counter, batch;
static char *sent, *received; /* two planes each, on the host */
static unsigned long launches, launched[MOST_STEPS];

enum moment { READY, BOUNDARY_DONE, EXCHANGED, INTERIOR_READY, INTERIOR_DONE, MOMENTS };
static bool with_spans;
static int first_of_spans; /* iteration */
static void *moments[ITERATIONS][MOMENTS];

static void record(void *event, void *stream) {
    check(cuEventRecord(event, stream), "event");
}

static void wait_for(void *stream, void *event) {
    check(cuStreamWaitEvent(stream, event, 0), "event");
}

static void mark(enum moment moment, int iteration, void *stream) {
    if (with_spans && iteration >= first_of_spans)
        record(moments[iteration - first_of_spans][moment], stream);
}

static void launch(void *function, unsigned depth, void *stream, void **arguments) {
    const unsigned width = (unsigned)n / WIDTH, height = (unsigned)n / HEIGHT;
    check(cuLaunchKernel(function, width, height, depth, WIDTH, HEIGHT, 1, 0, stream, arguments, NULL), "kernel");
    launches++;
}

static void sweep_interior(void *stream, int iteration, int begin, int end) {
    void *const arguments[] = {&points[iteration % 2], &points[(iteration + 1) % 2], &n, &begin, &end};
    if (with_interior)
        launch(interior_kernel, (unsigned)(end - begin + DEPTH - 1) / DEPTH, stream, (void **)arguments);
}

static void sweep_boundary(void *stream, int iteration) {
    int planes[] = {1, n - 2};
    for (int i = 0; i < 2; i++)
        launch(boundary_kernel, 1, stream,
               (void *[]){&points[iteration % 2], &points[(iteration + 1) % 2], &n, &planes[i]});
}

static void collective(void *stream, int iteration) {
    void *arguments[] = {&points[(iteration + 1) % 2], &n};
    const unsigned threads = on_amd ? RCCL_THREADS : NCCL_THREADS, dynamic = on_amd ? 0 : NCCL_DYNAMIC;
    if (!with_exchange)
        return;
    check(cuLaunchKernel(collective_kernel, NCCL_BLOCKS, 1, 1, threads, 1, 1, dynamic, stream, arguments, NULL),
          "collective");
    launches++;
}

#include "stencil_host.h"

/* ---- patterns ---- */

/* The stream of the boundary planes starts where the computing stream stands. `reset` is what NVIDIA's samples do: a
 * counter is cleared on the computing stream, and the halo stream waits for that in each iteration. */
static void begin_boundary(void *stream) {
    void *const clearing = pattern->reset ? compute : stream;
    record(started, compute);
    if (stream != compute)
        wait_for(stream, started);
    check(cuMemsetD32Async(counter, 0, 1, clearing), "counter");
    if (clearing != stream) {
        record(was_reset, clearing);
        wait_for(stream, was_reset);
    }
}

static void swap_streams(void) {
    void *const other = compute;
    compute = halo;
    halo = other;
    record(started, halo);
    wait_for(compute, started);
}

static void stencil(int iteration) {
    if (pattern->swapped)
        swap_streams();
    void *const edge = pattern->boundary == ON_COMPUTE ? compute : pattern->boundary == ON_THIRD ? third : halo;
    const bool staged = pattern->wait != NO_WAIT && with_exchange;
    const bool copies_wait = pattern->wait == BLOCKING_COPY || pattern->pageable;
    begin_boundary(edge);
    mark(READY, iteration, edge);
    sweep_boundary(edge, iteration);
    mark(BOUNDARY_DONE, iteration, edge);
    if (edge != halo) {
        record(computed, edge);
        wait_for(halo, computed);
    }
    if (staged && !copies_wait)
        copy_out(iteration);
    if (pattern->wait == BY_EVENT || pattern->wait == POLL_EVENT)
        record(computed, halo);
    mark(INTERIOR_READY, iteration, compute);
    sweep_interior(compute, iteration, 2, n - 2);
    mark(INTERIOR_DONE, iteration, compute);
    if (staged && copies_wait) /* the interior was launched before the host waits, or nothing would overlap */
        copy_out(iteration);
    if (staged)
        finish_staged(iteration);
    else
        collective(halo, iteration);
    mark(EXCHANGED, iteration, halo);
    record(exchanged, halo);
    wait_for(compute, exchanged);
}

/* A program that waits for its only stream in each iteration. */
static void synchronised(int iteration) {
    sweep_boundary(compute, iteration);
    sweep_interior(compute, iteration, 2, n - 2);
    check(cuStreamSynchronize(compute), "wait");
}

/* Two halves of the points on two streams; both carry computation and communication. */
static void equal(int iteration) {
    void *const streams[] = {compute, halo};
    record(started, compute);
    wait_for(halo, started);
    for (int i = 0; i < 2; i++) {
        sweep_interior(streams[i], iteration, i == 0 ? 2 : n / 2, i == 0 ? n / 2 : n - 2);
        collective(streams[i], iteration);
    }
    record(exchanged, halo);
    wait_for(compute, exchanged);
}

/* A data loader: the next batch is copied and prepared on a stream of its own, and the host waits for the copy before it
 * fills the buffer again. */
static void loader(int iteration) {
    wait_for(compute, exchanged); /* the batch of this iteration */
    sweep_interior(compute, iteration, 2, n - 2);
    sweep_interior(compute, iteration, 2, n - 2);
    if (!with_exchange)
        return;
    check(cuEventSynchronize(computed), "wait");
    check(cuMemcpyHtoDAsync_v2(batch, sent, BATCH, halo), "copy");
    record(computed, halo);
    sweep_boundary(halo, iteration);
    record(exchanged, halo);
}

/* Another thread looks whether the latest iteration of the main stream is over, to write a line about it. It takes turns
 * with this one, so that the order of calls is always the same. */
static pthread_mutex_t turns = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int asked, answered;

static void *log_progress(void *context) {
    check(cuCtxSetCurrent(context), "no GPU");
    pthread_mutex_lock(&turns);
    for (;; answered++, pthread_cond_broadcast(&turn_changed)) {
        while (asked == answered)
            pthread_cond_wait(&turn_changed, &turns);
        for (int i = 0; i < 2 && cuEventQuery(computed) == NOT_READY; i++)
            continue;
    }
    return NULL;
}

static void logger(int iteration) {
    sweep_interior(compute, iteration, 2, n / 2);
    record(started, compute);
    wait_for(halo, started);
    collective(halo, iteration);
    record(exchanged, halo);
    sweep_interior(compute, iteration, n / 2, n - 2);
    wait_for(compute, exchanged);
    record(computed, compute);
    pthread_mutex_lock(&turns);
    asked++;
    pthread_cond_broadcast(&turn_changed);
    while (answered != asked)
        pthread_cond_wait(&turn_changed, &turns);
    pthread_mutex_unlock(&turns);
}

/* ---- all of it ---- */

static void *open_stream(unsigned flags, bool raise) {
    int least = 0, greatest = 0;
    void *stream = NULL;
    check(cuCtxGetStreamPriorityRange(&least, &greatest), "priorities");
    check(raise ? cuStreamCreateWithPriority(&stream, flags, greatest) : cuStreamCreate(&stream, flags), "stream");
    return stream;
}

/* Blocking copies belong to the legacy stream, so a stream that they follow is an ordinary one. */
static void open_streams(const char *arm) {
    const bool level = strcmp(arm, "level") == 0, raise = level || strcmp(arm, "raise") == 0;
    const unsigned flags = pattern->wait == BLOCKING_COPY ? 0 : NON_BLOCKING;
    with_exchange = strcmp(arm, "compute") != 0;
    with_interior = strcmp(arm, "communication") != 0;
    halo = open_stream(flags, level || (raise && !pattern->raise_compute));
    compute = third = halo;
    if (strcmp(arm, "one") == 0 || pattern->one_stream)
        return;
    compute = open_stream(NON_BLOCKING, level || (raise && pattern->raise_compute));
    third = pattern->boundary == ON_THIRD ? open_stream(NON_BLOCKING, raise) : NULL;
}

static void open_kernels(void *module) {
    check(cuModuleGetFunction(&interior_kernel, module, "stencil_interior"), "stencil_interior");
    check(cuModuleGetFunction(&boundary_kernel, module, "stencil_boundary"), "stencil_boundary");
    check(cuModuleGetFunction(&collective_kernel, module, "ncclDevKernel_SendRecv"), "ncclDevKernel_SendRecv");
    if (!on_amd)
        check(cuFuncSetAttribute(collective_kernel, MAX_DYNAMIC, NCCL_DYNAMIC), "ncclDevKernel_SendRecv");
}

/* A library that makes a stream for each of its solves, and no other stream by the same code. */
static void renew_halo(const char *arm) {
    check(cuStreamDestroy_v2(halo), "stream");
    if (strcmp(arm, "plain") == 0)
        check(cuStreamCreate(&halo, NON_BLOCKING), "stream");
    else
        halo = open_stream(NON_BLOCKING, true);
}

static void step(int number) {
    for (int i = 0; i < ITERATIONS; i++)
        pattern->iterate(number * ITERATIONS + i);
}

static void *capture(bool raise) {
    void *graph = NULL, *executable = NULL;
    check(cuStreamBeginCapture_v2(compute, CAPTURE_RELAXED), "capture");
    step(0);
    check(cuStreamEndCapture(compute, &graph), "capture");
    check(cuGraphInstantiateWithFlags(&executable, graph, raise ? USE_NODE_PRIORITY : 0), "graph");
    return executable;
}

static void list_patterns(FILE *file) {
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        fprintf(file, "  %s\n", patterns[i].name);
}

static const struct pattern *pattern_of(const char *name) {
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (strcmp(patterns[i].name, name) == 0)
            return &patterns[i];
    list_patterns(stderr);
    fail("no pattern is called %s; those above are known", name);
}

static void start_logger(void *context) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, log_progress, context) != 0)
        fail("no thread");
}

static bool parse(int count, char **words, const char **image, const char **arm, int *steps) {
    *image = count > 1 ? words[1] : "-";
    *arm = count > 1 ? words[2] : "plain";
    *steps = count > 1 ? atoi(words[3]) : STEPS;
    n = count > 5 ? atoi(words[5]) : n;
    with_spans = count > 6;
    first_of_spans = (*steps - 1) * ITERATIONS;
    return *steps >= 1 && *steps <= MOST_STEPS && n >= 64 && n <= MOST_POINTS && n % WIDTH == 0;
}

static void open_events(int steps) {
    void **const events[] = {&started, &computed, &exchanged, &was_reset};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        check(cuEventCreate(events[i], NO_TIMING), "event");
    for (int i = 0; i <= steps; i++)
        check(cuEventCreate(&marks[i], 0), "event");
    for (int i = 0; i < ITERATIONS * MOMENTS; i++)
        check(cuEventCreate(&moments[i / MOMENTS][i % MOMENTS], 0), "event");
}

static void run(const char *arm, int steps) {
    void *const graph = pattern->graph ? capture(strcmp(arm, "raise") == 0) : NULL;
    const unsigned long captured = launches;
    record(marks[0], compute);
    for (int i = 0; i < steps; i++) {
        if (pattern->anew && i % SOLVE == 0)
            renew_halo(arm);
        if (graph != NULL)
            check(cuGraphLaunch(graph, compute), "graph");
        else
            step(i);
        launches += graph != NULL && i > 0 ? captured : 0;
        launched[i] = launches;
        record(marks[i + 1], compute);
    }
    check(cuCtxSynchronize(), "the last step");
}

/* Milliseconds of an iteration of a step. */
static double took(int step) {
    float milliseconds = 0;
    check(cuEventElapsedTime(&milliseconds, marks[step], marks[step + 1]), "event");
    return (double)milliseconds / (double)ITERATIONS;
}

static void print_spans(int steps) {
    for (int i = 0; i < ITERATIONS * MOMENTS; i++) {
        float milliseconds = 0;
        check(cuEventElapsedTime(&milliseconds, marks[steps - 1], moments[i / MOMENTS][i % MOMENTS]), "event");
        printf("%s%.3f%s",
               i == 0             ? "{\"spans\": [["
               : i % MOMENTS == 0 ? "], ["
                                  : ", ",
               (double)milliseconds * 1000, i == ITERATIONS * MOMENTS - 1 ? "]]}\n" : "");
    }
}

static void print(bool in_words, int steps) {
    char gpu[256] = "";
    if (!in_words) {
        for (int i = 0; i < steps; i++)
            printf("{\"step\": %d, \"milliseconds\": %.6f, \"launches\": %lu}\n", i + 1, took(i), launched[i]);
        return;
    }
    check(cuDeviceGetName(gpu, sizeof gpu, 0), "no GPU");
    double sum = 0;
    for (int i = steps - LAST; i < steps; i++)
        sum += took(i);
    printf(PROGRAM ": %d iterations over %d points cubed on %s: %.3f ms an iteration, mean of the last %d\n",
           steps * ITERATIONS, n, gpu, sum / (double)LAST, LAST * ITERATIONS);
}

int main(int count, char **words) {
    if (count == 2 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0)) {
        puts(USAGE "\nWithout words: - plain 20 stencil/style-0. Patterns:");
        list_patterns(stdout);
        return 0;
    }
    if (count != 1 && (count < 5 || count > 7 || (count == 7 && strcmp(words[6], "spans") != 0)))
        fail("%s", USAGE "; --help lists the patterns");
    const char *image, *arm;
    int steps;
    if (!parse(count, words, &image, &arm, &steps))
        fail("STEPS is a number from 1 to %d, N a multiple of %d from 64 to %d", MOST_STEPS, WIDTH, MOST_POINTS);
    pattern = pattern_of(count > 1 ? words[4] : "stencil/style-0");
    if (with_spans && (pattern->iterate != stencil || pattern->graph))
        fail("spans are of a stencil/ or host-staged/ pattern without a graph");
    void *const context = open_gpu();
    open_kernels(load_cubin(strcmp(image, "-") == 0 ? own_image() : image));
    open_streams(arm);
    open_memory();
    open_events(steps);
    if (pattern->iterate == logger)
        start_logger(context);
    if (pattern->warm_up)
        collective(compute, 0);
    run(arm, steps);
    print(count == 1, steps);
    if (with_spans)
        print_spans(steps);
    return fflush(stdout) == 0 ? 0 : 1;
}
