// What a driver answers to launches that it refuses, and to those at its limits. One JSON line an answer.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 correctness/driver.cu -o driver -lcuda
//   ./driver kernels.cubin
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

static std::vector<char> image;
static CUdevice device;
static CUcontext context;
static int optin, multiprocessors;

static std::string name_of(CUresult result) {
    const char *name = nullptr;
    cuGetErrorName(result, &name);
    return name ? name : std::to_string((int)result);
}

static void answer(const std::string &what, CUresult result, const std::string &more = "") {
    printf("{\"case\":\"%s\",\"code\":%d,\"result\":\"%s\"%s%s}\n", what.c_str(), (int)result, name_of(result).c_str(),
           more.empty() ? "" : ",", more.c_str());
    fflush(stdout);
}

static void must(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS) {
        answer(std::string("preparation: ") + what, result);
        exit(1);
    }
}
#define MUST(call) must((call), #call)

static std::string number(const char *key, long long value) {
    return "\"" + std::string(key) + "\":" + std::to_string(value);
}

static CUmodule load() {
    CUmodule module;
    MUST(cuModuleLoadData(&module, image.data()));
    return module;
}

static CUfunction function_of(CUmodule module, const char *name) {
    CUfunction function;
    MUST(cuModuleGetFunction(&function, module, name));
    return function;
}

static CUresult launch(CUfunction function, unsigned blocks, unsigned threads, unsigned dynamic, CUstream stream,
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

static CUlaunchAttribute cluster_of(unsigned size) {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = size;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    return attribute;
}

static CUlaunchAttribute priority_of(int value) {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attribute.value.priority = value;
    return attribute;
}

static CUlaunchAttribute cooperative() {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    return attribute;
}

static void begin(const char *cubin) {
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

static void ask_errors() {
    CUmodule module = load();
    CUfunction touch = function_of(module, "touch"), fixed = function_of(module, "fixed_20k");
    CUfunction pairs = function_of(module, "pairs"), dynamic_size = function_of(module, "dynamic_size");
    auto limit = [](CUfunction function) {
        int value = -1;
        cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
        return value;
    };
    auto set = [](CUfunction function, int value) {
        return cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value);
    };
    auto tell = [&](const std::string &what, CUresult result) {
        CUresult after = cuCtxSynchronize(), again = launch(touch, 1, 32, 128, nullptr);
        answer(what, result, "\"synchronise\":\"" + name_of(after) + "\",\"next_launch\":\"" + name_of(again) + "\"");
    };
    answer("MAX_DYNAMIC at first, no static", CUDA_SUCCESS,
           number("value", limit(touch)) + "," + number("optin", optin));
    answer("MAX_DYNAMIC at first, 20,480 B static", CUDA_SUCCESS, number("value", limit(fixed)));
    tell("dynamic 49,152, not raised", launch(touch, 1, 32, 49152, nullptr));
    tell("dynamic 49,153, not raised", launch(touch, 1, 32, 49153, nullptr));
    tell("20,480 static, dynamic at the first limit", launch(fixed, 1, 32, (unsigned)limit(fixed), nullptr));
    tell("20,480 static, one more than the first limit", launch(fixed, 1, 32, (unsigned)limit(fixed) + 1, nullptr));
    tell("set 60,000", set(touch, 60000));
    tell("dynamic 60,000", launch(touch, 1, 32, 60000, nullptr));
    tell("dynamic 60,001", launch(touch, 1, 32, 60001, nullptr));
    tell("dynamic 60,001, priority attribute", launch(touch, 1, 32, 60001, nullptr, {priority_of(-1)}));
    tell("set the opt-in limit", set(touch, optin));
    tell("set one more than the opt-in limit", set(touch, optin + 1));
    tell("dynamic at the opt-in limit", launch(touch, 1, 32, (unsigned)optin, nullptr));
    tell("dynamic one more than the opt-in limit", launch(touch, 1, 32, (unsigned)optin + 1, nullptr));
    tell("dynamic 1 MiB", launch(touch, 1, 32, 1 << 20, nullptr));
    tell("set the opt-in limit, 20,480 B static", set(fixed, optin));
    tell("set the opt-in limit less 20,480, 20,480 B static", set(fixed, optin - 20480));
    tell("set -1", set(touch, -1));
    tell("set 1000, lower than 48 KiB", set(touch, 1000));
    answer("MAX_DYNAMIC after that", CUDA_SUCCESS, number("value", limit(touch)));
    tell("dynamic 40,000 after that", launch(touch, 1, 32, 40000, nullptr));
    set(touch, optin);
    tell("1025 threads", launch(touch, 1, 1025, 0, nullptr));
    tell("0 threads", launch(touch, 1, 0, 0, nullptr));
    tell("cooperative, as large as fits",
         launch(touch, (unsigned)multiprocessors, 128, 200000, nullptr, {cooperative()}));
    tell("cooperative, one block too many",
         launch(touch, (unsigned)multiprocessors + 1, 128, 200000, nullptr, {cooperative()}));
    tell("cooperative, beyond the limit", launch(touch, 1, 128, (unsigned)optin + 1, nullptr, {cooperative()}));
    for (unsigned size : {2u, 4u, 8u, 16u, 32u})
        for (unsigned dynamic : {512u, 100000u, (unsigned)optin})
            tell("cluster of " + std::to_string(size) + ", dynamic " + std::to_string(dynamic),
                 launch(touch, 64, 128, dynamic, nullptr, {cluster_of(size)}));
    tell("non-portable clusters allowed",
         cuFuncSetAttribute(touch, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    for (unsigned size : {16u, 32u})
        for (unsigned dynamic : {512u, 100000u, (unsigned)optin})
            tell("non-portable cluster of " + std::to_string(size) + ", dynamic " + std::to_string(dynamic),
                 launch(touch, 64, 128, dynamic, nullptr, {cluster_of(size)}));
    tell("cluster of 4, grid of 6", launch(touch, 6, 128, 512, nullptr, {cluster_of(4)}));
    tell("compiled cluster of 2, dynamic not raised", launch(pairs, 64, 128, 100000, nullptr));
    tell("compiled cluster of 2, other attribute", launch(pairs, 64, 128, 512, nullptr, {cluster_of(4)}));
    for (int priority : {-100, -6, -5, 0, 1, 100})
        tell("priority " + std::to_string(priority), launch(touch, 1, 32, 128, nullptr, {priority_of(priority)}));
    tell("priority twice", launch(touch, 1, 32, 128, nullptr, {priority_of(0), priority_of(-5)}));
    std::vector<CUlaunchAttribute> many(24, priority_of(-5));
    tell("priority 24 times", launch(touch, 1, 32, 128, nullptr, many));
    tell("priority on the per-thread stream", launch(touch, 1, 32, 128, CU_STREAM_PER_THREAD, {priority_of(-5)}));
    CUdeviceptr out;
    unsigned sizes[2] = {};
    MUST(cuMemAlloc(&out, 8));
    void *parameters[] = {&out};
    for (unsigned dynamic : {0u, 1000u, 5001u}) {
        MUST(cuLaunchKernel(dynamic_size, 1, 1, 1, 32, 1, 1, dynamic, nullptr, parameters, nullptr));
        MUST(cuMemcpyDtoH(sizes, out, 8));
        answer("what a kernel reads, launched with " + std::to_string(dynamic), CUDA_SUCCESS,
               number("dynamic_smem_size", sizes[0]) + "," + number("total_smem_size", sizes[1]));
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: driver CUBIN\n");
        return 2;
    }
    begin(argv[1]);
    ask_errors();
    return 0;
}
