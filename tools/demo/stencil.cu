// SPDX-License-Identifier: Apache-2.0
// The kernels of stencil.c, built by build_ptx.py.
//
// A Jacobi sweep of a 7-point stencil over n * n * n points, in double precision. The simulated GPU needs the footprints
// only; tests/simgpu/test_stencil.py gives the exchange NCCL's. Loops are not unrolled, so that the PTX is short.

static constexpr int WIDTH = 32, HEIGHT = 16; // of a block of threads
static constexpr int DEPTH = 8;               // planes that a block of the interior sweeps

static __device__ void sweep(const double *__restrict__ from, double *__restrict__ to, int n, int begin, int end)
{
    const int x = static_cast<int>(blockIdx.x) * WIDTH + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * HEIGHT + static_cast<int>(threadIdx.y);
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    const long row = n, plane = row * n;
#pragma unroll 1
    for (int z = begin; z < end; ++z) {
        const long at = z * plane + y * row + x;
        to[at] = (from[at - 1] + from[at + 1] + from[at - row] + from[at + row] + from[at - plane] + from[at + plane]) * (1.0 / 6);
    }
}

extern "C" __global__ void __launch_bounds__(WIDTH *HEIGHT, 4)
    stencil_interior(const double *from, double *to, int n, int begin, int end)
{
    const int first = begin + static_cast<int>(blockIdx.z) * DEPTH;
    sweep(from, to, n, first, min(first + DEPTH, end));
}

extern "C" __global__ void __launch_bounds__(WIDTH *HEIGHT, 4)
    stencil_boundary(const double *from, double *to, int n, int plane)
{
    sweep(from, to, n, plane, plane + 1);
}

// Stands for NCCL's kernel of that name in its threads and dynamic shared memory. Its only rank exchanges the outermost
// planes with itself.
extern "C" __global__ void __launch_bounds__(640, 1) ncclDevKernel_SendRecv(double *points, int n)
{
    extern __shared__ double staging[];
    const long plane = static_cast<long>(n) * n, stride = static_cast<long>(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (long at = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; at < plane; at += stride) {
        staging[threadIdx.x] = points[(n - 2) * plane + at];
        points[(n - 1) * plane + at] = points[plane + at];
        points[at] = staging[threadIdx.x];
    }
}
