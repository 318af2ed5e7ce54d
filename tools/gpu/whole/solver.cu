// Conjugate gradients for the seven-point Laplacian on two GPUs, or one: n x n x n points of 64 bits on each.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 whole/solver.cu -o solver
//   ./solver LIBNCCL N RAISED          RAISED: 1 if the program raises its halo streams
//
// An iteration exchanges the two planes at the edge of p by NCCL on a halo stream, beside the product for the planes
// inside, and adds up two scalars by all-reduces on the computing stream. Scalars stay on the GPU; sums have a fixed order.
#include "program.h"

namespace {

constexpr int THREADS = 256, PARTIAL = 1024; // blocks of a sum's first stage

struct Gpu {
    double *x, *r, *q, *p;  // p has a plane of the neighbour at either end
    double *partial, *sums; // sums: p.q, r.r of before, r.r
    cudaStream_t computing, halo;
    cudaEvent_t updated, exchanged;
};

Gpu gpus[MOST];
ncclComm_t communicators[MOST];
int points;
size_t plane, size;

__global__ void set(double *x, double *r, double *p, size_t count, size_t plane, int device) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        x[i] = 0;
        r[i] = p[plane + i] = 1.0 + 1e-3 * (double)((i * 2654435761u + device) % 1009);
    }
}

// q = A p for the planes first to end of this GPU. Values beyond the sides are 0, those beyond the ends the neighbour's.
__global__ void product(const double *p, double *q, int n, int first) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z + first;
    if (x >= n || y >= n)
        return;
    const size_t across = (size_t)n * n, at = z * across + (size_t)y * n + x;
    const double *const here = p + across + at;
    double sum = 6 * here[0] - here[across] - *(here - across);
    sum -= x > 0 ? here[-1] : 0;
    sum -= x < n - 1 ? here[1] : 0;
    sum -= y > 0 ? *(here - n) : 0;
    sum -= y < n - 1 ? here[n] : 0;
    q[at] = sum;
}

__device__ void store_sum(double value, double *to) {
    __shared__ double values[THREADS];
    values[threadIdx.x] = value;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            values[threadIdx.x] += values[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        *to = values[0];
}

__global__ void dot(const double *a, const double *b, size_t count, double *partial) {
    double sum = 0;
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < count; i += (size_t)PARTIAL * THREADS)
        sum += a[i] * b[i];
    store_sum(sum, partial + blockIdx.x);
}

__global__ void add_up(const double *partial, double *to) {
    double sum = 0;
    for (int i = threadIdx.x; i < PARTIAL; i += THREADS)
        sum += partial[i];
    store_sum(sum, to);
}

__device__ double ratio(double above, double below) {
    return below > 0 ? above / below : 0;
}

__global__ void advance(double *x, double *r, const double *p, const double *q, size_t count, double *sums,
                        double *partial) {
    const double alpha = ratio(sums[1], sums[0]);
    double sum = 0;
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < count; i += (size_t)PARTIAL * THREADS) {
        x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
        sum += r[i] * r[i];
    }
    store_sum(sum, partial + blockIdx.x);
}

__global__ void turn(double *p, const double *r, size_t count, const double *sums) {
    const double beta = ratio(sums[2], sums[1]);
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < count; i += (size_t)PARTIAL * THREADS)
        p[i] = r[i] + beta * p[i];
}

__global__ void keep(double *sums) {
    sums[1] = sums[2];
}

void multiply(const Gpu &gpu, int first, int end) {
    const dim3 threads(32, 8, 1), blocks((points + 31) / 32, (points + 7) / 8, end - first);
    product<<<blocks, threads, 0, gpu.computing>>>(gpu.p, gpu.q, points, first);
    TRY(cudaGetLastError());
}

void exchange() {
    TRY(nccl.GroupStart());
    for (int device = 0; device < gpus_used(); device++) {
        const Gpu &gpu = gpus[device];
        const ncclComm_t to = communicators[device];
        double *const top = gpu.p + (points + 1) * plane;
        TRY(nccl.Send(gpu.p + plane, plane, NCCL_DOUBLE, neighbour(device), to, gpu.halo));
        TRY(nccl.Recv(top, plane, NCCL_DOUBLE, neighbour(device), to, gpu.halo));
        TRY(nccl.Send(top - plane, plane, NCCL_DOUBLE, neighbour(device), to, gpu.halo));
        TRY(nccl.Recv(gpu.p, plane, NCCL_DOUBLE, neighbour(device), to, gpu.halo));
    }
    TRY(nccl.GroupEnd());
}

// All GPUs' sums[at].
void reduce(int at) {
    if (part != COMMUNICATION)
        for (int device = 0; device < gpus_used(); device++) {
            TRY(cudaSetDevice(device));
            add_up<<<1, THREADS, 0, gpus[device].computing>>>(gpus[device].partial, gpus[device].sums + at);
        }
    if (part == COMPUTATION)
        return;
    TRY(nccl.GroupStart());
    for (int device = 0; device < gpus_used(); device++) {
        double *const sum = gpus[device].sums + at;
        TRY(nccl.AllReduce(sum, sum, 1, NCCL_DOUBLE, NCCL_SUM, communicators[device], gpus[device].computing));
    }
    TRY(nccl.GroupEnd());
}

template <typename Body> void on_each(Body body) {
    if (part == COMMUNICATION)
        return;
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        body(gpus[device]);
        TRY(cudaGetLastError());
    }
}

} // namespace

void program_step() {
    for (int device = 0; device < gpus_used() && part != COMPUTATION; device++) {
        TRY(cudaSetDevice(device));
        after(gpus[device].halo, gpus[device].updated, gpus[device].computing);
    }
    on_each([](Gpu &gpu) { multiply(gpu, 1, points - 1); });
    if (part != COMPUTATION)
        exchange();
    for (int device = 0; device < gpus_used() && part != COMPUTATION; device++) {
        TRY(cudaSetDevice(device));
        after(gpus[device].computing, gpus[device].exchanged, gpus[device].halo);
    }
    on_each([](Gpu &gpu) {
        multiply(gpu, 0, 1);
        multiply(gpu, points - 1, points);
        dot<<<PARTIAL, THREADS, 0, gpu.computing>>>(gpu.p + plane, gpu.q, size, gpu.partial);
    });
    reduce(0);
    on_each([](Gpu &gpu) {
        advance<<<PARTIAL, THREADS, 0, gpu.computing>>>(gpu.x, gpu.r, gpu.p + plane, gpu.q, size, gpu.sums,
                                                        gpu.partial);
    });
    reduce(2);
    on_each([](Gpu &gpu) {
        turn<<<PARTIAL, THREADS, 0, gpu.computing>>>(gpu.p + plane, gpu.r, size, gpu.sums);
        keep<<<1, 1, 0, gpu.computing>>>(gpu.sums);
    });
}

void program_reset() {
    for (int device = 0; device < gpus_used(); device++) {
        Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        TRY(cudaMemset(gpu.p, 0, (size + 2 * plane) * sizeof(double)));
        set<<<PARTIAL, THREADS>>>(gpu.x, gpu.r, gpu.p, size, plane, device);
    }
    program_wait();
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        dot<<<PARTIAL, THREADS, 0, gpus[device].computing>>>(gpus[device].r, gpus[device].r, size,
                                                             gpus[device].partial);
    }
    reduce(1);
    program_wait();
}

uint64_t program_digest() {
    uint64_t hash = HASH;
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        hash = hashed(hash, gpus[device].x, size * sizeof(double));
    }
    return hash;
}

int program_open(int count, char **arguments) {
    points = count == 4 ? atoi(arguments[2]) : 0;
    if (points < 8) {
        fprintf(stderr, "usage: solver LIBNCCL N RAISED\n");
        return 2;
    }
    plane = (size_t)points * points;
    size = plane * points;
    for (int device = 0; device < gpus_used(); device++) {
        Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        for (double **one : {&gpu.x, &gpu.r, &gpu.q})
            TRY(cudaMalloc(one, size * sizeof(double)));
        TRY(cudaMalloc(&gpu.p, (size + 2 * plane) * sizeof(double)));
        TRY(cudaMalloc(&gpu.partial, PARTIAL * sizeof(double)));
        TRY(cudaMalloc(&gpu.sums, 3 * sizeof(double)));
        gpu.computing = new_stream(cudaStreamNonBlocking, false);
        gpu.halo = new_stream(cudaStreamNonBlocking, atoi(arguments[3]) != 0);
        for (cudaEvent_t *event : {&gpu.updated, &gpu.exchanged})
            TRY(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    open_nccl(arguments[1], communicators);
    return 0;
}
