// What the stencils share: six neighbours' mean for the planes first to end of n x n x n points, and first values.
#pragma once
#include "program.h"

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

static __global__ void fill(Real *grid, size_t count, int device) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        grid[i] = 1 + (Real)((i * 2654435761u + device) % 1009) / 1009;
}

// Both grids of a GPU; no plane is alike, so that a digest of planes sees what reached them. Waits for nothing.
static void set_grids(Real *from, Real *to, int n, int device) {
    for (Real *grid : {from, to}) {
        fill<<<1024, 256>>>(grid, (size_t)n * n * n, device);
        TRY(cudaGetLastError());
    }
}

// The planes that are exchanged, and those that are received.
static uint64_t hashed_planes(uint64_t hash, const Real *grid, int n) {
    const size_t plane = (size_t)n * n;
    for (const int at : {0, 1, n - 2, n - 1})
        hash = hashed(hash, grid + at * plane, plane * sizeof(Real));
    return hash;
}
