// An ordinary CUDA program for nvcc -cudart shared; what stub.c does by hand is here nvcc's own code.
#include <cuda_runtime.h>

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
    __shared__ float t[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    t[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n)
        y[i] = a * t[255 - threadIdx.x] + y[i];
}

extern "C" __global__ void __launch_bounds__(128) bounded(int *p) {
    extern __shared__ int d[];
    d[threadIdx.x] = 1;
    __syncthreads();
    p[threadIdx.x] = d[127 - threadIdx.x];
}

__device__ int counter = 7;

#define SAXPY(blocks, shared, stream) saxpy<<<blocks, 256, shared, stream>>>(0, 2.f, nullptr, nullptr)
#define BOUNDED(blocks, shared, stream) bounded<<<blocks, 128, shared, stream>>>(nullptr)
#define ATTRIBUTE(attribute, number) (attribute).id = cudaLaunchAttributePriority, (attribute).val.priority = (number)
#include "steps.h"

int main() {
    return steps();
}
