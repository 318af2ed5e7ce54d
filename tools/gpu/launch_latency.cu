// What one launch costs the calling thread with a real driver: medians over launches, nanoseconds of wall time.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 -cudart shared launch_latency.cu -o launch_latency -lcuda
//   nvcc -cubin -arch=sm_90 kernels.cu -o kernels.cubin
//   ./launch_latency kernels.cubin [LAUNCHES]       and the same behind overlap-run --policy P
//
// Through the driver, and through the runtime (`<<<>>>`), which with a static cudart passes no name that the library wraps.
// The queue is drained after every 200 launches, outside of what is timed.
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

static void measure(const char *name, int launches, const std::function<CUresult()> &launch) {
    std::vector<long> times;
    for (int i = 0; i < 400; i++)
        MUST(launch());
    MUST(cuCtxSynchronize());
    for (int i = 0; i < launches; i++) {
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
    std::ifstream file(argc > 1 ? argv[1] : "kernels.cubin", std::ios::binary);
    std::vector<char> image(std::istreambuf_iterator<char>(file), {});
    image.push_back(0);
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction empty, communication;
    CUstream stream, idle;
    CUevent event, before;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, image.data()));
    MUST(cuModuleGetFunction(&empty, module, "empty"));
    MUST(cuModuleGetFunction(&communication, module, "ncclDevKernel_empty"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(before, stream));
    for (int round = 0; round < 2; round++) {
        measure("cuLaunchKernel", launches,
                [&] { return cuLaunchKernel(empty, 8448, 1, 1, 128, 1, 1, 0, stream, nullptr, nullptr); });
        measure("cuLaunchKernel, communication", launches,
                [&] { return cuLaunchKernel(communication, 8448, 1, 1, 128, 1, 1, 0, stream, nullptr, nullptr); });
        auto taken = [] { return (CUresult)cudaGetLastError(); }; // 0 is success in both
        measure("<<<>>>", launches, [&] { return of_the_runtime<<<8448, 128, 0, stream>>>(), taken(); });
        measure("cuEventRecord", launches, [&] { return cuEventRecord(event, stream); });
        measure("cuStreamWaitEvent", launches, [&] { return cuStreamWaitEvent(stream, before, 0); });
        measure("cuEventQuery", launches, [&] { return cuEventQuery(before); });
        measure("cuEventSynchronize", launches, [&] { return cuEventSynchronize(before); });
        measure("cuStreamSynchronize", launches, [&] { return cuStreamSynchronize(idle); });
    }
    return 0;
}
