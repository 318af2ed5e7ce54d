// How long does communication wait, what does its waiting cost computation, and which control shortens it? A kernel like NCCL's
// (96 registers, 103,072 bytes) is launched 0.3 ms after a long grid of the least priority.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 raised.cu -o raised && ./raised cost|clusters|controls [REPETITIONS]
//
// `cost`: how the price of hold depends on the grid's blocks (k on a multiprocessor, of block_us, give or take a half) and on
// the blocks c of communication. `clusters`: sizes 1 to 8, at equal and at raised priority. `controls`: what else than
// priority helps: clusters of 1, fewer threads, the largest carve-out for the grid, the grid shaped to fewer blocks (then with
// that carve-out). A shaped block takes as long as before (`latency`: shaping costs most), or shorter as it has more of the
// multiprocessor (`throughput`: shaping costs nothing); real kernels are between the two. The grid is limited by shared memory, which
// its blocks fill, or by threads.
//
// One JSON line a run. first_us, last_us, done_us: start of the first and the last block of communication, end of all, from the
// return of its launch call. lost_sm_us: places of the grid that were empty from then until 10 us behind the last start, over k,
// summed over multiprocessors, each until communication starts on it, less what refilling leaves empty (as in the 150 us before).
// held, refilled: multiprocessors without communication on which blocks of the grid ended meanwhile, and those on which
// others started. beside: blocks of communication that started beside blocks of the grid. grid_us: the grid, whole.
#include "blocks.h"

#include <string>

static const int SMS = 132, MOST_HIGH = 64;
static const size_t WHOLE = 233472, HIGH_BYTES = 103072;
static const double HIGH_US = 100, LAUNCH_US = 300, SETTLE_US = 10;

struct Low {
    int k;
    bool by_threads;
    double block_us;
};

struct Arm {
    const char *name;
    bool launched, raised;
    int cluster, threads, carveout, shaped; // shaped: to so many blocks; 0: as launched
    bool throughput;
};

static Mark *low_marks, *high_marks;
static float *numbers;
static Nanoseconds *seen;
static cudaStream_t low_stream, equal_stream, raised_stream;

// Time that places of the grid were empty on one multiprocessor, in places x ns.
static double empty(const std::vector<Mark> &list, double from, double to, int k) {
    double busy = 0;
    for (const Mark &mark : list)
        busy += std::max(0.0, std::min((double)mark.end, to) - std::max((double)mark.start, from));
    return std::max(0.0, k * (to - from) - busy);
}

static void run(const char *mode, const Low &low, const Arm &arm, int c, int repetition) {
    int waves = std::max(8, (int)(1500 / low.block_us)), blocks = waves * low.k * SMS, k = low.k;
    size_t bytes = low.by_threads ? 0 : std::min((WHOLE / (size_t)low.k - 1024) / 128 * 128, (size_t)232448);
    double block_us = low.block_us;
    if (arm.shaped) {
        k = arm.shaped;
        bytes = std::max(bytes, WHOLE / (size_t)(k + 1) - 1024 + 1);
        if (arm.throughput)
            block_us = block_us * k / low.k;
    }
    allow(spin, arm.carveout);
    cudaStream_t stream = arm.raised ? raised_stream : equal_stream;
    double offset = clock_offset(seen, stream);
    launch({low_stream, blocks, low.by_threads ? 2048 / low.k : 128, bytes, 1}, spin, low_marks,
           (Nanoseconds)(block_us * 1e3), 1);
    wait_us(LAUNCH_US);
    if (arm.launched)
        launch({stream, c, arm.threads, HIGH_BYTES, arm.cluster}, hold_registers<96>, high_marks,
               (Nanoseconds)(HIGH_US * 1e3), (volatile float *)numbers);
    double arrival = host_clock() + offset;
    CHECK(cudaDeviceSynchronize());
    std::vector<Mark> lows = read_marks(low_marks, blocks);
    Span grid = span_of(lows);
    printf("{\"mode\":\"%s\",\"k\":%d,\"limit\":\"%s\",\"block_us\":%.0f,\"arm\":\"%s\",\"c\":%d,\"cluster\":%d,"
           "\"threads\":%d,\"carveout\":%d,\"shaped\":%d,\"work\":\"%s\",\"repetition\":%d,\"grid_us\":%.1f",
           mode, low.k, low.by_threads ? "threads" : "shared memory", low.block_us, arm.name, arm.launched ? c : 0,
           arm.cluster, arm.threads, arm.carveout, arm.shaped, arm.throughput ? "throughput" : "latency", repetition,
           (grid.end - grid.first) / 1e3);
    if (arm.launched) {
        std::vector<Mark> highs = read_marks(high_marks, c);
        Span span = span_of(highs);
        auto by_sm = by_multiprocessor(lows, SMS), high_by_sm = by_multiprocessor(highs, SMS);
        double lost = 0, until = span.last + SETTLE_US * 1e3;
        int held = 0, refilled = 0, beside = 0;
        for (size_t sm = 0; sm < (size_t)SMS; sm++) {
            double to = high_by_sm[sm].empty() ? until : (double)high_by_sm[sm][0].start;
            double usual = empty(by_sm[sm], arrival - 150e3, arrival, k) / 150e3;
            bool ended = false, started = false;
            if (to > arrival)
                lost += empty(by_sm[sm], arrival, to, k) - usual * (to - arrival);
            for (const Mark &mark : by_sm[sm]) {
                ended = ended || ((double)mark.end > arrival + 10e3 && (double)mark.end < span.last);
                started = started || ((double)mark.start > arrival + 10e3 && (double)mark.start < span.last);
            }
            if (high_by_sm[sm].empty()) {
                held += ended && !started;
                refilled += started;
            }
            for (const Mark &mark : high_by_sm[sm])
                beside += std::any_of(by_sm[sm].begin(), by_sm[sm].end(), [&](const Mark &other) {
                    return other.start < mark.start && other.end > mark.start;
                });
        }
        printf(",\"first_us\":%.1f,\"last_us\":%.1f,\"done_us\":%.1f,\"grid_left_us\":%.1f,\"beside\":%d",
               (span.first - arrival) / 1e3, (span.last - arrival) / 1e3, (span.end - arrival) / 1e3,
               (grid.end - arrival) / 1e3, beside);
        if (grid.last > until) // else places are empty because the grid ends
            printf(",\"lost_sm_us\":%.1f,\"held\":%d,\"refilled\":%d", lost / 1e3 / k, held, refilled);
    }
    printf("}\n");
    fflush(stdout);
}

static void cost(int repetition) {
    for (double block_us : {20.0, 50.0, 100.0, 200.0, 400.0})
        for (int k : {1, 2, 4, 8, 16}) {
            Low low = {k, false, block_us};
            run("cost", low, {"alone", false, false, 1, 640, -1, 0, false}, 0, repetition);
            for (int c : {1, 8, 16, 32, 64}) {
                run("cost", low, {"priority, cluster 1", true, true, 1, 640, -1, 0, false}, c, repetition);
                if (c % 4 == 0)
                    run("cost", low, {"priority", true, true, 4, 640, -1, 0, false}, c, repetition);
            }
        }
}

static void clusters(int repetition) {
    for (int k : {1, 4, 16})
        for (int cluster : {1, 2, 4, 8})
            for (bool raised : {false, true})
                run("clusters", {k, false, 200},
                    {raised ? "priority" : "equal priority", true, raised, cluster, 640, -1, 0, false}, 32, repetition);
}

static const Arm ARMS[] = {
    {"alone", false, false, 1, 640, -1, 0, false},
    {"equal priority", true, false, 4, 640, -1, 0, false},
    {"priority", true, true, 4, 640, -1, 0, false},
    {"priority, cluster 1", true, true, 1, 640, -1, 0, false},
    {"priority, cluster 1, 288 threads", true, true, 1, 288, -1, 0, false},
    {"priority, cluster 1, 160 threads", true, true, 1, 160, -1, 0, false},
    {"priority, carve-out", true, true, 4, 640, 100, 0, false},
    {"priority, cluster 1, carve-out", true, true, 1, 640, 100, 0, false},
    {"priority, cluster 1, 288 threads, carve-out", true, true, 1, 288, 100, 0, false},
};

static void controls(int repetition) {
    for (bool by_threads : {false, true})
        for (int k : {1, 2, 4, 8, 16}) {
            if (by_threads && k == 1) // a block of 2,048 threads is none
                continue;
            Low low = {k, by_threads, 200};
            for (int c : {8, 32}) {
                for (const Arm &arm : ARMS)
                    if (arm.launched || c == 8)
                        run("controls", low, arm, c, repetition);
                for (int shaped = 1; shaped < k; shaped *= 2)
                    for (bool throughput : {false, true}) {
                        std::string name = "shape-" + std::to_string(shaped) + " + priority";
                        std::string one = name + ", cluster 1";
                        if (c == 8)
                            run("controls", low, {"shape alone", false, false, 4, 640, 100, shaped, throughput}, 0,
                                repetition);
                        run("controls", low, {name.c_str(), true, true, 4, 640, 100, shaped, throughput}, c,
                            repetition);
                        run("controls", low, {one.c_str(), true, true, 1, 640, 100, shaped, throughput}, c, repetition);
                    }
            }
        }
}

int main(int argc, char **argv) {
    std::string mode = argc > 1 ? argv[1] : "";
    int repetitions = argc > 2 ? atoi(argv[2]) : 5, least, greatest;
    void (*modes)(int) = mode == "cost"       ? cost
                         : mode == "clusters" ? clusters
                         : mode == "controls" ? controls
                                              : nullptr;
    if (!modes) {
        fprintf(stderr, "usage: raised cost|clusters|controls [REPETITIONS]\n");
        return 2;
    }
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&low_stream, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&equal_stream, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&raised_stream, cudaStreamNonBlocking, greatest));
    CHECK(cudaMalloc(&low_marks, sizeof(Mark) * (size_t)(75 * 16 * SMS)));
    CHECK(cudaMalloc(&high_marks, sizeof(Mark) * MOST_HIGH));
    CHECK(cudaMalloc(&numbers, 4096));
    CHECK(cudaMemset(numbers, 0, 4096));
    CHECK(cudaHostAlloc(&seen, sizeof *seen, cudaHostAllocMapped));
    allow(hold_registers<96>, -1);
    describe_machine(("raised: " + mode).c_str());
    for (int repetition = 0; repetition < repetitions; repetition++)
        modes(repetition);
    return 0;
}
