// What the programs that ask the driver share: one JSON line an answer, and launches of the kernels of a cubin.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

static std::string question;
static std::vector<char> image;
static CUdevice device;
static CUcontext context;
static int optin, multiprocessors;

static inline std::string name_of(CUresult result) {
    const char *name = nullptr;
    cuGetErrorName(result, &name);
    return name ? name : std::to_string((int)result);
}

static inline void answer(const std::string &what, CUresult result, const std::string &more = "") {
    printf("{\"question\":\"%s\",\"case\":\"%s\",\"code\":%d,\"result\":\"%s\"%s%s}\n", question.c_str(), what.c_str(),
           (int)result, name_of(result).c_str(), more.empty() ? "" : ",", more.c_str());
    fflush(stdout);
}

static inline void must(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS) {
        answer(std::string("preparation: ") + what, result);
        exit(1);
    }
}
#define MUST(call) must((call), #call)

static inline std::string number(const char *key, long long value) {
    return "\"" + std::string(key) + "\":" + std::to_string(value);
}

static inline CUmodule load() {
    CUmodule module;
    MUST(cuModuleLoadData(&module, image.data()));
    return module;
}

static inline CUfunction function_of(CUmodule module, const char *name) {
    CUfunction function;
    MUST(cuModuleGetFunction(&function, module, name));
    return function;
}

static inline CUresult launch(CUfunction function, unsigned blocks, unsigned threads, unsigned dynamic, CUstream stream,
                              std::vector<CUlaunchAttribute> attributes = {}) {
    void *null = nullptr, *parameters[] = {&null};
    CUlaunchConfig config = {};
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = threads;
    config.sharedMemBytes = dynamic;
    config.hStream = stream;
    config.attrs = attributes.data();
    config.numAttrs = (unsigned)attributes.size();
    return cuLaunchKernelEx(&config, function, parameters, nullptr);
}

static inline CUlaunchAttribute cluster_of(unsigned size) {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = size;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    return attribute;
}

static inline CUlaunchAttribute priority_of(int value) {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attribute.value.priority = value;
    return attribute;
}

static inline CUlaunchAttribute cooperative() {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    return attribute;
}

typedef CUresult (*CaptureInfo2)(CUstream, CUstreamCaptureStatus *, unsigned long long *, CUgraph *,
                                 const CUgraphNode **, size_t *);
typedef CUresult (*CaptureInfo3)(CUstream, CUstreamCaptureStatus *, unsigned long long *, CUgraph *,
                                 const CUgraphNode **, const CUgraphEdgeData **, size_t *);

static inline void begin(const char *asked, const char *cubin) {
    question = asked;
    std::ifstream file(cubin, std::ios::binary);
    image.assign(std::istreambuf_iterator<char>(file), {});
    image.push_back(0);
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuDeviceGetAttribute(&optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
    MUST(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
}
