// What the programs about blocks share: kernels whose blocks hold a place or work, launches with attributes, and what the
// marks of their blocks say.
#pragma once

#include "gpu.h"

#include <cstring>

static const size_t WORDS = (size_t)1 << 26; // of 16 bytes, for copy

__device__ inline unsigned multiprocessor() {
    unsigned sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
}

// Every block holds its place, with so many registers: they are taken by numbers that live over the wait.
template <int REGISTERS>
__global__ void __maxnreg__(REGISTERS) hold_registers(Mark *marks, Nanoseconds duration, volatile float *numbers) {
    Nanoseconds start = gpu_clock();
    float held[REGISTERS], sum = 0;
#pragma unroll
    for (int i = 0; i < REGISTERS; i++)
        held[i] = numbers[i];
    if (threadIdx.x == 0) {
        while (gpu_clock() - start < duration)
            __nanosleep(200);
        marks[blockIdx.x] = {start, gpu_clock(), multiprocessor(), 0};
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < REGISTERS; i++)
        sum = sum * 1.5f + held[i];
    if (sum == 12345.0f)
        numbers[0] = sum;
}

__global__ void __maxnreg__(32) arithmetic(Mark *marks, float *out, int rounds) {
    Nanoseconds start = gpu_clock();
    float sums[8], factor = 1.0f + (float)threadIdx.x * 1e-9f;
    for (int i = 0; i < 8; i++)
        sums[i] = (float)i;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < 8; i++)
            sums[i] = fmaf(sums[i], factor, 0.5f);
    float sum = 0;
    for (int i = 0; i < 8; i++)
        sum += sums[i];
    if (sum == 12345.0f)
        *out = sum;
    __syncthreads(); // the end is that of all threads
    if (threadIdx.x == 0)
        marks[blockIdx.x] = {start, gpu_clock(), multiprocessor(), 0};
}

__global__ void __maxnreg__(32) copy(Mark *marks, const float4 *from, float4 *to, int rounds) {
    Nanoseconds start = gpu_clock();
    size_t at = (size_t)blockIdx.x * (size_t)rounds * 128 % WORDS + threadIdx.x;
#pragma unroll 4
    for (int round = 0; round < rounds; round++)
        to[at + (size_t)round * 128] = from[at + (size_t)round * 128];
    __syncthreads();
    if (threadIdx.x == 0)
        marks[blockIdx.x] = {start, gpu_clock(), multiprocessor(), 0};
}

struct Launch {
    cudaStream_t stream;
    int blocks, threads;
    size_t dynamic;
    int cluster;
};

template <typename... Kinds, typename... Values>
inline void launch(const Launch &what, void (*kernel)(Kinds...), Values... values) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)what.cluster;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    config.gridDim = dim3((unsigned)what.blocks);
    config.blockDim = dim3((unsigned)what.threads);
    config.dynamicSmemBytes = what.dynamic;
    config.stream = what.stream;
    config.attrs = &cluster;
    config.numAttrs = what.cluster > 1;
    CHECK(cudaLaunchKernelEx(&config, kernel, values...));
}

// Any dynamic size, and so many percent of the largest carve-out preferred; -1: the driver's choice.
template <typename... Kinds> inline void allow(void (*kernel)(Kinds...), int carveout) {
    int optin;
    CHECK(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, optin));
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
}

inline void wait_us(double duration) {
    double until = host_clock() + duration * 1e3;
    while (host_clock() < until)
        ;
}

inline std::vector<Mark> read_marks(const Mark *marks, int count) {
    std::vector<Mark> read((size_t)count);
    CHECK(cudaMemcpy(read.data(), marks, sizeof(Mark) * read.size(), cudaMemcpyDeviceToHost));
    return read;
}

struct Span {
    double first = 1e30, last = 0, end = 0; // start of the first and the last block, end of all
};

inline Span span_of(const std::vector<Mark> &marks) {
    Span span;
    for (const Mark &mark : marks) {
        span.first = std::min(span.first, (double)mark.start);
        span.last = std::max(span.last, (double)mark.start);
        span.end = std::max(span.end, (double)mark.end);
    }
    return span;
}

// By multiprocessor, in order of starts.
inline std::vector<std::vector<Mark>> by_multiprocessor(const std::vector<Mark> &marks, int multiprocessors) {
    std::vector<std::vector<Mark>> lists((size_t)multiprocessors);
    for (const Mark &mark : marks)
        lists[mark.sm].push_back(mark);
    for (auto &list : lists)
        std::sort(list.begin(), list.end(), [](const Mark &a, const Mark &b) { return a.start < b.start; });
    return lists;
}
