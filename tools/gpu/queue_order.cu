// Who enters first? Three kernels on three streams: A holds the GPU, then B is launched, then C.
//   Does B enter only in the tail of A, though it would fit beside A's blocks at once?
//   Does a B that fits nowhere keep out a C that would fit, and do priorities change that?
//
//   nvcc -O2 -std=c++17 -arch=sm_90 queue_order.cu -o queue_order && ./queue_order [REPETITIONS]
//
// Layouts: `fits`: A is a long grid, and one small block of each of B and C fits beside its blocks. `nowhere, many waves`:
// the same A, but B's block needs a whole multiprocessor. `nowhere, one wave`: likewise, all of A's blocks run already.
// `in part`: A holds 100 multiprocessors, and B, a whole one for each of its 64 blocks, the others. One JSON line a run: waits
// are counted from the return of the launch call; a negative start_after_a_us: before the last block of A has started.
#include "blocks.h"

static const double B_US = 300, C_US = 350; // when they are launched

struct Layout {
    const char *name;
    int a_blocks, a_bytes, a_us, spread, b_blocks, b_bytes, b_us;
};

struct Priorities {
    const char *name;
    int a, b, c; // 0: the least
};

// Some KiB less than they could be: a block without shared memory takes one, too.
static const int WHOLE = 225280, HALF = 112640, SMALL_US = 20;
static const Layout LAYOUTS[] = {
    {"fits", 132 * 2 * 10, HALF, 200, 1, 1, 0, SMALL_US},
    {"nowhere, many waves", 132 * 2 * 10, HALF, 200, 1, 1, WHOLE, SMALL_US},
    {"nowhere, one wave", 132 * 2, HALF, 1500, 0, 1, WHOLE, SMALL_US},
    {"in part", 100, WHOLE, 1500, 0, 64, WHOLE, 1000},
};
static const Priorities PRIORITIES[] = {
    {"equal", 0, 0, 0},     {"B raised", 0, 1, 0},  {"C raised", 0, 0, 1},  {"both raised", 0, 1, 1},
    {"B above C", 0, 2, 1}, {"C above B", 0, 1, 2}, {"A above B", 2, 0, 0}, {"A above B, C with A", 2, 0, 2},
};

// Blocks of `marks` that started in [from, to).
static int starts(const std::vector<Mark> &marks, double from, double to) {
    return (int)std::count_if(marks.begin(), marks.end(),
                              [&](const Mark &mark) { return (double)mark.start >= from && (double)mark.start < to; });
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? atoi(argv[1]) : 20, least, greatest;
    cudaStream_t streams[3][3];
    Mark *marks[3];
    Nanoseconds *seen;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (int kernel = 0; kernel < 3; kernel++) {
        CHECK(cudaMalloc(&marks[kernel], sizeof(Mark) * 132 * 2 * 10));
        for (int level = 0; level < 3; level++)
            CHECK(cudaStreamCreateWithPriority(&streams[kernel][level], cudaStreamNonBlocking, least - level));
    }
    CHECK(cudaHostAlloc(&seen, sizeof *seen, cudaHostAllocMapped));
    allow(spin, 100);
    allow(stamp, 100);
    describe_machine("queue order");
    for (int repetition = 0; repetition < repetitions; repetition++)
        for (const Layout &layout : LAYOUTS)
            for (const Priorities &priorities : PRIORITIES) {
                cudaStream_t a_stream = streams[0][priorities.a];
                double offset = clock_offset(seen, a_stream), begun = host_clock();
                launch({a_stream, layout.a_blocks, 128, (size_t)layout.a_bytes, 1}, spin, marks[0],
                       (Nanoseconds)layout.a_us * 1000, layout.spread);
                wait_us(B_US - (host_clock() - begun) / 1e3);
                launch({streams[1][priorities.b], layout.b_blocks, 128, (size_t)layout.b_bytes, 1}, spin, marks[1],
                       (Nanoseconds)layout.b_us * 1000, 0);
                double b_arrival = host_clock() + offset;
                wait_us(C_US - (host_clock() - begun) / 1e3);
                launch({streams[2][priorities.c], 1, 32, 0, 1}, spin, marks[2], (Nanoseconds)SMALL_US * 1000, 0);
                double c_arrival = host_clock() + offset;
                CHECK(cudaDeviceSynchronize());
                std::vector<Mark> lows = read_marks(marks[0], layout.a_blocks),
                                  bs = read_marks(marks[1], layout.b_blocks), cs = read_marks(marks[2], 1);
                Span a = span_of(lows), b = span_of(bs), c = span_of(cs);
                printf("{\"layout\":\"%s\",\"priorities\":\"%s\",\"repetition\":%d,\"a_us\":%.1f,\"b_wait_us\":%.1f,"
                       "\"b_last_wait_us\":%.1f,\"c_wait_us\":%.1f,\"b_start_after_a_us\":%.1f,"
                       "\"c_start_after_a_us\":%.1f,\"c_start_after_b_us\":%.1f,\"b_blocks_before_c\":%d,"
                       "\"a_starts_while_b_waits\":%d,\"a_starts_while_c_waits\":%d}\n",
                       layout.name, priorities.name, repetition, (a.end - a.first) / 1e3, (b.first - b_arrival) / 1e3,
                       (b.last - b_arrival) / 1e3, (c.first - c_arrival) / 1e3, (b.first - a.last) / 1e3,
                       (c.first - a.last) / 1e3, (c.first - b.last) / 1e3, starts(bs, 0, c.first),
                       starts(lows, b_arrival + 10e3, b.last), starts(lows, c_arrival + 10e3, c.first));
                fflush(stdout);
            }
    return 0;
}
