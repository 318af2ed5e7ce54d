// What one launch costs the calling thread with a real driver: medians over launches, nanoseconds of wall time.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 -cudart shared launch_latency.cu -o launch_latency -lcuda
//   nvcc -cubin -arch=sm_90 question_kernels.cu -o question_kernels.cubin
//   ./launch_latency question_kernels.cubin [LAUNCHES [BYTES]]       and the same behind overlap-run --policy P
//
// Through the driver, and through the runtime (`<<<>>>`), which with a static cudart passes no name that the library wraps.
// BYTES: of dynamic shared memory, for the driver's launches of all but the communication kernel. The queue is drained after every 200 launches, outside of what is timed.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

__global__ void of_the_runtime() {}
extern "C" __global__ void ncclDevKernel_of_the_runtime() {}

static void must(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, (int)result);
        exit(1);
    }
}
#define MUST(call) must((call), #call)

static long now() {
    auto time = std::chrono::steady_clock::now().time_since_epoch();
    return (long)std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

// before: what is called before each launch, and not timed.
static void measure(
    const char *name, int launches, const std::function<CUresult()> &launch,
    const std::function<void()> &before = [] {}) {
    std::vector<long> times;
    for (int i = 0; i < 400; i++) {
        before();
        MUST(launch());
    }
    MUST(cuCtxSynchronize());
    for (int i = 0; i < launches; i++) {
        before();
        long start = now();
        CUresult result = launch();
        times.push_back(now() - start);
        MUST(result);
        if (i % 200 == 199)
            MUST(cuCtxSynchronize());
    }
    std::sort(times.begin(), times.end());
    auto at = [&](double part) { return times[(size_t)(part * (double)(times.size() - 1))]; };
    printf("{\"question\":\"launch latency\",\"case\":\"%s\",\"launches\":%d,\"p10_ns\":%ld,\"median_ns\":%ld,"
           "\"p90_ns\":%ld}\n",
           name, launches, at(0.1), at(0.5), at(0.9));
}

int main(int argc, char **argv) {
    int launches = argc > 2 ? atoi(argv[2]) : 100000;
    unsigned bytes = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
    std::ifstream file(argc > 1 ? argv[1] : "question_kernels.cubin", std::ios::binary);
    std::vector<char> image(std::istreambuf_iterator<char>(file), {});
    image.push_back(0);
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction empty, communication;
    CUstream stream, beside, idle;
    CUevent event, before;
    CUdeviceptr memory;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, image.data()));
    MUST(cuModuleGetFunction(&empty, module, "empty"));
    MUST(cuModuleGetFunction(&communication, module, "ncclDevKernel_empty"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(before, stream));
    MUST(cuMemAlloc(&memory, 4));
    if (bytes)
        MUST(cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes));
    CUlaunchConfig config = {};
    config.gridDimX = 8448;
    config.blockDimX = 128;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.sharedMemBytes = bytes;
    CUlaunchAttribute raised = {};
    raised.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    raised.value.priority = -5;
    CUlaunchConfig with_priority = config;
    with_priority.attrs = &raised;
    with_priority.numAttrs = 1;
    for (int round = 0; round < 2; round++) {
        measure("cuLaunchKernel", launches,
                [&] { return cuLaunchKernel(empty, 8448, 1, 1, 128, 1, 1, bytes, stream, nullptr, nullptr); });
        measure("cuLaunchKernelEx", launches, [&] { return cuLaunchKernelEx(&config, empty, nullptr, nullptr); });
        measure("cuLaunchKernelEx, the program's own priority", launches,
                [&] { return cuLaunchKernelEx(&with_priority, empty, nullptr, nullptr); });
        measure("cuLaunchKernel, communication", launches,
                [&] { return cuLaunchKernel(communication, 8448, 1, 1, 128, 1, 1, 0, stream, nullptr, nullptr); });
        auto taken = [] { return (CUresult)cudaGetLastError(); }; // 0 is success in both
        measure("<<<>>>", launches, [&] { return of_the_runtime<<<8448, 128, 0, stream>>>(), taken(); });
        measure("<<<>>>, communication", launches,
                [&] { return ncclDevKernel_of_the_runtime<<<8448, 128, 0, stream>>>(), taken(); });
        auto communicate = [&] {
            MUST(cuLaunchKernel(communication, 32, 1, 1, 128, 1, 1, 0, beside, nullptr, nullptr));
        };
        measure(
            "cuLaunchKernel, beside communication", launches,
            [&] { return cuLaunchKernel(empty, 8448, 1, 1, 128, 1, 1, bytes, stream, nullptr, nullptr); }, communicate);
        measure("cuEventRecord", launches, [&] { return cuEventRecord(event, stream); });
        measure(
            "cuEventRecord, behind communication", launches, [&] { return cuEventRecord(event, beside); }, communicate);
        measure("cuStreamWaitEvent", launches, [&] { return cuStreamWaitEvent(stream, before, 0); });
        measure(
            "cuStreamWaitEvent, for communication", launches, [&] { return cuStreamWaitEvent(stream, event, 0); },
            [&] { communicate(), MUST(cuEventRecord(event, beside)); });
        measure("cuEventQuery", launches, [&] { return cuEventQuery(before); });
        measure("cuEventSynchronize", launches, [&] { return cuEventSynchronize(before); });
        measure("cuStreamSynchronize", launches, [&] { return cuStreamSynchronize(idle); });
        measure(
            "cuStreamSynchronize, for a kernel", launches / 10, [&] { return cuStreamSynchronize(beside); },
            communicate);
        measure("cuCtxSynchronize", launches, [] { return cuCtxSynchronize(); });
        measure("cuMemsetD32Async", launches, [&] { return cuMemsetD32Async(memory, 0, 1, stream); });
    }
    return 0;
}
