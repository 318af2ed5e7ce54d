// The kernels of the stand-in suite: eight kinds of computation, and a collective of one GPU.
//
// They do real work, so that what they take from each other (multiprocessors, L2, device memory, the link) is real, and
// their results are checked (program.c, `check`). Each has the footprint of its class: README.md beside this has the
// table, build_cubin.py compares it. Names are plain C names and belong to the sets of pyshim/policy/kernel_sets.py. The
// kind `simt` is in simt.cu. Built by build_cubin.py; the cubin is committed.
#include <cuda_bf16.h>

typedef __nv_bfloat16 Half;

static constexpr int TILE_K = 32;
static constexpr int ROW = TILE_K + 8; // padded: no two rows that ldmatrix reads at once share a bank

__device__ inline unsigned long long clock_ns()
{
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

__device__ inline unsigned shared_address(const void *pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

template <int ROWS, int THREADS> __device__ inline void load_tile(Half *tile, const Half *from, int k)
{
    for (int piece = static_cast<int>(threadIdx.x); piece < ROWS * 4; piece += THREADS)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                         shared_address(tile + piece / 4 * ROW + piece % 4 * 8)),
                     "l"(from + static_cast<long>(piece / 4) * k + piece % 4 * 8));
}

__device__ inline void load_matrices(unsigned (&to)[4], const Half *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row)));
}

// C (m by n, float) = A (m by k) B (n by k, transposed) as CUTLASS 2 does it on sm_80: cp.async in stages, mma.sync.
// Sizes are multiples of the tile. A block goes from tile to tile as far as the grid leaves some.
template <int TILE_M, int TILE_N, int WARPS_M, int WARPS_N, int STAGES>
__device__ inline void product(const Half *a, const Half *b, float *c, int m, int n, int k)
{
    constexpr int THREADS = WARPS_M * WARPS_N * 32, STAGE = (TILE_M + TILE_N) * ROW;
    constexpr int MS = TILE_M / WARPS_M / 16, NS = TILE_N / WARPS_N / 16;
    extern __shared__ __align__(16) char memory[];
    Half *const stages = reinterpret_cast<Half *>(memory);
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int warp_m = warp % WARPS_M * (MS * 16), warp_n = warp / WARPS_M * (NS * 16);
    const int row_a = warp_m + lane % 16, column_a = lane / 16 * 8;
    const int row_b = warp_n + lane % 8 + lane / 16 * 8, column_b = lane / 8 % 2 * 8;
    const int steps = k / TILE_K, tiles_m = m / TILE_M, tiles = tiles_m * (n / TILE_N);

    for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
        const long first_m = tile % tiles_m * TILE_M, first_n = tile / tiles_m * TILE_N;
        float sum[MS][NS * 2][4] = {};
        auto load = [&](int step) {
            Half *const stage = stages + step % STAGES * STAGE;
            if (step < steps) {
                load_tile<TILE_M, THREADS>(stage, a + first_m * k + step * TILE_K, k);
                load_tile<TILE_N, THREADS>(stage + TILE_M * ROW, b + first_n * k + step * TILE_K, k);
            }
            asm volatile("cp.async.commit_group;");
        };
        for (int step = 0; step < STAGES - 1; ++step)
            load(step);
        for (int step = 0; step < steps; ++step) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
            __syncthreads();
            load(step + STAGES - 1);
            const Half *const stage_a = stages + step % STAGES * STAGE, *const stage_b = stage_a + TILE_M * ROW;
#pragma unroll
            for (int part = 0; part < TILE_K; part += 16) {
                unsigned left[MS][4];
#pragma unroll
                for (int y = 0; y < MS; ++y)
                    load_matrices(left[y], stage_a + (row_a + y * 16) * ROW + part + column_a);
#pragma unroll
                for (int x = 0; x < NS; ++x) {
                    unsigned right[4];
                    load_matrices(right, stage_b + (row_b + x * 16) * ROW + part + column_b);
#pragma unroll
                    for (int y = 0; y < MS; ++y)
#pragma unroll
                        for (int half = 0; half < 2; ++half) {
                            float *const s = sum[y][x * 2 + half];
                            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                                         "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                                         : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                                         : "r"(left[y][0]), "r"(left[y][1]), "r"(left[y][2]), "r"(left[y][3]),
                                           "r"(right[half * 2]), "r"(right[half * 2 + 1]));
                        }
                }
            }
        }
        asm volatile("cp.async.wait_group 0;");
        __syncthreads();
#pragma unroll
        for (int y = 0; y < MS; ++y)
#pragma unroll
            for (int x = 0; x < NS * 2; ++x)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const long row = first_m + warp_m + y * 16 + half * 8 + lane / 4;
                    const long column = first_n + warp_n + x * 8 + lane % 4 * 2;
                    *reinterpret_cast<float2 *>(c + row * n + column) =
                        make_float2(sum[y][x][half * 2], sum[y][x][half * 2 + 1]);
                }
    }
}

#define PRODUCT(name, threads, blocks, ...)                                                                            \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                                      \
        name(const Half *a, const Half *b, float *c, int n, int k, int m)                                              \
    {                                                                                                                  \
        product<__VA_ARGS__>(a, b, c, m, n, k);                                                                        \
    }
PRODUCT(hgemm_tensor128, 256, 2, 128, 128, 2, 4, 4)
PRODUCT(hgemm_tensor64, 128, 5, 64, 64, 2, 2, 4)
PRODUCT(hgemm_whole, 384, 1, 192, 256, 3, 4, 6)
PRODUCT(hgemm_persistent, 384, 1, 192, 256, 3, 4, 6)

// C = A B in float, as a textbook has it.
extern "C" __global__ void __launch_bounds__(256, 8)
    sgemm_tiled(const float *a, const float *b, float *c, int n, int k, int m)
{
    __shared__ float tile_a[16][16], tile_b[16][16];
    const int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
    const int tiles_n = n / 16, tile = static_cast<int>(blockIdx.x);
    const long row = tile / tiles_n * 16 + y, column = tile % tiles_n * 16 + x;
    float sum = 0.0f;
    for (int step = 0; step < k; step += 16) {
        tile_a[y][x] = a[row * k + step + x];
        tile_b[y][x] = b[static_cast<long>(step + y) * n + column];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i)
            sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// c = 2 a + b. n: vectors of four numbers that a thread does.
extern "C" __global__ void __launch_bounds__(128, 16)
    elementwise(const float4 *a, const float4 *b, float4 *c, int n, int k, int m)
{
    const long first = static_cast<long>(blockIdx.x) * blockDim.x * n + threadIdx.x;
#pragma unroll 2
    for (int i = 0; i < n; ++i) {
        const long at = first + static_cast<long>(i) * blockDim.x;
        const float4 x = a[at], y = b[at];
        c[at] = make_float4(2 * x.x + y.x, 2 * x.y + y.y, 2 * x.z + y.z, 2 * x.w + y.w);
    }
}

// c = a / sqrt(mean of the squares of its row + 1). n: numbers of a row; m: rows that a block does, one after another.
static constexpr int NORM_THREADS = 256;
static constexpr int NORM_VECTORS = 4; // of four numbers, a thread
extern "C" __global__ void __launch_bounds__(NORM_THREADS, 8)
    rms_norm(const float4 *a, const float4 *, float4 *c, int n, int, int m)
{
    __shared__ float parts[NORM_THREADS / 32];
    for (int row = 0; row < m; ++row) {
        const long first = (static_cast<long>(blockIdx.x) * m + row) * (n / 4) + threadIdx.x;
        float4 x[NORM_VECTORS];
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < NORM_VECTORS; ++i) {
            x[i] = a[first + i * NORM_THREADS];
            sum += x[i].x * x[i].x + x[i].y * x[i].y + x[i].z * x[i].z + x[i].w * x[i].w;
        }
        for (int offset = 16; offset > 0; offset /= 2)
            sum += __shfl_xor_sync(~0u, sum, offset);
        __syncthreads();
        if (threadIdx.x % 32 == 0)
            parts[threadIdx.x / 32] = sum;
        __syncthreads();
        sum = 0.0f;
        for (const float part : parts)
            sum += part;
        const float scale = rsqrtf(sum / static_cast<float>(n) + 1.0f);
#pragma unroll
        for (int i = 0; i < NORM_VECTORS; ++i)
            c[first + i * NORM_THREADS] =
                make_float4(x[i].x * scale, x[i].y * scale, x[i].z * scale, x[i].w * scale);
    }
}

// ---- communication ----

struct Mark {
    unsigned long long start, end; // ns of %globaltimer
};

// Shared memory as NCCL 2.28.9 has it on sm_90 (tools/answers/planned.py).
static constexpr int STATE_BYTES = 21568;
static constexpr int WARP_BYTES = 4112;
static constexpr int UNROLL = 18; // exactly NCCL's 96 registers
static constexpr int STAGED = 8;  // vectors that go through the staging buffer of the warp

// Copies `vectors` from one buffer to another; each block moves its part of them. rate: bytes of traffic (read and
// written) that all blocks together move in a microsecond, 0: as many as go. It waits as NCCL's blocks do: one thread
// looks again and again, the others stand at a barrier. Its name is one of NCCL's, so that tools take it for one.
extern "C" __global__ void __launch_bounds__(640, 1)
    ncclDevKernel_AllReduce_Sum_f32_RING_LL(const float4 *__restrict__ from, float4 *__restrict__ to, long vectors,
                                            long rate, Mark *marks)
{
    __shared__ float4 state[STATE_BYTES / 16];
    extern __shared__ float4 staging[];
    const unsigned long long start = clock_ns();
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    float4 *const mine = staging + thread / 32 * (WARP_BYTES / 16) + thread % 32;
    if (thread == 0)
        marks[blockIdx.x].start = start;
    for (int slot = thread; slot < STATE_BYTES / 16; slot += threads)
        state[slot] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();

    const long part = (vectors + gridDim.x - 1) / gridDim.x, begin = part * blockIdx.x;
    const long end = begin + part < vectors ? begin + part : vectors;
    for (long first = begin; first < end; first += static_cast<long>(threads) * UNROLL) {
        const long at = first + thread;
        float4 vector[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i)
            vector[i] = at + static_cast<long>(i) * threads < end ? from[at + static_cast<long>(i) * threads]
                                                                  : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < STAGED; ++i)
            mine[i * 32] = vector[i];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < UNROLL; ++i)
            if (at + static_cast<long>(i) * threads < end)
                to[at + static_cast<long>(i) * threads] = i < STAGED ? mine[i * 32] : vector[i];
        state[thread].x += 1.0f;
        if (rate > 0 && thread == 0) {
            const long moved = (first - begin + static_cast<long>(threads) * UNROLL) * 32 * gridDim.x;
            while (clock_ns() - start < static_cast<unsigned long long>(moved * 1000 / rate))
                ;
        }
        __syncthreads();
    }
    if (state[(thread * 7) % (STATE_BYTES / 16)].x < 0.0f) // never; the compiler cannot know it, and keeps the state
        to[0].x = state[thread].y;
    if (thread == 0)
        marks[blockIdx.x].end = clock_ns();
}

// The GPU's clock, in front of everything else of a sample.
extern "C" __global__ void stamp(Mark *mark)
{
    mark->start = clock_ns();
}

// ---- data, and what the results must be ----

// Multiples of 1/8 from -1 to 7/8: all sums below are exact in float, in whatever order.
__device__ inline float number_at(long at, unsigned seed)
{
    unsigned hash = static_cast<unsigned>(at) * 2654435761u ^ seed;
    hash ^= hash >> 15;
    hash *= 0x2c1b3c6du;
    hash ^= hash >> 12;
    return static_cast<float>(static_cast<int>(hash & 15) - 8) * 0.125f;
}

extern "C" __global__ void fill(void *to, long count, unsigned seed, int halves)
{
    const long stride = static_cast<long>(gridDim.x) * blockDim.x;
    for (long at = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += stride) {
        if (halves)
            static_cast<Half *>(to)[at] = __float2bfloat16(number_at(at, seed));
        else
            static_cast<float *>(to)[at] = number_at(at, seed);
    }
}

// Each thread looks at one number of c and counts it if it is not what a plain loop gives. kind as in program.c: 0 bf16
// product, 1 float product, 2 elementwise, 3 norm, 4 copy (n: numbers; c of a).
extern "C" __global__ void compare(int kind, const void *a, const void *b, const float *c, long m, long n, long k,
                                   unsigned *wrong)
{
    const long thread = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long at = (thread * 7919 * 104729 + thread) % (m * n), row = at / n, column = at % n;
    const Half *const half_a = static_cast<const Half *>(a), *const half_b = static_cast<const Half *>(b);
    const float *const float_a = static_cast<const float *>(a), *const float_b = static_cast<const float *>(b);
    float expected = 0.0f;
    if (kind == 0)
        for (long i = 0; i < k; ++i)
            expected += __bfloat162float(half_a[row * k + i]) * __bfloat162float(half_b[column * k + i]);
    else if (kind == 1)
        for (long i = 0; i < k; ++i)
            expected += float_a[row * k + i] * float_b[i * n + column];
    else if (kind == 2)
        expected = 2 * float_a[at] + float_b[at];
    else if (kind == 3) {
        for (long i = 0; i < n; ++i)
            expected += float_a[row * n + i] * float_a[row * n + i];
        expected = float_a[at] * rsqrtf(expected / static_cast<float>(n) + 1.0f);
    } else
        expected = float_a[at];
    if (expected != c[at])
        atomicAdd(wrong, 1);
}
