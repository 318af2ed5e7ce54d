// What the programs of this folder share: checks, the GPU's clock, and kernels whose blocks say when and where they ran.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef unsigned long long Nanoseconds;

struct Mark {
    Nanoseconds start, end;
    unsigned sm, pad;
};

__device__ inline Nanoseconds gpu_clock() {
    Nanoseconds time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

// Every block holds its place for `duration`, or, with spread, for half to one and a half of it.
__global__ void spin(Mark *marks, Nanoseconds duration, int spread) {
    if (threadIdx.x == 0) {
        Nanoseconds start = gpu_clock();
        unsigned sm, hash = (blockIdx.x * 2654435761u) ^ (unsigned)(start >> 5);
        asm("mov.u32 %0, %%smid;" : "=r"(sm));
        hash ^= hash >> 15;
        hash *= 0x2c1b3c6du;
        hash ^= hash >> 12;
        Nanoseconds wait = spread ? duration / 2 + (Nanoseconds)(hash % 1024) * duration / 1024 : duration;
        while (gpu_clock() - start < wait)
            __nanosleep(200);
        marks[blockIdx.x] = {start, gpu_clock(), sm, 0};
    }
    __syncthreads();
}

__global__ void stamp(volatile Nanoseconds *time) {
    *time = gpu_clock();
}

inline double host_clock() {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::nano>(now).count();
}

// What to add to the host's clock to get the GPU's. seen: pinned memory.
inline double clock_offset(volatile Nanoseconds *seen, cudaStream_t stream) {
    double best = -1e30;
    for (int i = 0; i < 20; i++) {
        *seen = 0;
        stamp<<<1, 1, 0, stream>>>(seen);
        while (*seen == 0)
            ;
        best = std::max(best, (double)*seen - host_clock()); // the quickest way back is the truest
        CHECK(cudaStreamSynchronize(stream));
    }
    return best;
}

inline double median(std::vector<double> values) {
    if (values.empty())
        return -1;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

inline void describe_machine(const char *question) {
    cudaDeviceProp device;
    int driver, runtime, least, greatest;
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    printf("{\"question\":\"%s\",\"gpu\":\"%s\",\"multiprocessors\":%d,\"driver\":%d,\"runtime\":%d,"
           "\"priorities\":[%d,%d]}\n",
           question, device.name, device.multiProcessorCount, driver, runtime, least, greatest);
}
