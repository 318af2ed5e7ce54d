// Does room that a policy makes let communication in? A kernel like NCCL's (288 threads of 96 registers, 103,072 bytes) is
// launched 0.7 ms after a long grid of the least priority, and both say by the GPU's clock when and where they ran. THREADS=640
// makes it as large as NCCL's largest.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 room.cu -o room && [overlap-run --policy P] ./room [REPETITIONS [LOW ...]]
//
// LOW, the long grid: `hold N` holds its places for 200 us, give or take a half, in blocks of N threads of 16 registers,
// of which a multiprocessor holds 2048 / N; `arithmetic` and `copy` are bound by what their name says, and `cached` reads
// again and again what fits into the L1 cache unless the carve-out leaves it little. The program asks neither for
// priorities nor about occupancy, but for the way `own`, so what differs between policies is theirs. With OWN_CARVEOUT=1 it
// sets the carve-out of communication to the driver's choice, so that a policy leaves that one alone.
//
// One JSON line a run: waits are counted from the return of the launch call. `alone`: the long grid without communication.
#include "blocks.h"

static const int SMS = 132, HIGH = 32, WAVES = 12, HIGH_DYNAMIC = 82240;
static const Nanoseconds LOW_NS = 200000, HIGH_NS = 50000, FIRST_NS = 1000000;
static const unsigned HIGH_THREADS = getenv("THREADS") ? (unsigned)atoi(getenv("THREADS")) : 288;

template <int THREADS> __global__ void hold(Mark *marks, Nanoseconds duration) {
    if (threadIdx.x == 0) {
        Nanoseconds start = gpu_clock();
        unsigned hash = (blockIdx.x * 2654435761u) ^ (unsigned)(start >> 5);
        hash ^= hash >> 15;
        hash *= 0x2c1b3c6du;
        hash ^= hash >> 12;
        Nanoseconds wait = duration / 2 + (Nanoseconds)(hash % 1024) * duration / 1024;
        while (gpu_clock() - start < wait)
            __nanosleep(200);
        marks[blockIdx.x] = {start, gpu_clock(), multiprocessor(), 0};
    }
    __syncthreads();
}

// 48 KiB a block; two blocks of 768 threads on a multiprocessor.
__global__ void cached(Mark *marks, const float *from, float *out, int rounds) {
    if (threadIdx.x == 0)
        marks[blockIdx.x].start = gpu_clock();
    const float *mine = from + (blockIdx.x % 512) * 12288 + threadIdx.x;
    float sum = 0;
    for (int round = 0; round < rounds; round++)
#pragma unroll 4
        for (int i = 0; i < 12288; i += 768)
            sum += mine[i];
    if (sum == 12345.0f)
        *out = sum;
    if (threadIdx.x == 0) {
        marks[blockIdx.x].end = gpu_clock();
        marks[blockIdx.x].sm = multiprocessor();
    }
}

// Registers are taken by numbers that live over the wait.
extern "C" __global__ void __maxnreg__(96)
    ncclDevKernel_Test(Mark *marks, Nanoseconds duration, volatile float *numbers) {
    __shared__ volatile char fixed[20832];
    extern __shared__ volatile char dynamic[];
    float held[96], sum = 0;
#pragma unroll
    for (int i = 0; i < 96; i++)
        held[i] = numbers[i];
    Nanoseconds start = gpu_clock();
    while (gpu_clock() - start < duration)
        __nanosleep(200);
#pragma unroll
    for (int i = 0; i < 96; i++)
        sum = sum * 1.5f + held[i];
    fixed[threadIdx.x] = dynamic[threadIdx.x] = (char)sum;
    if (threadIdx.x == 0)
        marks[blockIdx.x] = {start, gpu_clock(), multiprocessor(), 0};
    if (sum == 12345.0f)
        numbers[0] = sum;
}

struct Low {
    const char *name;
    int native; // blocks on a multiprocessor, as asked
};
static const Low LOWS[] = {{"hold 128", 16},   {"hold 512", 4}, {"hold 768", 2},
                           {"arithmetic", 16}, {"copy", 16},    {"cached", 2}};
// first: communication is launched before the long grid, and lasts for 1 ms.
static const char *const WAYS[] = {"alone", "first", "launched", "graph", "legacy", "own"};

static Mark *low_marks, *high_marks;
static float *numbers;
static float4 *source, *target;
static cudaStream_t low_stream, high_stream, own_stream;
static cudaGraphExec_t executable;

static void launch_low(const Low &low) {
    unsigned blocks = (unsigned)(WAVES * low.native * SMS);
    if (!strcmp(low.name, "hold 128"))
        hold<128><<<blocks, 128, 0, low_stream>>>(low_marks, LOW_NS);
    else if (!strcmp(low.name, "hold 512"))
        hold<512><<<blocks, 512, 0, low_stream>>>(low_marks, LOW_NS);
    else if (!strcmp(low.name, "hold 768"))
        hold<768><<<blocks, 768, 0, low_stream>>>(low_marks, LOW_NS);
    else if (!strcmp(low.name, "arithmetic"))
        arithmetic<<<blocks, 128, 0, low_stream>>>(low_marks, numbers, 3000);
    else if (!strcmp(low.name, "cached"))
        cached<<<blocks, 768, 0, low_stream>>>(low_marks, (const float *)source, numbers, 500);
    else
        copy<<<blocks, 128, 0, low_stream>>>(low_marks, source, target, 64);
    CHECK(cudaGetLastError());
}

static void launch_high(cudaStream_t stream, Nanoseconds duration) {
    ncclDevKernel_Test<<<HIGH, HIGH_THREADS, HIGH_DYNAMIC, stream>>>(high_marks, duration, numbers);
    CHECK(cudaGetLastError());
}

static int priority_of(cudaStream_t stream) {
    int priority = 99;
    CHECK(cudaStreamGetPriority(stream, &priority));
    return priority;
}

// The most blocks that were on one multiprocessor at once.
static int resident(const std::vector<Mark> &marks) {
    std::vector<std::vector<std::pair<Nanoseconds, int>>> events(SMS);
    int most = 0;
    for (const Mark &mark : marks) {
        events[mark.sm].push_back({mark.start, 1});
        events[mark.sm].push_back({mark.end, -1});
    }
    for (auto &list : events) {
        int now = 0;
        std::sort(list.begin(), list.end());
        for (auto &event : list)
            most = std::max(most, now += event.second);
    }
    return most;
}

static void run(const Low &low, const char *way, int repetition, double offset) {
    std::vector<Mark> lows((size_t)(WAVES * low.native * SMS)), highs(HIGH);
    bool alone = !strcmp(way, "alone"), before = !strcmp(way, "first");
    cudaStream_t stream = !strcmp(way, "own") ? own_stream : !strcmp(way, "legacy") ? cudaStreamLegacy : high_stream;
    if (before)
        launch_high(stream, FIRST_NS);
    else
        launch_low(low);
    double until = host_clock() + (before ? 200e3 : 700e3);
    while (host_clock() < until)
        ;
    if (before)
        launch_low(low);
    else if (!strcmp(way, "graph"))
        CHECK(cudaGraphLaunch(executable, high_stream));
    else if (!alone)
        launch_high(stream, HIGH_NS);
    double arrival = host_clock() + offset, first = 1e30, last = 0, done = 0, low_start = 1e30, low_end = 0;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(lows.data(), low_marks, sizeof(Mark) * lows.size(), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(highs.data(), high_marks, sizeof(Mark) * highs.size(), cudaMemcpyDeviceToHost));
    for (const Mark &mark : lows) {
        low_start = std::min(low_start, (double)mark.start);
        low_end = std::max(low_end, (double)mark.end);
    }
    printf("{\"low\":\"%s\",\"way\":\"%s\",\"repetition\":%d,\"low_us\":%.1f,\"low_resident\":%d", low.name, way,
           repetition, (low_end - low_start) / 1e3, resident(lows));
    if (!alone) {
        int beside = 0;
        for (const Mark &mark : highs) {
            bool shared = false;
            for (const Mark &other : lows)
                shared = shared || (other.sm == mark.sm && other.end > mark.start &&
                                    (before ? other.start < mark.end : other.start < mark.start));
            beside += shared;
            first = std::min(first, (double)mark.start);
            last = std::max(last, (double)mark.start);
            done = std::max(done, (double)mark.end);
        }
        printf(",\"low_left_us\":%.1f,\"first_us\":%.1f,\"last_us\":%.1f,\"done_us\":%.1f,\"beside\":%d,"
               "\"stream_priority\":%d",
               (low_end - arrival) / 1e3, (first - arrival) / 1e3, (last - arrival) / 1e3, (done - arrival) / 1e3,
               beside, priority_of(stream));
    }
    printf("}\n");
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? atoi(argv[1]) : 20, least, greatest, before[2];
    Nanoseconds *seen;
    cudaGraph_t graph;
    cudaFuncAttributes high;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithFlags(&low_stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&high_stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithPriority(&own_stream, cudaStreamNonBlocking, greatest));
    CHECK(cudaMalloc(&low_marks, sizeof(Mark) * (size_t)(WAVES * 16 * SMS)));
    CHECK(cudaMalloc(&high_marks, sizeof(Mark) * HIGH));
    CHECK(cudaMalloc(&numbers, 4096));
    CHECK(cudaMalloc(&source, WORDS * sizeof *source + (1 << 20)));
    CHECK(cudaMalloc(&target, WORDS * sizeof *target + (1 << 20)));
    CHECK(cudaMemset(source, 0, WORDS * sizeof *source));
    CHECK(cudaMemset(numbers, 0, 4096));
    CHECK(cudaHostAlloc(&seen, sizeof *seen, cudaHostAllocMapped));
    CHECK(cudaFuncSetAttribute(ncclDevKernel_Test, cudaFuncAttributeMaxDynamicSharedMemorySize, HIGH_DYNAMIC));
    if (getenv("OWN_CARVEOUT"))
        CHECK(cudaFuncSetAttribute(ncclDevKernel_Test, cudaFuncAttributePreferredSharedMemoryCarveout,
                                   cudaSharedmemCarveoutDefault));
    CHECK(cudaFuncGetAttributes(&high, ncclDevKernel_Test));
    describe_machine("room");
    before[0] = priority_of(high_stream);
    before[1] = priority_of(cudaStreamLegacy);
    launch_high(high_stream, HIGH_NS); // from now on a policy knows what communication needs
    CHECK(cudaDeviceSynchronize());
    printf("{\"communication\":{\"threads\":%u,\"registers\":%d,\"static\":%zu,\"dynamic\":%d,\"blocks\":%d},"
           "\"priorities_at_first\":[%d,%d],\"after_a_launch\":[%d,%d]}\n",
           HIGH_THREADS, high.numRegs, high.sharedSizeBytes, HIGH_DYNAMIC, HIGH, before[0], before[1],
           priority_of(high_stream), priority_of(cudaStreamLegacy));
    CHECK(cudaStreamBeginCapture(high_stream, cudaStreamCaptureModeGlobal));
    launch_high(high_stream, HIGH_NS);
    CHECK(cudaStreamEndCapture(high_stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0)); // without cudaGraphInstantiateFlagUseNodePriority
    for (const char *way : WAYS)
        for (const Low &low : LOWS) {
            bool wanted = argc <= 2;
            for (int i = 2; i < argc; i++)
                wanted = wanted || !strcmp(argv[i], low.name);
            double offset = clock_offset(seen, own_stream);
            if (wanted)
                launch_low(low);
            CHECK(cudaDeviceSynchronize());
            for (int repetition = 0; wanted && repetition < repetitions; repetition++)
                run(low, way, repetition, offset);
        }
    return 0;
}
