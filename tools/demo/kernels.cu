// The kernels of `overlap demo`: what a layer of a training step computes, what a collective moves, and an optimiser.
//
// They run on a real GPU and their results can be checked (demo-step --check). Names are plain C names, so that they
// read in a timeline as those of cuBLAS and NCCL do. Built by build_cubins.py; the cubins are committed, so nobody
// needs the CUDA compiler to run the demo.

static constexpr int TILE_M = 128; // the grid in demo_main.c is made for these
static constexpr int TILE_N = 64;
static constexpr int GEMM_THREADS = 256;
static constexpr int TILE_K = 16;
static constexpr int PER_THREAD_M = 8;
static constexpr int PER_THREAD_N = 4;

// C = A B in row-major order. M, N and K are multiples of the tile. Two shared-memory buffers: 24 KiB.
// 65 to 80 registers: three blocks on a multiprocessor of every GPU that the cubins are for.
extern "C" __global__ void __launch_bounds__(GEMM_THREADS, 3)
    sgemm_128x64_nn(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n, int k) {
    __shared__ float4 tile_a[2][TILE_K][TILE_M / 4]; // transposed
    __shared__ float4 tile_b[2][TILE_K][TILE_N / 4];
    const int thread = static_cast<int>(threadIdx.x);
    const int row = thread / 16;    // of 16, eight rows of C each
    const int column = thread % 16; // of 16, four columns of C each

    // Every thread brings two vectors of A and one of B from global memory.
    const int a_row = thread / 4;
    const int a_column = (thread % 4) * 4;
    const int b_row = thread / 16;
    const int b_column = (thread % 16) * 4;
    const float *from_a = a + static_cast<long>(blockIdx.y * TILE_M + a_row) * k + a_column;
    const float *from_b = b + static_cast<long>(b_row) * n + blockIdx.x * TILE_N + b_column;

    float sum[PER_THREAD_M][PER_THREAD_N] = {};
    float4 next_a[2];
    float4 next_b;

    auto load = [&]() {
        next_a[0] = *reinterpret_cast<const float4 *>(from_a);
        next_a[1] = *reinterpret_cast<const float4 *>(from_a + 64L * k);
        next_b = *reinterpret_cast<const float4 *>(from_b);
        from_a += TILE_K;
        from_b += static_cast<long>(TILE_K) * n;
    };
    auto store = [&](int buffer) {
        for (int half = 0; half < 2; ++half) {
            float *column_of_a = reinterpret_cast<float *>(&tile_a[buffer][a_column][0]) + a_row + half * 64;
            column_of_a[0 * TILE_M] = next_a[half].x;
            column_of_a[1 * TILE_M] = next_a[half].y;
            column_of_a[2 * TILE_M] = next_a[half].z;
            column_of_a[3 * TILE_M] = next_a[half].w;
        }
        tile_b[buffer][b_row][b_column / 4] = next_b;
    };

    load();
    store(0);
    __syncthreads();
    int buffer = 0;
    for (int done = 0; done < k; done += TILE_K) {
        const bool more = done + TILE_K < k;
        if (more)
            load();
#pragma unroll
        for (int i = 0; i < TILE_K; ++i) {
            const float4 top = tile_a[buffer][i][row * 2];
            const float4 bottom = tile_a[buffer][i][row * 2 + 1];
            const float4 right = tile_b[buffer][i][column];
            const float left_side[PER_THREAD_M] = {top.x, top.y, top.z, top.w, bottom.x, bottom.y, bottom.z, bottom.w};
            const float right_side[PER_THREAD_N] = {right.x, right.y, right.z, right.w};
#pragma unroll
            for (int y = 0; y < PER_THREAD_M; ++y)
#pragma unroll
                for (int x = 0; x < PER_THREAD_N; ++x)
                    sum[y][x] += left_side[y] * right_side[x];
        }
        if (more)
            store(buffer ^ 1);
        __syncthreads();
        buffer ^= 1;
    }

    float *to = c + static_cast<long>(blockIdx.y * TILE_M + row * PER_THREAD_M) * n + blockIdx.x * TILE_N + column * 4;
#pragma unroll
    for (int y = 0; y < PER_THREAD_M; ++y)
        *reinterpret_cast<float4 *>(to + static_cast<long>(y) * n) =
            make_float4(sum[y][0], sum[y][1], sum[y][2], sum[y][3]);
}

// Shared memory as NCCL 2.30 to 2.32 has it in these builds: the state of a channel, and 4,112 bytes a warp of 20.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
static constexpr int STATE_BYTES = 36800;
#else
static constexpr int STATE_BYTES = 14144;
#endif
static constexpr int WARP_BYTES = 4112;
static constexpr int UNROLL = 11; // with ptxas 12.9: exactly NCCL's 96 registers
static constexpr int STAGED = 8;  // of them go through the staging buffer of the warp, a vector a thread each

// What a collective has to do, uploaded in front of it as NCCL does. demo.h has the same.
struct demo_work {
    float4 *ours;
    float4 *peer;
    long piece; // vectors
    long steps;
};

// The shape of a ring all-reduce without the ring: in the first half of the steps a piece of the peer's buffer is added
// to ours, in the second half a piece of ours is copied to the peer's. Pieces are whole multiples of what one pass of
// the grid moves. It stands for NCCL's kernel of that name in threads, registers and shared memory; it talks to nobody.
extern "C" __global__ void __launch_bounds__(640, 1)
    ncclDevKernel_AllReduce_Sum_f32_RING_LL(const demo_work *__restrict__ work) {
    float4 *__restrict__ const ours = work->ours;
    float4 *__restrict__ const peer = work->peer;
    const long piece = work->piece;
    const int steps = static_cast<int>(work->steps);
    __shared__ float4 state[STATE_BYTES / 16];
    extern __shared__ float4 staging[];
    const int thread = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    float4 *const mine = staging + (thread / 32) * (WARP_BYTES / 16) + thread % 32;

    for (int slot = thread; slot < STATE_BYTES / 16; slot += threads)
        state[slot] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();

    const long stride = static_cast<long>(gridDim.x) * threads;
    for (int step = 0; step < steps; ++step) {
        const bool reduce = step < steps / 2;
        const long begin = static_cast<long>(reduce ? step : step - steps / 2) * piece;
        const long end = begin + piece;
        for (long first = begin + static_cast<long>(blockIdx.x) * threads; first < end; first += stride * UNROLL) {
            const long at = first + thread;
            float4 left[UNROLL];
            float4 right[UNROLL];
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
                left[i] = at + i * stride < end ? ours[at + i * stride] : make_float4(0, 0, 0, 0);
                right[i] = reduce && at + i * stride < end ? peer[at + i * stride] : make_float4(0, 0, 0, 0);
            }
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
                left[i].x += right[i].x;
                left[i].y += right[i].y;
                left[i].z += right[i].z;
                left[i].w += right[i].w;
                if (i < STAGED)
                    mine[i * 32] = left[i];
            }
            __syncwarp();
#pragma unroll
            for (int i = 0; i < UNROLL; ++i)
                if (at + i * stride < end)
                    (reduce ? ours : peer)[at + i * stride] = i < STAGED ? mine[i * 32] : left[i];
        }
        state[(step * threads + thread) % (STATE_BYTES / 16)].x += 1.0f;
        __syncthreads();
    }
    // Never so, but the compiler cannot know it, and keeps the state.
    if (state[(steps + thread) % (STATE_BYTES / 16)].x < 0.0f)
        ours[0].x = state[thread].y;
}

// One step of gradient descent.
extern "C" __global__ void __launch_bounds__(256)
    optimizer_step(float4 *__restrict__ weights, const float4 *__restrict__ gradients, float rate, long count) {
    const long stride = static_cast<long>(gridDim.x) * blockDim.x;
    for (long at = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += stride) {
        float4 weight = weights[at];
        const float4 gradient = gradients[at];
        weight.x -= rate * gradient.x;
        weight.y -= rate * gradient.y;
        weight.z -= rate * gradient.z;
        weight.w -= rate * gradient.w;
        weights[at] = weight;
    }
}
