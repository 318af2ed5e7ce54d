// What does an unmodified stencil gain when the streams that are waited for are raised? A plain program for critical.py.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 critical.cu -o critical
//   echo '[5, 100]' | ./critical /path/of/libnccl.so.2 halo-stream 256 0
//
// Two GPUs in one process, n x n x n points of 64 bits on each, seven-point Jacobi. The two planes at the edge are computed
// first and exchanged beside the interior, by NCCL or through the host. Arguments: NCCL's library, which program (STYLES),
// n, and whether the program raises its own streams. Each line of stdin is a turn, [batches, iterations of a batch], and its
// answer has the milliseconds of an iteration by batch. The last answer is a digest of the planes that were exchanged: equal
// in all programs of the same n after the same number of iterations.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace {

constexpr int GPUS = 2, WARM = 10;
constexpr int NCCL_DOUBLE = 8; // ncclFloat64

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

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const int code = (int)(call);                                                                                  \
        if (code) {                                                                                                    \
            fprintf(stderr, "%s: %d\n", #call, code);                                                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

// ---- NCCL, as nccl.h declares it: the header is not on every machine ----

typedef struct ncclComm *ncclComm_t;
struct {
    int (*GetVersion)(int *version);
    int (*CommInitAll)(ncclComm_t *communicators, int count, const int *devices);
    int (*GroupStart)();
    int (*GroupEnd)();
    int (*Send)(const void *from, size_t count, int type, int peer, ncclComm_t communicator, cudaStream_t stream);
    int (*Recv)(void *to, size_t count, int type, int peer, ncclComm_t communicator, cudaStream_t stream);
} nccl;

template <typename Function> void find(void *library, const char *name, Function *function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    if (!*function) {
        fprintf(stderr, "%s: no such function\n", name);
        exit(1);
    }
}

void open_nccl(const char *path) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    find(library, "ncclGetVersion", &nccl.GetVersion);
    find(library, "ncclCommInitAll", &nccl.CommInitAll);
    find(library, "ncclGroupStart", &nccl.GroupStart);
    find(library, "ncclGroupEnd", &nccl.GroupEnd);
    find(library, "ncclSend", &nccl.Send);
    find(library, "ncclRecv", &nccl.Recv);
}

// ---- the program ----

struct Gpu {
    double *from, *to;
    double *staged, *last; // two planes each in pinned memory: the other GPU may still copy out of those of before
    cudaStream_t computing, halo, third;
    cudaEvent_t computed, ready, copied, exchanged;
    ncclComm_t low, high; // one communicator, except for EQUAL
};

Gpu gpus[GPUS];
Style style;
int points;
size_t plane;

__global__ void jacobi(const double *from, double *to, int n, int first, int end) {
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
    jacobi<<<blocks, threads, 0, stream>>>(gpu.from, gpu.to, points, first, end);
    TRY(cudaGetLastError());
}

void after(cudaStream_t stream, cudaEvent_t event, cudaStream_t before) {
    TRY(cudaEventRecord(event, before));
    TRY(cudaStreamWaitEvent(stream, event, 0));
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
    const size_t bytes = plane * sizeof(double);
    TRY(cudaMemcpyAsync(gpu.staged, gpu.to + plane, bytes, cudaMemcpyDeviceToHost, gpu.halo));
    TRY(cudaMemcpyAsync(gpu.staged + plane, gpu.to + (points - 2) * plane, bytes, cudaMemcpyDeviceToHost, gpu.halo));
    TRY(cudaEventRecord(gpu.copied, gpu.halo));
}

void copy_out_blocking(const Gpu &gpu) {
    const size_t bytes = plane * sizeof(double);
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

void copy_in(const Gpu &gpu, const double *staged) {
    const size_t bytes = plane * sizeof(double);
    if (style.exchange == BY_HOST_COPY) {
        TRY(cudaMemcpy(gpu.to, staged, bytes, cudaMemcpyHostToDevice));
        TRY(cudaMemcpy(gpu.to + (points - 1) * plane, staged + plane, bytes, cudaMemcpyHostToDevice));
        return;
    }
    TRY(cudaMemcpyAsync(gpu.to, staged, bytes, cudaMemcpyHostToDevice, gpu.halo));
    TRY(cudaMemcpyAsync(gpu.to + (points - 1) * plane, staged + plane, bytes, cudaMemcpyHostToDevice, gpu.halo));
}

void exchange_by_host() {
    for (int device = 0; device < GPUS; device++) {
        TRY(cudaSetDevice(device));
        wait_for_copies(gpus[device]);
    }
    for (int device = 0; device < GPUS; device++) {
        TRY(cudaSetDevice(device));
        copy_in(gpus[device], gpus[1 - device].staged);
    }
}

void swap_planes(double *mine, double *other, int peer, ncclComm_t communicator, cudaStream_t stream) {
    TRY(nccl.Send(mine, plane, NCCL_DOUBLE, peer, communicator, stream));
    TRY(nccl.Recv(other, plane, NCCL_DOUBLE, peer, communicator, stream));
}

void exchange_by_nccl(cudaStream_t Gpu::*stream) {
    TRY(nccl.GroupStart());
    for (int device = 0; device < GPUS; device++) {
        const Gpu &gpu = gpus[device];
        double *const top = gpu.to + (points - 1) * plane;
        swap_planes(gpu.to + plane, gpu.to, 1 - device, gpu.low, gpu.*stream);
        swap_planes(top - plane, top, 1 - device, gpu.low, gpu.*stream);
    }
    TRY(nccl.GroupEnd());
}

void step() {
    for (int device = 0; device < GPUS; device++) {
        const Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        edge(gpu);
        if (style.exchange != BY_NCCL && style.exchange != BY_HOST_COPY)
            copy_out(gpu);
        relax(gpu, 2, points - 2, gpu.computing);
    }
    if (style.exchange == BY_NCCL)
        exchange_by_nccl(&Gpu::halo);
    else
        exchange_by_host();
    for (int device = 0; device < GPUS; device++) {
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
    for (int device = 0; device < GPUS && style.trap == SYNCHRONISED; device++) {
        TRY(cudaSetDevice(device));
        TRY(cudaStreamSynchronize(gpus[device].computing));
    }
}

// The computing stream has the lower half, the halo stream the upper one, and each exchanges its own plane.
void equal_step() {
    for (int device = 0; device < GPUS; device++) {
        TRY(cudaSetDevice(device));
        relax(gpus[device], 1, points / 2, gpus[device].computing);
        relax(gpus[device], points / 2, points - 1, gpus[device].halo);
    }
    for (const bool low : {true, false}) {
        TRY(nccl.GroupStart());
        for (int device = 0; device < GPUS; device++) {
            const Gpu &gpu = gpus[device];
            double *const top = gpu.to + (points - 1) * plane;
            if (low)
                swap_planes(gpu.to + plane, gpu.to, 1 - device, gpu.low, gpu.computing);
            else
                swap_planes(top - plane, top, 1 - device, gpu.high, gpu.halo);
        }
        TRY(nccl.GroupEnd());
    }
    for (int device = 0; device < GPUS; device++) {
        Gpu &gpu = gpus[device];
        TRY(cudaSetDevice(device));
        TRY(cudaEventRecord(gpu.computed, gpu.computing));
        after(gpu.computing, gpu.exchanged, gpu.halo);
        TRY(cudaStreamWaitEvent(gpu.halo, gpu.computed, 0));
        std::swap(gpu.from, gpu.to);
    }
}

void wait_for_all() {
    for (int device = 0; device < GPUS; device++) {
        TRY(cudaSetDevice(device));
        TRY(cudaDeviceSynchronize());
    }
}

void open_gpu(int device, bool raised) {
    Gpu &gpu = gpus[device];
    const size_t bytes = plane * points * sizeof(double);
    const std::vector<double> first(plane, 1.0 + device);
    int least = 0, greatest = 0;
    TRY(cudaSetDevice(device));
    TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (double **grid : {&gpu.from, &gpu.to}) {
        TRY(cudaMalloc(grid, bytes));
        TRY(cudaMemset(*grid, 0, bytes));
        TRY(cudaMemcpy(*grid, first.data(), plane * sizeof(double), cudaMemcpyHostToDevice));
    }
    for (double **planes : {&gpu.staged, &gpu.last})
        TRY(cudaMallocHost(planes, 2 * plane * sizeof(double)));
    TRY(cudaStreamCreateWithFlags(&gpu.computing, cudaStreamNonBlocking));
    gpu.halo = gpu.third = gpu.computing;
    const unsigned flags = style.exchange == BY_HOST_COPY ? cudaStreamDefault : cudaStreamNonBlocking; // of the halo's
    const bool one = style.trap == ONE_STREAM || style.trap == SYNCHRONISED;
    for (cudaStream_t *stream : {&gpu.halo, style.boundary == ON_THIRD ? &gpu.third : nullptr}) {
        if (!stream || one)
            continue;
        if (raised)
            TRY(cudaStreamCreateWithPriority(stream, flags, greatest));
        else
            TRY(cudaStreamCreateWithFlags(stream, flags));
    }
    for (cudaEvent_t *event : {&gpu.computed, &gpu.ready, &gpu.copied, &gpu.exchanged})
        TRY(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
}

void open_communicators() {
    const int devices[GPUS] = {0, 1};
    for (ncclComm_t Gpu::*one : {&Gpu::low, &Gpu::high}) {
        ncclComm_t made[GPUS];
        if (one == &Gpu::high && style.trap != EQUAL)
            continue;
        TRY(nccl.CommInitAll(made, GPUS, devices));
        for (int device = 0; device < GPUS; device++)
            gpus[device].*one = made[device];
    }
}

uint64_t digest() {
    uint64_t hash = 14695981039346656037u; // FNV-1a
    std::vector<double> values(plane);
    for (int device = 0; device < GPUS; device++) {
        TRY(cudaSetDevice(device));
        for (const int at : {0, 1, points - 2, points - 1}) {
            TRY(cudaMemcpy(values.data(), gpus[device].from + at * plane, plane * sizeof(double),
                           cudaMemcpyDeviceToHost));
            for (const double value : values) {
                uint64_t bits;
                memcpy(&bits, &value, sizeof bits);
                hash = (hash ^ bits) * 1099511628211u;
            }
        }
    }
    return hash;
}

void turn(int batches, int iterations, const cudaEvent_t timed[2]) {
    void (*const one)() = style.trap == EQUAL ? equal_step : step;
    for (int i = 0; i < WARM; i++)
        one();
    printf("answer {\"ms\": [");
    for (int batch = 0; batch < batches; batch++) {
        float ms = 0;
        wait_for_all();
        TRY(cudaSetDevice(0));
        TRY(cudaEventRecord(timed[0], gpus[0].computing));
        for (int i = 0; i < iterations; i++)
            one();
        TRY(cudaSetDevice(0));
        TRY(cudaEventRecord(timed[1], gpus[0].computing));
        TRY(cudaEventSynchronize(timed[1]));
        TRY(cudaEventElapsedTime(&ms, timed[0], timed[1]));
        printf("%s%.6f", batch ? ", " : "", ms / iterations);
    }
    wait_for_all();
    printf("]}\n");
    fflush(stdout);
}

} // namespace

int main(int count, char **arguments) {
    int runtime = 0, driver = 0, library = 0, batches, iterations;
    cudaEvent_t timed[2];
    char line[256];
    for (const Style &known : STYLES)
        if (count == 5 && strcmp(known.name, arguments[2]) == 0)
            style = known;
    points = count == 5 ? atoi(arguments[3]) : 0;
    if (!style.name || points < 8) {
        fprintf(stderr, "usage: critical LIBNCCL PROGRAM N RAISED; programs:");
        for (const Style &known : STYLES)
            fprintf(stderr, " %s", known.name);
        fprintf(stderr, "\n");
        return 2;
    }
    plane = (size_t)points * points;
    if (style.exchange == BY_NCCL) {
        open_nccl(arguments[1]);
        TRY(nccl.GetVersion(&library));
        open_communicators();
    }
    for (int device = 0; device < GPUS; device++)
        open_gpu(device, atoi(arguments[4]) != 0);
    if (style.trap == WARMED)
        exchange_by_nccl(&Gpu::computing);
    TRY(cudaSetDevice(0));
    for (int i = 0; i < 2; i++)
        TRY(cudaEventCreate(&timed[i]));
    wait_for_all();
    TRY(cudaRuntimeGetVersion(&runtime));
    TRY(cudaDriverGetVersion(&driver));
    printf("answer {\"runtime\": %d, \"driver\": %d, \"nccl\": %d}\n", runtime, driver, library);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && sscanf(line, "[%d, %d]", &batches, &iterations) == 2)
        turn(batches, iterations, timed);
    printf("answer {\"digest\": \"%016llx\"}\n", (unsigned long long)digest());
    return 0;
}
