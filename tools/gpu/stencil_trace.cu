// A 7-point stencil of n x n x n points on each of two GPUs, whose boundary planes are exchanged beside the interior: by NCCL,
// or through host memory as MPI codes without GPU-aware MPI do it. A library for stencil_trace.py, which records its traces.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 -Xcompiler -fPIC -shared -cudart none stencil_trace.cu -o libstencil_trace.so
//
// The runtime and NCCL are those of the process, which has to have loaded both with global symbols: PyTorch's, so that its
// profiler sees every call. The boundary kernels run on the halo stream in front of the exchange: the priority inversion that is to
// be recorded. Every function returns 0 or, after a line on stderr, 1.
#include <cuda_runtime.h>

#include <cstdio>
#include <utility>
#include <vector>

// As nccl.h declares them (NCCL 2): its header is not needed, and not on every machine.
extern "C" {
typedef struct ncclComm *ncclComm_t;
int ncclCommInitAll(ncclComm_t *communicators, int count, const int *devices);
int ncclGroupStart();
int ncclGroupEnd();
int ncclSend(const void *from, size_t count, int type, int peer, ncclComm_t communicator, cudaStream_t stream);
int ncclRecv(void *to, size_t count, int type, int peer, ncclComm_t communicator, cudaStream_t stream);
}

namespace {

constexpr int GPUS = 2;
constexpr int NCCL_DOUBLE = 8; // ncclFloat64

enum Exchange { BY_NCCL, BY_HOST_STREAM, BY_HOST_QUERY };

struct Gpu {
    double *from, *to;
    double *staged; // two planes in pinned host memory
    double *last;   // those of the iteration before: the other GPU may still copy out of them
    cudaStream_t interior, halo;
    cudaEvent_t computed, exchanged, copied;
    ncclComm_t communicator;
};

Gpu gpus[GPUS];
int points;
size_t plane;
Exchange exchange;

bool failed(int code, const char *what) {
    if (code)
        fprintf(stderr, "%s: %d\n", what, code);
    return code != 0;
}
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if (failed(call, #call))                                                                                       \
            return 1;                                                                                                  \
    } while (0)

__global__ void relax_planes(const double *from, double *to, int n, int first, int end) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    const int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    const int z = blockIdx.z + first;
    if (x >= n - 1 || y >= n - 1 || z >= end)
        return;
    const size_t across = (size_t)n * n, at = z * across + (size_t)y * n + x;
    to[at] = (from[at - 1] + from[at + 1] + from[at - n] + from[at + n] + from[at - across] + from[at + across]) / 6;
}

void relax(const Gpu &gpu, int first, int end, cudaStream_t stream) {
    const dim3 threads(32, 8, 1), blocks((points + 31) / 32, (points + 7) / 8, end - first);
    relax_planes<<<blocks, threads, 0, stream>>>(gpu.from, gpu.to, points, first, end);
}

int boundary_and_interior() {
    for (int device = 0; device < GPUS; device++) {
        const Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        TRY(cudaStreamWaitEvent(gpu.halo, gpu.computed, 0));
        relax(gpu, 1, 2, gpu.halo);
        relax(gpu, points - 2, points - 1, gpu.halo);
        if (exchange != BY_NCCL) {
            const size_t bytes = plane * sizeof(double);
            TRY(cudaMemcpyAsync(gpu.staged, gpu.to + plane, bytes, cudaMemcpyDeviceToHost, gpu.halo));
            TRY(cudaMemcpyAsync(gpu.staged + plane, gpu.to + (points - 2) * plane, bytes, cudaMemcpyDeviceToHost,
                                gpu.halo));
            TRY(cudaEventRecord(gpu.copied, gpu.halo));
        }
        relax(gpu, 2, points - 2, gpu.interior);
        TRY(cudaGetLastError());
    }
    return 0;
}

int exchange_by_nccl() {
    TRY(ncclGroupStart());
    for (int device = 0; device < GPUS; device++) {
        const Gpu &gpu = gpus[device];
        const int peer = 1 - device;
        double *const low = gpu.to, *const high = gpu.to + (points - 1) * plane;
        TRY(ncclSend(low + plane, plane, NCCL_DOUBLE, peer, gpu.communicator, gpu.halo));
        TRY(ncclRecv(low, plane, NCCL_DOUBLE, peer, gpu.communicator, gpu.halo));
        TRY(ncclSend(high - plane, plane, NCCL_DOUBLE, peer, gpu.communicator, gpu.halo));
        TRY(ncclRecv(high, plane, NCCL_DOUBLE, peer, gpu.communicator, gpu.halo));
    }
    TRY(ncclGroupEnd());
    return 0;
}

int wait_for_copies(int device) {
    TRY(cudaSetDevice(device));
    if (exchange == BY_HOST_STREAM) {
        TRY(cudaStreamSynchronize(gpus[device].halo));
        return 0;
    }
    cudaError_t said;
    do
        said = cudaEventQuery(gpus[device].copied);
    while (said == cudaErrorNotReady);
    TRY(said);
    return 0;
}

int exchange_by_host() {
    for (int device = 0; device < GPUS; device++)
        if (wait_for_copies(device))
            return 1;
    for (int device = 0; device < GPUS; device++) {
        const Gpu &gpu = gpus[device];
        const double *const staged = gpus[1 - device].staged;
        const size_t bytes = plane * sizeof(double);
        TRY(cudaSetDevice(device));
        TRY(cudaMemcpyAsync(gpu.to, staged, bytes, cudaMemcpyHostToDevice, gpu.halo));
        TRY(cudaMemcpyAsync(gpu.to + (points - 1) * plane, staged + plane, bytes, cudaMemcpyHostToDevice, gpu.halo));
    }
    return 0;
}

int open_gpu(int device, bool raised) {
    Gpu &gpu = gpus[device];
    const size_t bytes = plane * points * sizeof(double);
    const std::vector<double> edge(plane, 1.0 + device);
    int least = 0, greatest = 0;
    TRY(cudaSetDevice(device));
    TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (double **grid : {&gpu.from, &gpu.to}) {
        TRY(cudaMalloc(grid, bytes));
        TRY(cudaMemset(*grid, 0, bytes));
        TRY(cudaMemcpy(*grid, edge.data(), plane * sizeof(double), cudaMemcpyHostToDevice));
    }
    for (double **planes : {&gpu.staged, &gpu.last})
        TRY(cudaMallocHost(planes, 2 * plane * sizeof(double)));
    TRY(cudaStreamCreateWithFlags(&gpu.interior, cudaStreamNonBlocking));
    TRY(cudaStreamCreateWithPriority(&gpu.halo, cudaStreamNonBlocking, raised ? greatest : 0));
    for (cudaEvent_t *event : {&gpu.computed, &gpu.exchanged, &gpu.copied})
        TRY(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    return 0;
}

} // namespace

// how: an Exchange; raised: the halo streams get the greatest priority
extern "C" int stencil_open(int n, int how, int raised) {
    const int devices[GPUS] = {0, 1};
    ncclComm_t communicators[GPUS];
    points = n;
    plane = (size_t)n * n;
    exchange = (Exchange)how;
    TRY(ncclCommInitAll(communicators, GPUS, devices));
    for (int device = 0; device < GPUS; device++) {
        gpus[device].communicator = communicators[device];
        if (open_gpu(device, raised != 0))
            return 1;
    }
    TRY(cudaSetDevice(0));
    return 0;
}

extern "C" int stencil_step() {
    if (boundary_and_interior() || (exchange == BY_NCCL ? exchange_by_nccl() : exchange_by_host()))
        return 1;
    for (int device = 0; device < GPUS; device++) {
        Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        TRY(cudaEventRecord(gpu.exchanged, gpu.halo));
        TRY(cudaStreamWaitEvent(gpu.interior, gpu.exchanged, 0));
        TRY(cudaEventRecord(gpu.computed, gpu.interior));
        std::swap(gpu.from, gpu.to);
        std::swap(gpu.staged, gpu.last);
    }
    TRY(cudaSetDevice(0));
    return 0;
}

extern "C" int stencil_wait() {
    for (int device = 0; device < GPUS; device++) {
        TRY(cudaSetDevice(device));
        TRY(cudaDeviceSynchronize());
    }
    TRY(cudaSetDevice(0));
    return 0;
}

// Of the plane beside the lower edge of the first GPU: equal in all ways of exchange.
extern "C" int stencil_sum(double *sum) {
    std::vector<double> values(plane);
    TRY(cudaMemcpy(values.data(), gpus[0].from + plane, plane * sizeof(double), cudaMemcpyDeviceToHost));
    *sum = 0;
    for (const double value : values)
        *sum += value;
    return 0;
}
