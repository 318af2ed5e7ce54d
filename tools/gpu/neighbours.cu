// Which blocks of communication start beside blocks of computation? A matrix of footprints, to be compared with what the
// planner says of them (neighbours_check.py).
//
// Low: one wave that fills the GPU, so many blocks on each multiprocessor as the driver says, for 600 us. High: 32 blocks of
// 96 registers, as NCCL's have, of the greatest priority, 100 us later.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 neighbours.cu -o neighbours && ./neighbours [REPETITIONS]
//
// Low has no or 48 KiB of dynamic shared memory, or a size that leaves two blocks or one on a multiprocessor. Carve-outs, of low and of high: the driver's choice or the largest. One JSON line a run: of the 32 blocks,
// `beside` started beside blocks of low that had 50 us left; `resident`: the most blocks of low on one multiprocessor;
// last_us: until the last one started.
#include "blocks.h"

static const int HIGH = 32;
static const double LOW_US = 600, HIGH_US = 20, LEFT_US = 50;

typedef void (*Kernel)(Mark *, Nanoseconds, volatile float *);
static const Kernel LOWS[] = {hold_registers<32>, hold_registers<64>, hold_registers<128>, hold_registers<168>,
                              hold_registers<224>};
static const int LOW_THREADS[] = {96, 128, 160, 256, 384};
// 76,801 leaves two blocks, 115,713 one; beside one of 128,256 there is room for 103,072, beside the next size for less.
static const int LOW_BYTES[] = {0, 49152, 76801, 115713, 128256, 128384};
static const int HIGH_THREADS[] = {288, 544, 640};
// Dynamic bytes: a third of NCCL's, and what 2.28 (20,832 + 82,240) and 2.30 (36,800 + 82,240) have in all.
static const int HIGH_BYTES[] = {51200, 103072, 119040};
static const int CARVEOUTS[][2] = {{-1, -1}, {100, -1}, {100, 100}};

struct Side {
    Kernel kernel;
    int threads, bytes, carveout;
};

static cudaStream_t low_stream, high_stream;
static Mark *low_marks, *high_marks;
static float *numbers;
static int sms;

static int resident(const Side &side) {
    int blocks = 0;
    allow(side.kernel, side.carveout);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, side.kernel, side.threads, (size_t)side.bytes));
    return blocks;
}

static void start(const Side &side, cudaStream_t stream, int blocks, Mark *marks, double duration) {
    launch({stream, blocks, side.threads, (size_t)side.bytes, 1}, side.kernel, marks, (Nanoseconds)(duration * 1e3),
           (volatile float *)numbers);
}

static int registers(const Side &side) {
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, side.kernel));
    return attributes.numRegs;
}

static void run(const Side &low, const Side &high, int repetition, double offset) {
    int native = resident(low), blocks = native * sms, beside = 0;
    size_t most = 0;
    if (native == 0) // too many registers
        return;
    allow(high.kernel, high.carveout);
    start(low, low_stream, blocks, low_marks, LOW_US);
    wait_us(100);
    start(high, high_stream, HIGH, high_marks, HIGH_US);
    double arrival = host_clock() + offset;
    CHECK(cudaDeviceSynchronize());
    std::vector<Mark> highs = read_marks(high_marks, HIGH);
    auto lows = by_multiprocessor(read_marks(low_marks, blocks), sms);
    for (const Mark &mark : highs)
        beside += std::any_of(lows[mark.sm].begin(), lows[mark.sm].end(), [&](const Mark &other) {
            return other.start < mark.start && (double)other.end > (double)mark.start + LEFT_US * 1e3;
        });
    for (auto &list : lows)
        most = std::max(most, list.size());
    printf("{\"low\":{\"threads\":%d,\"registers\":%d,\"dynamic\":%d,\"blocks\":%d},"
           "\"high\":{\"threads\":%d,\"registers\":%d,\"dynamic\":%d},\"carveout\":[%d,%d],\"repetition\":%d,"
           "\"resident\":%zu,\"beside\":%d,\"last_us\":%.1f}\n",
           low.threads, registers(low), low.bytes, native, high.threads, registers(high), high.bytes, low.carveout,
           high.carveout, repetition, most, beside, (span_of(highs).last - arrival) / 1e3);
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? atoi(argv[1]) : 3, least, greatest;
    cudaDeviceProp device;
    Nanoseconds *seen;
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    sms = device.multiProcessorCount;
    CHECK(cudaStreamCreateWithPriority(&low_stream, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&high_stream, cudaStreamNonBlocking, greatest));
    CHECK(cudaMalloc(&low_marks, sizeof(Mark) * (size_t)(sms * 32)));
    CHECK(cudaMalloc(&high_marks, sizeof(Mark) * HIGH));
    CHECK(cudaMalloc(&numbers, 4096));
    CHECK(cudaMemset(numbers, 0, 4096));
    CHECK(cudaHostAlloc(&seen, sizeof *seen, cudaHostAllocMapped));
    describe_machine("neighbours");
    for (int repetition = 0; repetition < repetitions; repetition++) {
        double offset = clock_offset(seen, high_stream);
        for (Kernel kernel : LOWS)
            for (int threads : LOW_THREADS)
                for (int bytes : LOW_BYTES)
                    for (int high_threads : HIGH_THREADS)
                        for (int high_bytes : HIGH_BYTES)
                            for (auto &carveout : CARVEOUTS)
                                run({kernel, threads, bytes, carveout[0]},
                                    {hold_registers<96>, high_threads, high_bytes, carveout[1]}, repetition, offset);
    }
    return 0;
}
