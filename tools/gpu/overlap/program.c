/* SPDX-License-Identifier: Apache-2.0
 * Computation beside a stand-in for a collective: a server. A request a line on stdin, a JSON object a line on stdout.
 *
 *   program CUBIN DEMO-CUBIN
 *
 *   describe KERNEL                what is launched; for every number of resident blocks the least dynamic size
 *   check KERNEL                   runs it once and compares 65,536 numbers of its result with a plain loop
 *   sample KERNEL KEY=NUMBER ...   runs and times it; keys: those of program.h
 *
 * KERNEL is of the table in program.h; `copy` is the collective. It knows nothing of overlap-run and uses the driver as
 * PyTorch with NCCL does: two streams, events between them. A sample, in the order of host calls:
 *
 *   pairs (count=1: one kernel)    start; computation and communication, both needed before the next pair
 *   loop                           computation, then its collective beside the next computation
 *
 * Times are of events: `ms` from the common start until both parts have ended; of each part the time from when it might
 * start until its end, summed over the sample. first_us and last_us: from when communication was ready until its first
 * and its last block started, by %globaltimer; null where kernels are not executed.
 */
#include "program.h"

static void *compute, *usual_stream, *greatest_stream;
static void *stamp, *fill, *compare;
static void *start, *stop, *gate;
static struct {
    void *ready, *ended, *sent, *arrived; /* computation: may start, has ended; communication: likewise */
} rounds[MOST_ROUNDS];
static uint64_t marks, from, to;
static long copied_bytes, host_bytes;
static void *host_to;
static int most_dynamic;

static struct kernel *kernel_of(const char *name) {
    for (int i = 0; i < KERNELS; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    fail("no kernel is called %s", name);
}

static uint64_t filled(long numbers, unsigned seed, int halves) {
    uint64_t address = 0;
    check(cuMemAlloc_v2(&address, (size_t)numbers * (halves ? 2 : 4)), "memory");
    check(cuLaunchKernel(fill, 100, 1, 1, 256, 1, 1, 0, compute, (void *[]){&address, &numbers, &seed, &halves}, NULL),
          "fill");
    return address;
}

static void make_buffers(struct kernel *kernel) {
    for (int i = 0; i < 3; i++)
        if (kernel->buffer[i] == 0 && kernel->numbers[i] > 0)
            kernel->buffer[i] = filled(kernel->numbers[i], (unsigned)i + 1, i < 2 && kernel->kind == HALF_PRODUCT);
}

static void make_room(long bytes, bool host) {
    if (bytes > copied_bytes) { /* the smaller ones are few, and left where they are */
        from = filled(bytes / 4, 7, 0);
        to = filled(bytes / 4, 8, 0);
        copied_bytes = bytes;
    }
    if (host && bytes > host_bytes) {
        check(cuMemHostAlloc(&host_to, (size_t)bytes, 0), "memory of the host");
        host_bytes = bytes;
    }
}

static void launch_computation(struct kernel *kernel, const struct sample *s) {
    uint64_t *const b = kernel->buffer;
    const unsigned grid = s->grid ? (unsigned)s->grid : kernel->blocks, across = kernel->across ? kernel->across : grid;
    const unsigned dynamic = s->dynamic ? (unsigned)s->dynamic : kernel->dynamic;
    check(cuLaunchKernel(kernel->function, across, grid / across, 1, kernel->threads, 1, 1, dynamic, compute,
                         (void *[]){&b[0], &b[1], &b[2], &kernel->n, &kernel->k, &kernel->m}, NULL),
          kernel->symbol);
}

static void launch_communication(const struct sample *s, int round, void *stream) {
    struct attribute attributes[2] = {{.id = CLUSTER, .value.dimension = {(unsigned)s->cluster, 1, 1}},
                                      {.id = COMPLETION_EVENT, .value.event = gate}};
    const bool cluster = s->cluster > 1;
    const struct config config = {.grid = {(unsigned)s->blocks, 1, 1},
                                  .block = {(unsigned)s->threads, 1, 1},
                                  .shared = COPY_DYNAMIC,
                                  .stream = stream,
                                  .attributes = cluster ? attributes : attributes + 1,
                                  .count = (unsigned)cluster + (unsigned)(s->gate != 0)};
    uint64_t target = s->host ? (uint64_t)(uintptr_t)host_to : to;
    uint64_t mark = marks + (uint64_t)round * MOST_BLOCKS * sizeof(struct mark);
    long vectors = s->bytes / 16, rate = s->rate;
    if (!s->engine)
        check(
            cuLaunchKernelEx(&config, copy_kernel->function, (void *[]){&from, &target, &vectors, &rate, &mark}, NULL),
            copy_kernel->symbol);
    else if (s->host)
        check(cuMemcpyDtoHAsync_v2(host_to, from, (size_t)s->bytes, stream), "copy");
    else
        check(cuMemcpyDtoDAsync_v2(to, from, (size_t)s->bytes, stream), "copy");
}

static void wait_us(long us) {
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000000 + (now.tv_nsec - begun.tv_nsec) / 1000 < us);
}

static void record(void *event, void *stream) {
    check(cuEventRecord(event, stream), "event");
}

static void wait_for(void *stream, void *event) {
    check(cuStreamWaitEvent(stream, event, 0), "event");
}

static void do_computation(struct kernel *kernel, const struct sample *s, int round) {
    record(rounds[round].ready, compute);
    if (s->computation)
        launch_computation(kernel, s);
    record(rounds[round].ended, compute);
}

static void do_communication(const struct sample *s, int round, void *stream, void *after) {
    wait_for(stream, after);
    record(rounds[round].sent, stream);
    if (s->communication)
        launch_communication(s, round, stream);
    record(rounds[round].arrived, stream);
    if (s->gate)
        wait_for(compute, gate);
}

static void run(struct kernel *kernel, const struct sample *s) {
    void *const stream = s->sequential ? compute : s->priority ? greatest_stream : usual_stream;
    check(cuCtxSynchronize(), "before a sample");
    uint64_t zero = marks + MOST_ROUNDS * MOST_BLOCKS * sizeof(struct mark);
    check(cuLaunchKernel(stamp, 1, 1, 1, 1, 1, 1, 0, compute, (void *[]){&zero}, NULL), "stamp");
    record(start, compute);
    for (int i = 0; i < s->count; i++) {
        if (s->loop) {
            do_computation(kernel, s, i);
            do_communication(s, i, stream, rounds[i].ended);
            continue;
        }
        void *const after = i > 0 ? rounds[i - 1].ended : start;
        if (s->first)
            do_communication(s, i, stream, after);
        else
            do_computation(kernel, s, i);
        if (s->offset_us > 0)
            wait_us(s->offset_us);
        if (s->first)
            do_computation(kernel, s, i);
        else
            do_communication(s, i, stream, after);
        wait_for(compute, rounds[i].arrived);
    }
    wait_for(compute, rounds[s->count - 1].arrived);
    record(stop, compute);
    check(cuCtxSynchronize(), "a sample");
}

static double elapsed(void *begin, void *end) {
    float milliseconds = 0;
    check(cuEventElapsedTime(&milliseconds, begin, end), "event");
    return (double)milliseconds;
}

/* The mean over the collectives of a sample, from ready until the first and until the last block. */
static void say_waits(const struct sample *s) {
    static struct mark seen[(MOST_ROUNDS + 1) * MOST_BLOCKS];
    double first = 0, last = 0;
    check(cuMemcpyDtoH_v2(seen, marks, sizeof seen), "marks");
    const uint64_t zero = seen[MOST_ROUNDS * MOST_BLOCKS].start;
    for (int i = 0; i < s->count; i++) {
        const double ready = elapsed(start, rounds[i].sent) * 1e3;
        uint64_t earliest = UINT64_MAX, latest = 0;
        for (int block = 0; block < s->blocks; block++) {
            const uint64_t begun = seen[i * MOST_BLOCKS + block].start;
            earliest = begun < earliest ? begun : earliest;
            latest = begun > latest ? begun : latest;
        }
        first += ((double)(int64_t)(earliest - zero) / 1e3 - ready) / (double)s->count;
        last += ((double)(int64_t)(latest - zero) / 1e3 - ready) / (double)s->count;
    }
    if (zero > 0 && s->communication && !s->engine)
        printf(",\"first_us\":%.2f,\"last_us\":%.2f", first, last);
}

static struct sample read_sample(void) {
    struct sample s = usual;
    for (char *word = strtok(NULL, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        char *const value = strchr(word, '=');
        size_t found = 0;
        if (value == NULL)
            fail("a sample has no %s", word);
        *value = '\0';
        while (found < sizeof keys / sizeof *keys && strcmp(keys[found].name, word) != 0)
            found++;
        if (found == sizeof keys / sizeof *keys)
            fail("a sample has no %s", word);
        const long number = atol(value + 1);
        memcpy((char *)&s + keys[found].offset, &number, sizeof number);
    }
    if (s.count < 1 || s.count > MOST_ROUNDS || s.blocks < 1 || s.blocks > MOST_BLOCKS)
        fail("a sample has 1 to %d rounds and 1 to %d blocks of communication", MOST_ROUNDS, MOST_BLOCKS);
    return s;
}

static void answer_sample(struct kernel *kernel) {
    const struct sample s = read_sample();
    double computation = 0, communication = 0;
    make_buffers(kernel);
    make_room(s.bytes, s.host != 0);
    if (kernel->carveout != s.carveout) { /* behind a policy nobody asks for it: it is the policy's, then */
        check(cuFuncSetAttribute(kernel->function, FUNCTION_CARVEOUT, (int)s.carveout), "carve-out");
        kernel->carveout = (int)s.carveout;
    }
    for (long i = 0; i <= s.warm; i++)
        run(kernel, &s);
    for (int i = 0; i < s.count; i++) {
        computation += elapsed(rounds[i].ready, rounds[i].ended);
        communication += elapsed(rounds[i].sent, rounds[i].arrived);
    }
    printf("{\"ms\":%.5f,\"computation_ms\":%.5f,\"communication_ms\":%.5f", elapsed(start, stop), computation,
           communication);
    say_waits(&s);
    printf("}\n");
}

static int attribute_of(const struct kernel *kernel, int attribute) {
    int value = 0;
    check(cuFuncGetAttribute(&value, attribute, kernel->function), kernel->symbol);
    return value;
}

static int resident(const struct kernel *kernel, int dynamic) {
    int blocks = 0;
    check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->function, (int)kernel->threads, (size_t)dynamic),
          kernel->symbol);
    return blocks;
}

static void answer_describe(const struct kernel *kernel) {
    const int fixed = attribute_of(kernel, FUNCTION_STATIC), own = (int)kernel->dynamic;
    const int most = most_dynamic - fixed, native = resident(kernel, own);
    const long *const numbers = kernel->numbers, size = kernel->kind == HALF_PRODUCT ? 2 : 4;
    printf(
        "{\"symbol\":\"%s\",\"threads\":%u,\"registers\":%d,\"static\":%d,\"dynamic\":%d,\"blocks\":%u,\"bytes\":%ld,"
        "\"resident_blocks\":%d,\"most_dynamic\":%d,\"sizes\":{",
        kernel->symbol, kernel->threads, attribute_of(kernel, FUNCTION_REGISTERS), fixed, own, kernel->blocks,
        (numbers[0] + numbers[1]) * size + numbers[2] * 4, native, most);
    for (int wanted = native - 1, count = 0; wanted > 0; wanted--) {
        int low = own, high = most; /* more than `wanted` at low; at most so many at high */
        if (resident(kernel, high) > wanted)
            break;
        while (high - low > 1)
            *(resident(kernel, (low + high) / 2) > wanted ? &low : &high) = (low + high) / 2;
        if (resident(kernel, high) == wanted)
            printf("%s\"%d\":%d", count++ ? "," : "", wanted, high);
    }
    printf("}}\n");
}

static void answer_check(struct kernel *kernel) {
    const struct sample s = {.computation = kernel != copy_kernel,
                             .communication = kernel == copy_kernel,
                             .count = 1,
                             .bytes = 1 << 26,
                             .blocks = COPY_BLOCKS,
                             .threads = COPY_THREADS,
                             .cluster = COPY_CLUSTER};
    uint64_t wrong = 0;
    unsigned count = 0;
    int kind = (int)kernel->kind;
    long m = kernel->m, n = kernel->n, k = kernel->k;
    make_buffers(kernel);
    make_room(s.bytes, false);
    run(kernel, &s);
    uint64_t *const b = kernel->buffer;
    void *arguments[] = {&kind, &b[0], &b[1], &b[2], &m, &n, &k, &wrong};
    if (kernel->kind >= ELEMENTWISE) { /* m and n are of its work on a block; here: all numbers */
        m = kernel->kind == COPY ? 1 << 14 : kernel->numbers[2] / 4096;
        n = kernel->kind == COPY ? 1 << 10 : 4096;
    }
    if (kernel == copy_kernel) {
        arguments[1] = &from;
        arguments[3] = &to;
    }
    check(cuMemAlloc_v2(&wrong, 4), "memory");
    check(cuMemsetD32_v2(wrong, 0, 1), "memory");
    check(cuLaunchKernel(compare, LOOKED / 256, 1, 1, 256, 1, 1, 0, compute, arguments, NULL), "compare");
    check(cuMemcpyDtoH_v2(&count, wrong, 4), "compare");
    printf("{\"looked\":%d,\"wrong\":%u}\n", LOOKED, count);
}

static void open_all(char **arguments) {
    void *context = NULL;
    int least = 0, greatest = 0;
    open_driver();
    check(cuInit(0), "no GPU");
    check(cuDevicePrimaryCtxRetain(&context, 0), "no GPU");
    check(cuCtxSetCurrent(context), "no GPU");
    check(cuDeviceGetAttribute(&most_dynamic, OPT_IN_SHARED, 0), "no GPU");
    check(cuCtxGetStreamPriorityRange(&least, &greatest), "priorities");
    void *const own = load_cubin(arguments[1]), *const demo = load_cubin(arguments[2]);
    for (int i = 0; i < KERNELS; i++) {
        struct kernel *const kernel = &kernels[i];
        check(cuModuleGetFunction(&kernel->function, strcmp(kernel->name, "simt") ? own : demo, kernel->symbol),
              kernel->symbol);
        check(cuFuncSetAttribute(kernel->function, FUNCTION_MAX_DYNAMIC,
                                 most_dynamic - attribute_of(kernel, FUNCTION_STATIC)),
              kernel->symbol);
    }
    check(cuModuleGetFunction(&stamp, own, "stamp"), "stamp");
    check(cuModuleGetFunction(&fill, own, "fill"), "fill");
    check(cuModuleGetFunction(&compare, own, "compare"), "compare");
    check(cuStreamCreateWithPriority(&compute, NON_BLOCKING, least), "stream");
    check(cuStreamCreateWithPriority(&usual_stream, NON_BLOCKING, least), "stream");
    check(cuStreamCreateWithPriority(&greatest_stream, NON_BLOCKING, greatest), "stream");
    check(cuEventCreate(&start, 0), "event");
    check(cuEventCreate(&stop, 0), "event");
    check(cuEventCreate(&gate, NO_TIMING), "event");
    for (int i = 0; i < MOST_ROUNDS; i++)
        for (int event = 0; event < 4; event++)
            check(cuEventCreate(
                      (void *[]){&rounds[i].ready, &rounds[i].ended, &rounds[i].sent, &rounds[i].arrived}[event], 0),
                  "event");
    check(cuMemAlloc_v2(&marks, (MOST_ROUNDS + 1) * MOST_BLOCKS * sizeof(struct mark)), "memory");
    check(cuMemsetD32_v2(marks, 0, (MOST_ROUNDS + 1) * MOST_BLOCKS * sizeof(struct mark) / 4), "memory");
}

int main(int count, char **arguments) {
    static char line[4096];
    if (count != 3)
        fail("usage: standins-program CUBIN DEMO-CUBIN");
    open_all(arguments);
    printf("{\"ready\":true}\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        const char *const verb = strtok(line, " \n"), *const name = strtok(NULL, " \n");
        if (verb == NULL || name == NULL)
            fail("a request is a verb and a kernel");
        struct kernel *const kernel = kernel_of(name);
        if (strcmp(verb, "sample") == 0)
            answer_sample(kernel);
        else if (strcmp(verb, "describe") == 0)
            answer_describe(kernel);
        else if (strcmp(verb, "check") == 0)
            answer_check(kernel);
        else
            fail("no request is called %s", verb);
        if (fflush(stdout) != 0)
            return 1;
    }
    return 0;
}
