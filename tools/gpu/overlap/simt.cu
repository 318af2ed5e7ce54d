// The float product of the kind `simt`: a tile of 128 by 64 without tensor cores. Plain C name, as those of cuBLAS. Built by
// build_cubin.py; the cubin is committed.

static constexpr int TILE_M = 128;
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
