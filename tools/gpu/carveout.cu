// Does a block that needs more shared memory than a multiprocessor is divided for now get in beside running blocks?
//
// Low: one wave, `k` blocks on each multiprocessor with little shared memory, 3 ms each, under different preferred
// carve-outs. High: 16 blocks at the greatest priority that need a given amount. If the division of a multiprocessor
// into L1 cache and shared memory can only change while it is empty, high waits for low to end although there is room.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 carveout.cu -o carveout && ./carveout [REPETITIONS]
#include "gpu.h"

#include <set>

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

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? atoi(argv[1]) : 5, least, greatest;
    const int HIGH = 16;
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    int sms = device.multiProcessorCount, optin = (int)device.sharedMemPerBlockOptin;
    cudaStream_t low, high;
    CHECK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
    Mark *low_marks, *high_marks;
    Nanoseconds *marker_time;
    CHECK(cudaMalloc(&low_marks, sizeof(Mark) * (size_t)(32 * sms)));
    CHECK(cudaMalloc(&high_marks, sizeof(Mark) * HIGH));
    CHECK(cudaMalloc(&marker_time, sizeof *marker_time));
    CHECK(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, optin));
    CHECK(cudaFuncSetAttribute(hold_place, cudaFuncAttributeMaxDynamicSharedMemorySize, optin));
    describe_machine("carve-out");
    for (int repetition = 0; repetition < repetitions; repetition++)
        for (int k : {1, 2, 4})
            for (int low_kib : {0, 8, 24})
                for (int carveout : {-1, 0, 44, 100})
                    for (int high_kib : {20, 100, 200}) {
                        if (k * (low_kib + 1) + high_kib + 1 > 228)
                            continue; // no room in any case
                        CHECK(
                            cudaFuncSetAttribute(hold_place, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
                        CHECK(cudaFuncSetAttribute(spin, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
                        // Blocks of 512 threads at k = 4, so that no more than k are on a multiprocessor.
                        unsigned threads = k == 4 ? 512 : k == 2 ? 768 : 1024;
                        hold_place<<<(unsigned)(k * sms), threads, (size_t)low_kib * 1024, low>>>(low_marks, 3000000);
                        CHECK(cudaGetLastError());
                        double until = host_clock() + 500e3;
                        while (host_clock() < until)
                            ;
                        stamp<<<1, 1, 0, high>>>(marker_time);
                        spin<<<HIGH, 32, (size_t)high_kib * 1024, high>>>(high_marks, 50000, 0);
                        CHECK(cudaGetLastError());
                        CHECK(cudaDeviceSynchronize());
                        std::vector<Mark> lows((size_t)(k * sms)), highs((size_t)HIGH);
                        Nanoseconds marker;
                        CHECK(cudaMemcpy(lows.data(), low_marks, sizeof(Mark) * lows.size(), cudaMemcpyDeviceToHost));
                        CHECK(
                            cudaMemcpy(highs.data(), high_marks, sizeof(Mark) * highs.size(), cudaMemcpyDeviceToHost));
                        CHECK(cudaMemcpy(&marker, marker_time, sizeof marker, cudaMemcpyDeviceToHost));
                        std::set<unsigned> used;
                        double first = 1e30, last = 0, low_first = 1e30, low_last_start = 0, low_end = 0;
                        int together = 0;
                        for (const Mark &mark : lows) {
                            used.insert(mark.sm);
                            low_first = std::min(low_first, (double)mark.start);
                            low_last_start = std::max(low_last_start, (double)mark.start);
                            low_end = std::max(low_end, (double)mark.end);
                        }
                        for (const Mark &mark : highs) {
                            first = std::min(first, (double)mark.start);
                            last = std::max(last, (double)mark.start);
                            for (const Mark &other : lows)
                                if (other.sm == mark.sm && other.start < mark.start && other.end > mark.start) {
                                    together++;
                                    break;
                                }
                        }
                        printf("{\"k\":%d,\"low_kib\":%d,\"carveout_percent\":%d,\"high_kib\":%d,\"repetition\":%d,"
                               "\"wait_first_us\":%.1f,\"wait_last_us\":%.1f,\"beside_low\":%d,\"of\":%d,"
                               "\"low_left_us\":%.1f,\"low_starts_within_us\":%.1f,\"sms_used\":%zu}\n",
                               k, low_kib, carveout, high_kib, repetition, (first - (double)marker) / 1e3,
                               (last - (double)marker) / 1e3, together, HIGH, (low_end - (double)marker) / 1e3,
                               (low_last_start - low_first) / 1e3, used.size());
                    }
    return 0;
}
