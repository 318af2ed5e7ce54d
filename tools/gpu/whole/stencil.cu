// What does a stencil gain when the streams that are waited for are raised? Two GPUs in one process, or one.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 whole/stencil.cu -o stencil
//   nvcc -O2 -std=c++17 -arch=sm_90 -DREAL=float whole/stencil.cu -o stencil32
//   ./stencil LIBNCCL STYLE N RAISED        RAISED: 1 if the program raises its own streams
//
// n x n x n points on each GPU, seven-point Jacobi. The two planes at the edge are computed first and exchanged beside the
// interior, by NCCL or through the host.
#include "program.h"

#include <utility>

namespace {

#ifndef REAL
#define REAL double
#endif
typedef REAL Real;

// Six neighbours' mean for the planes first to end of n x n x n points.
__global__ void jacobi(const Real *from, Real *to, int n, int first, int end) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    const int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    const int z = blockIdx.z + first;
    if (x >= n - 1 || y >= n - 1 || z >= end)
        return;
    const size_t across = (size_t)n * n, at = z * across + (size_t)y * n + x;
    to[at] = (from[at - 1] + from[at + 1] + from[at - n] + from[at + n] + from[at - across] + from[at + across]) / 6;
}

__global__ void fill(Real *grid, size_t count, int device) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        grid[i] = 1 + (Real)((i * 2654435761u + device) % 1009) / 1009;
}

// Both grids of a GPU; no plane is alike, so that a digest of planes sees what reached them. Waits for nothing.
void set_grids(Real *from, Real *to, int n, int device) {
    for (Real *grid : {from, to}) {
        fill<<<1024, 256>>>(grid, (size_t)n * n * n, device);
        TRY(cudaGetLastError());
    }
}

// The planes that are exchanged, and those that are received.
uint64_t hashed_planes(uint64_t hash, const Real *grid, int n) {
    const size_t plane = (size_t)n * n;
    for (const int at : {0, 1, n - 2, n - 1})
        hash = hashed(hash, grid + at * plane, plane * sizeof(Real));
    return hash;
}

constexpr int NCCL_REAL = sizeof(Real) == 4 ? NCCL_FLOAT : NCCL_DOUBLE;

enum Boundary { ON_HALO, ON_COMPUTING, ON_THIRD };
enum Exchange { BY_NCCL, BY_HOST_STREAM, BY_HOST_EVENT, BY_HOST_POLLING, BY_HOST_COPY };
enum Trap { NO_TRAP, WARMED, ONE_STREAM, SYNCHRONISED, SWAPPED, EQUAL };

struct Style {
    const char *name;
    Boundary boundary; // the stream of the kernels of the planes at the edge; the exchange is on the halo stream
    Exchange exchange;
    Trap trap;
};

const Style STYLES[] = {
    {"halo-stream", ON_HALO, BY_NCCL, NO_TRAP},
    {"computing-stream", ON_COMPUTING, BY_NCCL, NO_TRAP},
    {"third-stream", ON_THIRD, BY_NCCL, NO_TRAP},
    {"host-stream", ON_HALO, BY_HOST_STREAM, NO_TRAP},
    {"host-event", ON_HALO, BY_HOST_EVENT, NO_TRAP},
    {"host-polling", ON_HALO, BY_HOST_POLLING, NO_TRAP},
    {"host-copy", ON_HALO, BY_HOST_COPY, NO_TRAP}, // blocking copies; the halo stream is blocking, so they wait for it
    {"warmed", ON_HALO, BY_NCCL, WARMED},          // one exchange on the computing stream, before the loop
    {"one-stream", ON_HALO, BY_NCCL, ONE_STREAM},  // all of it on the computing stream
    {"synchronised", ON_HALO, BY_NCCL, SYNCHRONISED}, // likewise, and the host waits for it in each iteration
    {"swapped", ON_HALO, BY_NCCL, SWAPPED},           // the two streams change roles after each iteration
    {"equal", ON_COMPUTING, BY_NCCL, EQUAL},          // each stream has half of the points and an exchange of its own
};

struct Gpu {
    Real *from, *to;
    Real *staged, *last; // two planes each in pinned memory: the other GPU may still copy out of those of before
    cudaStream_t computing, halo, third;
    cudaEvent_t computed, ready, copied, exchanged;
};

Gpu gpus[MOST];
ncclComm_t communicators[MOST], others[MOST]; // others: of EQUAL
Style style;
int points;
size_t plane;

void relax(const Gpu &gpu, int first, int end, cudaStream_t stream) {
    const dim3 threads(32, 8, 1), blocks((points + 31) / 32, (points + 7) / 8, end - first);
    jacobi<<<blocks, threads, 0, stream>>>(gpu.from, gpu.to, points, first, end);
    TRY(cudaGetLastError());
}

void edge(const Gpu &gpu) {
    const cudaStream_t stream = style.boundary == ON_HALO    ? gpu.halo
                                : style.boundary == ON_THIRD ? gpu.third
                                                             : gpu.computing;
    if (style.boundary != ON_COMPUTING)
        TRY(cudaStreamWaitEvent(stream, gpu.computed, 0));
    relax(gpu, 1, 2, stream);
    relax(gpu, points - 2, points - 1, stream);
    if (style.boundary != ON_HALO)
        after(gpu.halo, gpu.ready, stream);
}

void copy_out(const Gpu &gpu) {
    const size_t bytes = plane * sizeof(Real);
    TRY(cudaMemcpyAsync(gpu.staged, gpu.to + plane, bytes, cudaMemcpyDeviceToHost, gpu.halo));
    TRY(cudaMemcpyAsync(gpu.staged + plane, gpu.to + (points - 2) * plane, bytes, cudaMemcpyDeviceToHost, gpu.halo));
    TRY(cudaEventRecord(gpu.copied, gpu.halo));
}

void copy_out_blocking(const Gpu &gpu) {
    const size_t bytes = plane * sizeof(Real);
    TRY(cudaMemcpy(gpu.staged, gpu.to + plane, bytes, cudaMemcpyDeviceToHost));
    TRY(cudaMemcpy(gpu.staged + plane, gpu.to + (points - 2) * plane, bytes, cudaMemcpyDeviceToHost));
}

void wait_for_copies(const Gpu &gpu) {
    if (style.exchange == BY_HOST_COPY) {
        copy_out_blocking(gpu);
    } else if (style.exchange == BY_HOST_STREAM) {
        TRY(cudaStreamSynchronize(gpu.halo));
    } else if (style.exchange == BY_HOST_EVENT) {
        TRY(cudaEventSynchronize(gpu.copied));
    } else {
        cudaError_t said;
        do
            said = cudaEventQuery(gpu.copied);
        while (said == cudaErrorNotReady);
        TRY(said);
        cudaGetLastError(); // it may still say "not ready"
    }
}

void copy_in(const Gpu &gpu, const Real *staged) {
    const size_t bytes = plane * sizeof(Real);
    if (style.exchange == BY_HOST_COPY) {
        TRY(cudaMemcpy(gpu.to, staged, bytes, cudaMemcpyHostToDevice));
        TRY(cudaMemcpy(gpu.to + (points - 1) * plane, staged + plane, bytes, cudaMemcpyHostToDevice));
        return;
    }
    TRY(cudaMemcpyAsync(gpu.to, staged, bytes, cudaMemcpyHostToDevice, gpu.halo));
    TRY(cudaMemcpyAsync(gpu.to + (points - 1) * plane, staged + plane, bytes, cudaMemcpyHostToDevice, gpu.halo));
}

void exchange_by_host() {
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        wait_for_copies(gpus[device]);
    }
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        copy_in(gpus[device], gpus[neighbour(device)].staged);
    }
}

void swap_planes(Real *mine, Real *other, int peer, ncclComm_t communicator, cudaStream_t stream) {
    TRY(nccl.Send(mine, plane, NCCL_REAL, peer, communicator, stream));
    TRY(nccl.Recv(other, plane, NCCL_REAL, peer, communicator, stream));
}

void exchange_by_nccl(cudaStream_t Gpu::*stream) {
    TRY(nccl.GroupStart());
    for (int device = 0; device < gpus_used(); device++) {
        const Gpu &gpu = gpus[device];
        Real *const top = gpu.to + (points - 1) * plane;
        swap_planes(gpu.to + plane, gpu.to, neighbour(device), communicators[device], gpu.*stream);
        swap_planes(top - plane, top, neighbour(device), communicators[device], gpu.*stream);
    }
    TRY(nccl.GroupEnd());
}

void step() {
    for (int device = 0; device < gpus_used(); device++) {
        const Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        edge(gpu);
        if (part != COMPUTATION && style.exchange != BY_NCCL && style.exchange != BY_HOST_COPY)
            copy_out(gpu);
        if (part != COMMUNICATION)
            relax(gpu, 2, points - 2, gpu.computing);
    }
    if (part != COMPUTATION) {
        if (style.exchange == BY_NCCL)
            exchange_by_nccl(&Gpu::halo);
        else
            exchange_by_host();
    }
    for (int device = 0; device < gpus_used(); device++) {
        Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        after(gpu.computing, gpu.exchanged, gpu.halo);
        if (style.boundary != ON_COMPUTING)
            TRY(cudaEventRecord(gpu.computed, gpu.computing));
        if (style.trap == SWAPPED) {
            std::swap(gpu.computing, gpu.halo);
            TRY(cudaStreamWaitEvent(gpu.computing, gpu.computed, 0));
        }
        std::swap(gpu.from, gpu.to);
        std::swap(gpu.staged, gpu.last);
    }
    for (int device = 0; device < gpus_used() && style.trap == SYNCHRONISED; device++) {
        TRY(cudaSetDevice(device));
        TRY(cudaStreamSynchronize(gpus[device].computing));
    }
}

// The computing stream has the lower half, the halo stream the upper one, and each exchanges its own plane.
void equal_step() {
    for (int device = 0; device < gpus_used() && part != COMMUNICATION; device++) {
        TRY(cudaSetDevice(device));
        relax(gpus[device], 1, points / 2, gpus[device].computing);
        relax(gpus[device], points / 2, points - 1, gpus[device].halo);
    }
    for (const bool low : {true, false}) {
        if (part == COMPUTATION)
            break;
        TRY(nccl.GroupStart());
        for (int device = 0; device < gpus_used(); device++) {
            const Gpu &gpu = gpus[device];
            Real *const top = gpu.to + (points - 1) * plane;
            if (low)
                swap_planes(gpu.to + plane, gpu.to, neighbour(device), communicators[device], gpu.computing);
            else
                swap_planes(top - plane, top, neighbour(device), others[device], gpu.halo);
        }
        TRY(nccl.GroupEnd());
    }
    for (int device = 0; device < gpus_used(); device++) {
        Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        TRY(cudaEventRecord(gpu.computed, gpu.computing));
        after(gpu.computing, gpu.exchanged, gpu.halo);
        TRY(cudaStreamWaitEvent(gpu.halo, gpu.computed, 0));
        std::swap(gpu.from, gpu.to);
    }
}

void open_gpu(int device, bool raised) {
    Gpu &gpu = gpus[device];
    TRY(cudaSetDevice(device));
    for (Real **grid : {&gpu.from, &gpu.to})
        TRY(cudaMalloc(grid, plane * points * sizeof(Real)));
    for (Real **planes : {&gpu.staged, &gpu.last})
        TRY(cudaMallocHost(planes, 2 * plane * sizeof(Real)));
    gpu.computing = gpu.halo = gpu.third = new_stream(cudaStreamNonBlocking, false);
    if (style.trap != ONE_STREAM && style.trap != SYNCHRONISED) {
        gpu.halo = new_stream(style.exchange == BY_HOST_COPY ? cudaStreamDefault : cudaStreamNonBlocking, raised);
        if (style.boundary == ON_THIRD)
            gpu.third = new_stream(cudaStreamNonBlocking, raised);
    }
    for (cudaEvent_t *event : {&gpu.computed, &gpu.ready, &gpu.copied, &gpu.exchanged})
        TRY(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
}

} // namespace

void program_step() {
    if (style.trap == EQUAL)
        equal_step();
    else
        step();
}

void program_reset() {
    program_wait();
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        set_grids(gpus[device].from, gpus[device].to, points, device);
    }
    program_wait();
}

uint64_t program_digest() {
    uint64_t hash = HASH;
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        hash = hashed_planes(hash, gpus[device].from, points);
    }
    return hash;
}

int program_open(int count, char **arguments) {
    for (const Style &known : STYLES)
        if (count == 5 && strcmp(known.name, arguments[2]) == 0)
            style = known;
    points = count == 5 ? atoi(arguments[3]) : 0;
    if (!style.name || points < 8) {
        fprintf(stderr, "usage: stencil LIBNCCL STYLE N RAISED; styles:");
        for (const Style &known : STYLES)
            fprintf(stderr, " %s", known.name);
        fprintf(stderr, "\n");
        return 2;
    }
    plane = (size_t)points * points;
    for (int device = 0; device < gpus_used(); device++)
        open_gpu(device, atoi(arguments[4]) != 0);
    if (style.exchange == BY_NCCL)
        open_nccl(arguments[1], communicators);
    if (style.trap == EQUAL)
        open_nccl(arguments[1], others);
    if (style.trap == WARMED)
        exchange_by_nccl(&Gpu::computing);
    return 0;
}
