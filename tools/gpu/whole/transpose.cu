// A transform of n x n x n complex numbers of 32 + 32 bits on each of two GPUs, or on one, in chunks, as an FFT over slabs
// does it.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 whole/transpose.cu -o transpose
//   ./transpose LIBNCCL N RAISED       RAISED: 1 if the program raises its streams of communication
//
// Each chunk is transformed on the computing stream, packed and exchanged (all-to-all) on a stream of its own, and
// transformed again on the computing stream, one chunk behind the first transforms.
#include "program.h"

namespace {

constexpr float SCALE = 0.70710678f;                // numbers keep their size
constexpr int CHUNKS = 8, ROW = 256, PER_BLOCK = 4; // rows of a block

struct Gpu {
    float2 *data, *sent, *received, *results;
    cudaStream_t computing, moving;
    cudaEvent_t ready[CHUNKS], moved[CHUNKS];
};

Gpu gpus[MOST];
ncclComm_t communicators[MOST];
size_t chunk; // numbers

__global__ void set(float2 *data, size_t count, int device) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        data[i] = make_float2((float)((i * 2654435761u + device) % 1009) / 1009, (float)(i % 17) / 17);
}

// Walsh-Hadamard butterflies of rows of ROW numbers, with the factors of a Fourier transform.
__global__ void transform(const float2 *from, float2 *to) {
    __shared__ float2 rows[PER_BLOCK][ROW];
    const size_t first = (size_t)blockIdx.x * PER_BLOCK * ROW;
    for (int row = 0; row < PER_BLOCK; row++)
        rows[row][threadIdx.x] = from[first + row * ROW + threadIdx.x];
    for (int half = 1; half < ROW; half *= 2) {
        __syncthreads();
        const int low = (threadIdx.x / half) * 2 * half + threadIdx.x % half;
        if (threadIdx.x < ROW / 2) {
            float sine, cosine;
            sincospif((float)(threadIdx.x % half) / (float)half, &sine, &cosine);
            for (int row = 0; row < PER_BLOCK; row++) {
                const float2 a = rows[row][low], b = rows[row][low + half];
                const float2 c = make_float2(cosine * b.x - sine * b.y, cosine * b.y + sine * b.x);
                rows[row][low] = make_float2(SCALE * (a.x + c.x), SCALE * (a.y + c.y));
                rows[row][low + half] = make_float2(SCALE * (a.x - c.x), SCALE * (a.y - c.y));
            }
        }
    }
    __syncthreads();
    for (int row = 0; row < PER_BLOCK; row++)
        to[first + row * ROW + threadIdx.x] = rows[row][threadIdx.x];
}

// Even numbers stay, odd ones go to the other GPU: `mine` and `theirs` hold half a chunk each.
__global__ void pack(const float2 *from, float2 *mine, float2 *theirs, size_t half) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < half; i += (size_t)gridDim.x * blockDim.x) {
        mine[i] = from[2 * i];
        theirs[i] = from[2 * i + 1];
    }
}

void transform_chunk(const Gpu &gpu, const float2 *from, float2 *to) {
    if (part != COMMUNICATION)
        transform<<<(unsigned)(chunk / (PER_BLOCK * ROW)), ROW, 0, gpu.computing>>>(from, to);
    TRY(cudaGetLastError());
}

void move_chunk(int at) {
    const size_t half = chunk / 2, first = at * chunk;
    for (int device = 0; device < gpus_used(); device++) {
        const Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        after(gpu.moving, gpu.ready[at], gpu.computing);
        float2 *const received = gpu.received + first;
        pack<<<(unsigned)((half + 1023) / 1024), 256, 0, gpu.moving>>>(gpu.results + first, received + device * half,
                                                                       gpu.sent + first / 2, half);
        TRY(cudaGetLastError());
    }
    TRY(nccl.GroupStart());
    for (int device = 0; device < gpus_used(); device++) {
        const Gpu &gpu = gpus[device];
        float2 *const into = gpu.received + first + (1 - device) * half;
        TRY(nccl.Send(gpu.sent + first / 2, 2 * half, NCCL_FLOAT, neighbour(device), communicators[device],
                      gpu.moving));
        TRY(nccl.Recv(into, 2 * half, NCCL_FLOAT, neighbour(device), communicators[device], gpu.moving));
    }
    TRY(nccl.GroupEnd());
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        TRY(cudaEventRecord(gpus[device].moved[at], gpus[device].moving));
    }
}

void second(int at) {
    for (int device = 0; device < gpus_used(); device++) {
        const Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        if (part != COMPUTATION)
            TRY(cudaStreamWaitEvent(gpu.computing, gpu.moved[at], 0));
        transform_chunk(gpu, gpu.received + at * chunk, gpu.data + at * chunk);
    }
}

} // namespace

void program_step() {
    for (int at = 0; at < CHUNKS; at++) {
        for (int device = 0; device < gpus_used(); device++) {
            TRY(cudaSetDevice(device));
            transform_chunk(gpus[device], gpus[device].data + at * chunk, gpus[device].results + at * chunk);
        }
        if (part != COMPUTATION)
            move_chunk(at);
        if (at)
            second(at - 1);
    }
    second(CHUNKS - 1);
}

void program_reset() {
    program_wait();
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        set<<<1024, 256>>>(gpus[device].data, CHUNKS * chunk, device);
    }
    program_wait();
}

uint64_t program_digest() {
    uint64_t hash = HASH;
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        hash = hashed(hash, gpus[device].data, CHUNKS * chunk * sizeof(float2));
    }
    return hash;
}

int program_open(int count, char **arguments) {
    const size_t n = count == 4 ? (size_t)atoi(arguments[2]) : 0;
    chunk = n * n * n / CHUNKS;
    if (chunk == 0 || chunk % (PER_BLOCK * ROW)) {
        fprintf(stderr, "usage: transpose LIBNCCL N RAISED; N: a multiple of 32\n");
        return 2;
    }
    for (int device = 0; device < gpus_used(); device++) {
        Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        for (float2 **one : {&gpu.data, &gpu.received, &gpu.results})
            TRY(cudaMalloc(one, CHUNKS * chunk * sizeof(float2)));
        TRY(cudaMalloc(&gpu.sent, CHUNKS * chunk / 2 * sizeof(float2)));
        gpu.computing = new_stream(cudaStreamNonBlocking, false);
        gpu.moving = new_stream(cudaStreamNonBlocking, atoi(arguments[3]) != 0);
        for (int at = 0; at < CHUNKS; at++)
            for (cudaEvent_t *event : {&gpu.ready[at], &gpu.moved[at]})
                TRY(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    open_nccl(arguments[1], communicators);
    return 0;
}
