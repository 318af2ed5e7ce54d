// The kernel of the stencils: six neighbours' mean for the planes first to end of n x n x n points.
#pragma once

#ifndef REAL
#define REAL double
#endif
typedef REAL Real;

static __global__ void jacobi(const Real *from, Real *to, int n, int first, int end) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    const int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    const int z = blockIdx.z + first;
    if (x >= n - 1 || y >= n - 1 || z >= end)
        return;
    const size_t across = (size_t)n * n, at = z * across + (size_t)y * n + x;
    to[at] = (from[at - 1] + from[at + 1] + from[at - n] + from[at + n] + from[at - across] + from[at + across]) / 6;
}
