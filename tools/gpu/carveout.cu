// Which blocks may share a multiprocessor, as its division into L1 cache and shared memory (the carve-out) goes?
//
// Low: one wave, one block on each multiprocessor, 2 ms each, under different sizes and preferred carve-outs. High: 16
// blocks of the greatest priority for which there is room beside low in every case, likewise. If the division only
// changes while a multiprocessor is empty, high waits for low to end unless it is content with what low runs under.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 carveout.cu -o carveout && ./carveout [REPETITIONS]
//
// One JSON line a run. wait_us is counted from the return of the launch call.
#include "gpu.h"

static const int HIGH = 16;
static const Nanoseconds LOW_NS = 2000000;

// The same kernel under another name, with attributes of its own.
__global__ void hold_place(Mark *marks, Nanoseconds duration) {
    if (threadIdx.x == 0) {
        Nanoseconds start = gpu_clock();
        unsigned sm;
        asm("mov.u32 %0, %%smid;" : "=r"(sm));
        while (gpu_clock() - start < duration)
            __nanosleep(200);
        marks[blockIdx.x] = {start, gpu_clock(), sm, 0};
    }
    __syncthreads();
}

struct Kernel {
    int threads, kib, carveout;
};

static int blocks_of(const void *kernel, const Kernel &k) {
    int blocks = -1;
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, k.carveout));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, k.threads, (size_t)k.kib * 1024));
    return blocks;
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? atoi(argv[1]) : 3, least, greatest;
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    int sms = device.multiProcessorCount, optin = (int)device.sharedMemPerBlockOptin;
    cudaStream_t low, high;
    CHECK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
    Mark *low_marks, *high_marks;
    Nanoseconds *seen;
    CHECK(cudaMalloc(&low_marks, sizeof(Mark) * (size_t)sms));
    CHECK(cudaMalloc(&high_marks, sizeof(Mark) * HIGH));
    CHECK(cudaHostAlloc(&seen, sizeof *seen, cudaHostAllocMapped));
    CHECK(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, optin));
    CHECK(cudaFuncSetAttribute(hold_place, cudaFuncAttributeMaxDynamicSharedMemorySize, optin));
    describe_machine("carve-out");
    std::vector<Kernel> lows, highs;
    for (int threads : {256, 1024})
        for (int kib : {0, 8, 24, 100, 113})
            for (int carveout : {-1, 0, 14, 44, 72, 100})
                lows.push_back({threads, kib, carveout});
    for (int threads : {32, 640})
        for (int kib : {0, 20, 100})
            for (int carveout : {-1, 0, 44, 100})
                highs.push_back({threads, kib, carveout});
    for (int repetition = 0; repetition < repetitions; repetition++) {
        double offset = clock_offset(seen, high);
        for (const Kernel &l : lows)
            for (const Kernel &h : highs) {
                int low_blocks = blocks_of((const void *)hold_place, l), high_blocks = blocks_of((const void *)spin, h);
                hold_place<<<(unsigned)sms, (unsigned)l.threads, (size_t)l.kib * 1024, low>>>(low_marks, LOW_NS);
                CHECK(cudaGetLastError());
                double until = host_clock() + 200e3;
                while (host_clock() < until)
                    ;
                spin<<<HIGH, (unsigned)h.threads, (size_t)h.kib * 1024, high>>>(high_marks, 20000, 0);
                double arrival = host_clock() + offset;
                CHECK(cudaGetLastError());
                CHECK(cudaDeviceSynchronize());
                std::vector<Mark> low_run((size_t)sms), high_run((size_t)HIGH);
                CHECK(cudaMemcpy(low_run.data(), low_marks, sizeof(Mark) * (size_t)sms, cudaMemcpyDeviceToHost));
                CHECK(cudaMemcpy(high_run.data(), high_marks, sizeof(Mark) * HIGH, cudaMemcpyDeviceToHost));
                std::vector<Mark> by_sm((size_t)sms);
                double first = 1e30, last = 0, low_end = 0;
                int together = 0, crowded = 0;
                for (const Mark &mark : low_run) {
                    crowded += by_sm[mark.sm].end != 0; // two blocks of low on one multiprocessor
                    by_sm[mark.sm] = mark;
                    low_end = std::max(low_end, (double)mark.end);
                }
                for (const Mark &mark : high_run) {
                    first = std::min(first, (double)mark.start);
                    last = std::max(last, (double)mark.start);
                    together += by_sm[mark.sm].start < mark.start && by_sm[mark.sm].end > mark.start;
                }
                printf("{\"low\":{\"threads\":%d,\"kib\":%d,\"carveout\":%d,\"occupancy\":%d},"
                       "\"high\":{\"threads\":%d,\"kib\":%d,\"carveout\":%d,\"occupancy\":%d},\"repetition\":%d,"
                       "\"wait_first_us\":%.1f,\"wait_last_us\":%.1f,\"beside_low\":%d,\"low_left_us\":%.1f,"
                       "\"crowded\":%d}\n",
                       l.threads, l.kib, l.carveout, low_blocks, h.threads, h.kib, h.carveout, high_blocks, repetition,
                       (first - arrival) / 1e3, (last - arrival) / 1e3, together, (low_end - arrival) / 1e3, crowded);
            }
    }
    return 0;
}
