// What the programs of this folder share: checks, the GPU's clock, and kernels whose blocks say when and where they ran.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

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

inline double host_clock() {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::nano>(now).count();
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
