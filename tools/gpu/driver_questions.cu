// Questions to a real driver whose answers the library relies on. One JSON line an answer.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 driver_questions.cu -o driver_questions -lcuda
//   nvcc -cubin -arch=sm_90 question_kernels.cu -o question_kernels.cubin
//   ./driver_questions QUESTION question_kernels.cubin [NAME ...]
//
// Each question is asked in a process of its own: some of them may end it. NAMEs are entry points, for `names` alone.
#include "questions.h"

#include <dlfcn.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>

/* ---- names: does cuGetProcAddress give what dlsym gives? ---- */

static std::string base_of(std::string name) {
    for (const char *ending : {"_ptsz", "_ptds", "_v2", "_v3", "_v4"}) {
        size_t at = name.rfind(ending);
        if (at != std::string::npos && at + strlen(ending) == name.size())
            name.resize(at);
    }
    return name;
}

static void ask_names(const std::vector<std::string> &names) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    Dl_info info;
    if (!driver || !dladdr(dlsym(driver, "cuInit"), &info))
        exit(1);
    void *base_address = info.dli_fbase;
    std::set<std::string> bases;
    for (const std::string &name : names) {
        bases.insert(base_of(name));
        void *exported = dlsym(driver, name.c_str()), *found = nullptr;
        CUdriverProcAddressQueryResult status = {};
        CUresult result = cuGetProcAddress_v2(name.c_str(), &found, 13000, 0, &status);
        answer("by its full name: " + name, result,
               number("exported", exported != nullptr) + "," + number("same_address", found && found == exported) +
                   "," + number("status", status));
    }
    static const int VERSIONS[] = {2000,  3020,  4000,  5000,  6050,  7000,  8000,  9000,  9020,  10000,
                                   10010, 11000, 11010, 11030, 11060, 11080, 12000, 12030, 12080, 13000};
    for (const std::string &base : bases)
        for (unsigned long long flags : {0ull, 1ull, 2ull}) {
            std::map<std::string, std::string> versions; // by symbol
            bool exported_all = true, inside = true;
            for (int version : VERSIONS) {
                void *found = nullptr;
                CUdriverProcAddressQueryResult status = {};
                CUresult result = cuGetProcAddress_v2(base.c_str(), &found, version, flags, &status);
                std::string symbol = "none";
                if (result == CUDA_SUCCESS && found) {
                    bool named = dladdr(found, &info) && info.dli_saddr == found && info.dli_sname;
                    symbol = named ? info.dli_sname : "not exported";
                    inside = inside && dladdr(found, &info) && info.dli_fbase == base_address;
                    exported_all = exported_all && named && dlsym(driver, symbol.c_str()) == found;
                }
                versions[symbol] += (versions[symbol].empty() ? "" : " ") + std::to_string(version);
            }
            std::string list;
            for (auto &[symbol, which] : versions)
                list += (list.empty() ? "\"" : ",\"") + symbol + "\":\"" + which + "\"";
            answer(base + ", flags " + std::to_string(flags), CUDA_SUCCESS,
                   "\"symbols\":{" + list + "}," + number("every_address_is_an_exported_one", exported_all) + "," +
                       number("inside_libcuda", inside));
        }
}

/* ---- capture: which calls spoil a capture in global mode? ---- */

struct Probe {
    const char *name;
    std::function<CUresult(CUstream captured)> ask;
};

static void ask_capture() {
    CUmodule module = load();
    CUlibrary library;
    CUkernel kernel;
    MUST(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "touch"));
    CUfunction function = function_of(module, "touch");
    MUST(launch(function, 1, 32, 128, nullptr));
    MUST(cuCtxSynchronize());
    CUevent event;
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CUstream other;
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CUevent outside, recorded;
    MUST(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&recorded, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(outside, other));
    int value;
    unsigned flags;
    unsigned long long id;
    CUcontext owner;
    CUdevice of_stream;
    const char *name;
    auto get_v2 = (CaptureInfo2)dlsym(RTLD_DEFAULT, "cuStreamGetCaptureInfo_v2");
    auto get_v3 = (CaptureInfo3)dlsym(RTLD_DEFAULT, "cuStreamGetCaptureInfo_v3");
    CUstreamCaptureStatus of_capture;
    auto info_v2 = [&](CUstream s) { return get_v2(s, &of_capture, &id, nullptr, nullptr, nullptr); };
    auto info_v3 = [&](CUstream s) { return get_v3(s, &of_capture, &id, nullptr, nullptr, nullptr, nullptr); };
    auto raise = [](CUstream s) {
        CUstreamAttrValue asked = {};
        asked.priority = -1;
        return cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &asked);
    };
    auto modules = std::make_shared<std::vector<CUmodule>>();
    for (int i = 0; i < 32; i++)
        modules->push_back(load()); // functions of these are not loaded yet
    size_t next = 0;
    const Probe probes[] = {
        {"nothing", [](CUstream) { return CUDA_SUCCESS; }},
        {"cuCtxGetCurrent",
         [](CUstream) {
             CUcontext c;
             return cuCtxGetCurrent(&c);
         }},
        {"cuCtxGetDevice",
         [](CUstream) {
             CUdevice d;
             return cuCtxGetDevice(&d);
         }},
        {"cuDeviceGetAttribute",
         [&](CUstream) { return cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device); }},
        {"cuDeviceGetName",
         [](CUstream) {
             char text[64];
             return cuDeviceGetName(text, 64, device);
         }},
        {"cuDeviceGetUuid",
         [](CUstream) {
             CUuuid uuid;
             return cuDeviceGetUuid(&uuid, device);
         }},
        {"cuStreamIsCapturing of the captured stream",
         [](CUstream s) {
             CUstreamCaptureStatus c;
             return cuStreamIsCapturing(s, &c);
         }},
        {"cuStreamIsCapturing of another stream",
         [&](CUstream) {
             CUstreamCaptureStatus c;
             return cuStreamIsCapturing(other, &c);
         }},
        {"cuStreamIsCapturing of the legacy stream",
         [](CUstream) {
             CUstreamCaptureStatus c;
             return cuStreamIsCapturing(nullptr, &c);
         }},
        {"cuStreamGetPriority of the captured stream", [&](CUstream s) { return cuStreamGetPriority(s, &value); }},
        {"cuStreamGetPriority of the legacy stream", [&](CUstream) { return cuStreamGetPriority(nullptr, &value); }},
        {"cuFuncGetAttribute",
         [&](CUstream) { return cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function); }},
        {"cuFuncSetAttribute MAX_DYNAMIC",
         [&](CUstream) {
             return cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000);
         }},
        {"cuFuncSetAttribute carve-out",
         [&](CUstream) {
             return cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100);
         }},
        {"cuFuncGetName", [&](CUstream) { return cuFuncGetName(&name, function); }},
        {"cuFuncGetModule",
         [&](CUstream) {
             CUmodule m;
             return cuFuncGetModule(&m, function);
         }},
        {"cuKernelGetName", [&](CUstream) { return cuKernelGetName(&name, kernel); }},
        {"cuKernelGetAttribute",
         [&](CUstream) { return cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, device); }},
        {"cuKernelSetAttribute MAX_DYNAMIC",
         [&](CUstream) {
             return cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel, device);
         }},
        {"cuKernelGetFunction",
         [&](CUstream) {
             CUfunction f;
             return cuKernelGetFunction(&f, kernel);
         }},
        {"cuLibraryGetKernel",
         [&](CUstream) {
             CUkernel k;
             return cuLibraryGetKernel(&k, library, "lazy_three");
         }},
        {"cuModuleGetFunction, not loaded before",
         [&](CUstream) {
             CUfunction f;
             return cuModuleGetFunction(&f, modules->at(next++), "lazy_one");
         }},
        {"cuModuleGetFunction and cuFuncGetAttribute",
         [&](CUstream) {
             CUfunction f;
             CUresult r = cuModuleGetFunction(&f, modules->at(next++), "lazy_two");
             return r ? r : cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f);
         }},
        {"cuModuleGetFunction and cuFuncSetAttribute",
         [&](CUstream) {
             CUfunction f;
             CUresult r = cuModuleGetFunction(&f, modules->at(next++), "lazy_four");
             return r ? r : cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000);
         }},
        {"cuOccupancyMaxActiveBlocksPerMultiprocessor",
         [&](CUstream) { return cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 128, 0); }},
        {"cuOccupancyMaxActiveClusters",
         [&](CUstream) {
             CUlaunchAttribute attribute = cluster_of(2);
             CUlaunchConfig config = {};
             config.gridDimX = 64;
             config.blockDimX = 128;
             config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
             config.attrs = &attribute;
             config.numAttrs = 1;
             return cuOccupancyMaxActiveClusters(&value, function, &config);
         }},
        {"cuLibraryGetKernel and cuKernelGetAttribute, not used before",
         [&](CUstream) {
             CUlibrary loaded;
             CUkernel unused;
             CUresult result = cuLibraryLoadData(&loaded, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
             if (!result)
                 result = cuLibraryGetKernel(&unused, loaded, "lazy_one");
             return result ? result : cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, unused, device);
         }},
        {"cuStreamGetPriority of the per-thread stream",
         [&](CUstream) { return cuStreamGetPriority(CU_STREAM_PER_THREAD, &value); }},
        {"cuStreamGetPriority of another stream", [&](CUstream) { return cuStreamGetPriority(other, &value); }},
        {"launch on the legacy stream", [&](CUstream) { return launch(function, 1, 32, 128, nullptr); }},
        {"launch on the legacy stream with a priority",
         [&](CUstream) { return launch(function, 1, 32, 128, nullptr, {priority_of(-5)}); }},
        {"launch on another stream", [&](CUstream) { return launch(function, 1, 32, 128, other); }},
        {"cuStreamCreate",
         [](CUstream) {
             CUstream s;
             return cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
         }},
        {"cuEventQuery", [&](CUstream) { return cuEventQuery(event); }},
        {"cuMemAlloc",
         [](CUstream) {
             CUdeviceptr p;
             return cuMemAlloc(&p, 1 << 20);
         }},
        {"cuModuleLoadData",
         [&](CUstream) {
             CUmodule m;
             return cuModuleLoadData(&m, image.data());
         }},
        {"cuStreamGetFlags of the captured stream", [&](CUstream s) { return cuStreamGetFlags(s, &flags); }},
        {"cuStreamGetFlags of another stream", [&](CUstream) { return cuStreamGetFlags(other, &flags); }},
        {"cuStreamGetFlags of the legacy stream", [&](CUstream) { return cuStreamGetFlags(nullptr, &flags); }},
        {"cuStreamGetCtx of the captured stream", [&](CUstream s) { return cuStreamGetCtx(s, &owner); }},
        {"cuStreamGetCtx of another stream", [&](CUstream) { return cuStreamGetCtx(other, &owner); }},
        {"cuStreamGetCtx of the legacy stream", [&](CUstream) { return cuStreamGetCtx(nullptr, &owner); }},
        {"cuStreamGetId of the captured stream", [&](CUstream s) { return cuStreamGetId(s, &id); }},
        {"cuStreamGetId of another stream", [&](CUstream) { return cuStreamGetId(other, &id); }},
        {"cuStreamGetId of the legacy stream", [&](CUstream) { return cuStreamGetId(nullptr, &id); }},
        {"cuStreamGetDevice of the captured stream", [&](CUstream s) { return cuStreamGetDevice(s, &of_stream); }},
        {"cuStreamGetDevice of the legacy stream", [&](CUstream) { return cuStreamGetDevice(nullptr, &of_stream); }},
        {"cuStreamGetCaptureInfo_v2 of the captured stream", [&](CUstream s) { return info_v2(s); }},
        {"cuStreamGetCaptureInfo_v2 of another stream", [&](CUstream) { return info_v2(other); }},
        {"cuStreamGetCaptureInfo_v2 of the legacy stream", [&](CUstream) { return info_v2(nullptr); }},
        {"cuStreamGetCaptureInfo_v3 of the captured stream", [&](CUstream s) { return info_v3(s); }},
        {"cuStreamGetCaptureInfo_v3 of another stream", [&](CUstream) { return info_v3(other); }},
        {"cuStreamGetCaptureInfo_v3 of the legacy stream", [&](CUstream) { return info_v3(nullptr); }},
        {"cuStreamSetAttribute PRIORITY of the captured stream", [&](CUstream s) { return raise(s); }},
        {"cuStreamSetAttribute PRIORITY of another stream", [&](CUstream) { return raise(other); }},
        {"cuStreamSetAttribute PRIORITY of the legacy stream", [&](CUstream) { return raise(nullptr); }},
        {"cuStreamQuery of the captured stream", [&](CUstream s) { return cuStreamQuery(s); }},
        {"cuStreamQuery of another stream", [&](CUstream) { return cuStreamQuery(other); }},
        {"cuEventRecord on the captured stream", [&](CUstream s) { return cuEventRecord(recorded, s); }},
        {"cuEventRecord on another stream", [&](CUstream) { return cuEventRecord(recorded, other); }},
        {"cuEventRecord on the legacy stream", [&](CUstream) { return cuEventRecord(recorded, nullptr); }},
        {"cuStreamWaitEvent of the captured stream, event from outside",
         [&](CUstream s) { return cuStreamWaitEvent(s, outside, 0); }},
        {"cuStreamWaitEvent of another stream, event from outside",
         [&](CUstream) { return cuStreamWaitEvent(other, outside, 0); }},
        {"cuStreamWaitEvent of the legacy stream, event from outside",
         [&](CUstream) { return cuStreamWaitEvent(nullptr, outside, 0); }},
        {"cuEventCreate and cuEventDestroy",
         [](CUstream) {
             CUevent e;
             CUresult r = cuEventCreate(&e, CU_EVENT_DISABLE_TIMING);
             return r ? r : cuEventDestroy(e);
         }},
        {"cuEventSynchronize", [&](CUstream) { return cuEventSynchronize(outside); }},
        {"cuStreamSynchronize of another stream", [&](CUstream) { return cuStreamSynchronize(other); }},
        {"cuCtxSynchronize", [](CUstream) { return cuCtxSynchronize(); }},
        {"launch beyond the limit", [&](CUstream s) { return launch(function, 1, 32, 200000, s); }},
        {"launch beyond any limit", [&](CUstream s) { return launch(function, 1, 32, 400000, s); }},
        {"launch too large to be cooperative",
         [&](CUstream s) { return launch(function, 1 << 20, 128, 0, s, {cooperative()}); }},
    };
    for (int blocking = 0; blocking < 2; blocking++)
        for (const Probe &probe : probes)
            for (const char *thread : {"own", "other", "own, relaxed", "other, relaxed"}) {
                CUstream stream;
                MUST(cuStreamCreate(&stream, blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
                MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
                CUresult result = CUDA_SUCCESS;
                bool relaxed = strstr(thread, "relaxed");
                auto body = [&] {
                    cuCtxSetCurrent(context);
                    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
                    if (relaxed)
                        cuThreadExchangeStreamCaptureMode(&mode);
                    result = probe.ask(stream);
                    if (relaxed)
                        cuThreadExchangeStreamCaptureMode(&mode);
                };
                if (!strncmp(thread, "other", 5))
                    std::thread(body).join();
                else
                    body();
                CUgraph graph = nullptr;
                CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
                cuStreamIsCapturing(stream, &status);
                CUresult end = cuStreamEndCapture(stream, &graph);
                answer(probe.name, result,
                       "\"thread\":\"" + std::string(thread) + "\"," + number("blocking_stream", blocking) + "," +
                           number("capture_spoiled", status != CU_STREAM_CAPTURE_STATUS_ACTIVE) +
                           ",\"end_capture\":\"" + name_of(end) + "\"");
                if (graph)
                    cuGraphDestroy(graph);
                cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152);
                if (modules->size() - next < 2)
                    modules->push_back(load()), modules->push_back(load());
            }
}

/* ---- streams: priorities after creation ---- */

static void ask_streams() {
    CUfunction hold = function_of(load(), "hold_place");
    int least, greatest;
    MUST(cuCtxGetStreamPriorityRange(&least, &greatest));
    for (const char *which : {"idle", "busy", "legacy", "per thread"}) {
        CUstream stream = nullptr;
        if (!strcmp(which, "per thread"))
            stream = CU_STREAM_PER_THREAD;
        else if (strcmp(which, "legacy"))
            MUST(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, least));
        if (!strcmp(which, "busy")) {
            unsigned long long nanoseconds = 5000000;
            void *parameters[] = {&nanoseconds};
            MUST(cuLaunchKernel(hold, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
        }
        int before = 99, after = 99, least_again = 99;
        CUresult get = cuStreamGetPriority(stream, &before);
        answer(std::string("cuStreamGetPriority, ") + which, get, number("priority", before));
        for (int asked : {greatest, greatest - 1, least + 1}) {
            CUstreamAttrValue value = {}, back = {};
            value.priority = asked;
            CUresult set = cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
            cuStreamGetPriority(stream, &after);
            CUresult read = cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &back);
            answer(std::string("cuStreamSetAttribute PRIORITY, ") + which, set,
                   number("asked", asked) + "," + number("cuStreamGetPriority", after) + "," +
                       number("get_attribute_code", read) + "," + number("get_attribute", back.priority));
        }
        CUstreamAttrValue value = {};
        value.priority = least;
        cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
        cuStreamGetPriority(stream, &least_again);
        answer(std::string("set back, ") + which, CUDA_SUCCESS, number("cuStreamGetPriority", least_again));
        MUST(cuCtxSynchronize());
    }
}

/* ---- errors: what a launch that cannot be is answered with ---- */

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

/* ---- clusters: how many are active, by size and shared memory ---- */

static void ask_clusters() {
    CUfunction touch = function_of(load(), "touch");
    MUST(cuFuncSetAttribute(touch, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, optin));
    MUST(cuFuncSetAttribute(touch, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    for (unsigned threads : {128u, 384u, 1024u})
        for (unsigned size : {1u, 2u, 4u, 8u, 16u})
            for (unsigned dynamic : {0u, 20000u, 30000u, 40000u, 56000u, 57000u, 74000u, 80000u, 100000u, 113000u,
                                     115712u, 115713u, 150000u, 200000u, (unsigned)optin}) {
                CUlaunchAttribute attribute = cluster_of(size);
                CUlaunchConfig config = {};
                config.gridDimX = 16384;
                config.blockDimX = threads;
                config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
                config.sharedMemBytes = dynamic;
                config.attrs = &attribute;
                config.numAttrs = 1;
                int clusters = -1, blocks = -1;
                CUresult result = cuOccupancyMaxActiveClusters(&clusters, touch, &config);
                cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, touch, (int)threads, dynamic);
                answer("active clusters", result,
                       number("threads", threads) + "," + number("cluster", size) + "," + number("dynamic", dynamic) +
                           "," + number("clusters", clusters) + "," + number("blocks_per_multiprocessor", blocks));
            }
}

/* ---- graph: nodes made by hand and by capture ---- */

static CUDA_KERNEL_NODE_PARAMS node_params(CUfunction function, unsigned blocks, unsigned dynamic, void **parameters) {
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = function;
    params.gridDimX = blocks;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = 128;
    params.sharedMemBytes = dynamic;
    params.kernelParams = parameters;
    return params;
}

static void ask_graph() {
    void *null = nullptr, *parameters[] = {&null};
    auto limit = [](CUfunction function, int value) {
        return cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value);
    };
    struct Case {
        const char *name;
        int before, after; // the function's limit before the node is added, and before instantiation; 0: not touched
        unsigned dynamic;
    };
    for (const Case &c :
         {Case{"100,000 B, never raised", 0, 0, 100000}, Case{"100,000 B, raised before", 100000, 0, 100000},
          Case{"100,000 B, raised between", 0, 100000, 100000},
          Case{"100,000 B, raised before, lowered between", 100000, 50000, 100000},
          Case{"400,000 B", optin, 0, 400000}}) {
        CUfunction function = function_of(load(), "touch");
        CUgraph graph;
        CUgraphNode node;
        CUgraphExec executable = nullptr;
        MUST(cuGraphCreate(&graph, 0));
        if (c.before)
            MUST(limit(function, c.before));
        CUDA_KERNEL_NODE_PARAMS params = node_params(function, 64, c.dynamic, parameters);
        CUresult added = cuGraphAddKernelNode(&node, graph, nullptr, 0, &params);
        answer(std::string("add node: ") + c.name, added);
        if (added != CUDA_SUCCESS)
            continue;
        if (c.after)
            MUST(limit(function, c.after));
        CUresult made = cuGraphInstantiate(&executable, graph, 0);
        answer(std::string("instantiate: ") + c.name, made);
        if (made == CUDA_SUCCESS) {
            answer(std::string("launch: ") + c.name, cuGraphLaunch(executable, nullptr));
            answer(std::string("synchronise: ") + c.name, cuCtxSynchronize());
        } else {
            params.sharedMemBytes = 1000;
            answer(std::string("set the node back: ") + c.name, cuGraphKernelNodeSetParams(node, &params));
            answer(std::string("instantiate again: ") + c.name, cuGraphInstantiate(&executable, graph, 0));
        }
    }
    CUfunction function = function_of(load(), "touch");
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable;
    MUST(limit(function, 100000));
    MUST(cuGraphCreate(&graph, 0));
    CUDA_KERNEL_NODE_PARAMS params = node_params(function, 64, 1000, parameters), back = {};
    MUST(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    CUresult got = cuGraphKernelNodeGetParams(node, &back);
    answer("get params", got,
           number("func_is_ours", back.func == function) + "," + number("kern_is_null", back.kern == nullptr) + "," +
               number("dynamic", back.sharedMemBytes));
    for (int priority : {-5, -100, 3, -5}) {
        CUkernelNodeAttrValue value = {}, read = {};
        value.priority = priority;
        CUresult set = cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
        cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &read);
        answer("node priority", set, number("asked", priority) + "," + number("read", read.priority));
    }
    MUST(cuGraphInstantiate(&executable, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
    for (unsigned dynamic : {2000u, 60000u, 100000u, 100001u, 400000u}) {
        params.sharedMemBytes = dynamic;
        CUresult set = cuGraphExecKernelNodeSetParams(executable, node, &params);
        CUresult run = cuGraphLaunch(executable, nullptr);
        answer("exec node set params", set,
               number("dynamic", dynamic) + ",\"launch\":\"" + name_of(run) + "\",\"synchronise\":\"" +
                   name_of(cuCtxSynchronize()) + "\"");
    }
    // By capture: what of a launch's attributes becomes of the node?
    for (unsigned dynamic : {1000u, 100001u}) {
        CUstream stream;
        CUgraph captured = nullptr;
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CUresult result = launch(function, 64, 128, dynamic, stream, {priority_of(-5)});
        CUresult end = cuStreamEndCapture(stream, &captured);
        size_t count = 1;
        CUgraphNode first = nullptr;
        CUkernelNodeAttrValue read = {};
        CUresult attribute = CUDA_ERROR_UNKNOWN, made = CUDA_ERROR_UNKNOWN;
        if (captured) {
            cuGraphGetNodes(captured, &first, &count);
            if (count)
                attribute = cuGraphKernelNodeGetAttribute(first, CU_LAUNCH_ATTRIBUTE_PRIORITY, &read);
            made = cuGraphInstantiate(&executable, captured, 0);
        }
        answer("captured launch", result,
               number("dynamic", dynamic) + ",\"end_capture\":\"" + name_of(end) + "\"," +
                   number("nodes", (long long)count) + ",\"get_priority\":\"" + name_of(attribute) + "\"," +
                   number("priority", read.priority) + ",\"instantiate\":\"" + name_of(made) + "\"");
    }
}

// Nodes whose grids a policy may shape: what the program reads back must be its own. kernel_got: dynamic bytes that the
// first block ran with; this alone may differ behind the library.
static void ask_nodes() {
    CUdeviceptr out;
    MUST(cuMemAlloc(&out, 8));
    void *parameters[] = {&out};
    CUmodule module = load();
    CUfunction function = function_of(module, "dynamic_size");
    CUstream stream;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    auto got = [&] {
        unsigned sizes[2] = {};
        CUresult result = cuCtxSynchronize();
        MUST(cuMemcpyDtoH(sizes, out, 8));
        MUST(cuMemsetD32(out, 0, 2));
        return "\"synchronise\":\"" + name_of(result) + "\"," + number("kernel_got", sizes[0]);
    };
    auto run = [&](const std::string &what, CUgraphExec executable) {
        CUresult result = cuGraphLaunch(executable, stream);
        answer("run: " + what, result, got());
    };
    auto shown = [](const std::string &what, CUgraphNode node) {
        CUDA_KERNEL_NODE_PARAMS back = {};
        CUresult result = cuGraphKernelNodeGetParams(node, &back);
        answer("shown: " + what, result,
               number("dynamic", back.sharedMemBytes) + "," + number("blocks", back.gridDimX));
    };
    // As programs do that change a pointer among the parameters of a node.
    auto set_as_read = [](const std::string &what, CUgraphNode node, CUgraphExec executable) {
        CUDA_KERNEL_NODE_PARAMS back = {};
        MUST(cuGraphKernelNodeGetParams(node, &back));
        answer("set as read: " + what, cuGraphKernelNodeSetParams(node, &back));
        answer("exec set as read: " + what, cuGraphExecKernelNodeSetParams(executable, node, &back));
    };
    auto reads = [&](const std::string &what) {
        int limit = -1, carveout = -9;
        CUresult result = cuFuncGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
        cuFuncGetAttribute(&carveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, function);
        answer("attributes: " + what, result, number("limit", limit) + "," + number("carveout", carveout));
    };
    auto graph_of = [&](unsigned blocks, unsigned dynamic, CUgraphNode *node) {
        CUgraph graph;
        MUST(cuGraphCreate(&graph, 0));
        CUDA_KERNEL_NODE_PARAMS params = node_params(function, blocks, dynamic, parameters);
        MUST(cuGraphAddKernelNode(node, graph, nullptr, 0, &params));
        return graph;
    };
    CUgraphNode node, inner, copied = nullptr, holder, other;
    CUgraphExec executable, again;
    CUgraph graph = graph_of(8192, 1000, &node), clone, outer, changed;
    shown("added with 1000", node);
    reads("a node was added");
    MUST(cuGraphInstantiate(&executable, graph, 0));
    run("added with 1000", executable);
    set_as_read("added with 1000", node, executable);
    for (unsigned dynamic : {2000u, 49152u, 49153u, 100u}) {
        CUDA_KERNEL_NODE_PARAMS params = node_params(function, 8192, dynamic, parameters);
        answer("exec set params " + std::to_string(dynamic), cuGraphExecKernelNodeSetParams(executable, node, &params));
        run("exec set params " + std::to_string(dynamic), executable);
    }
    shown("after exec set params", node);
    set_as_read("after exec set params", node, executable);
    for (unsigned dynamic : {3000u, 0u, 1000u}) {
        CUDA_KERNEL_NODE_PARAMS params = node_params(function, 8192, dynamic, parameters);
        answer("set params " + std::to_string(dynamic), cuGraphKernelNodeSetParams(node, &params));
        shown("set params " + std::to_string(dynamic), node);
    }
    changed = graph_of(4096, 1000, &other);
    CUgraphExecUpdateResultInfo info = {};
    CUresult updated = cuGraphExecUpdate(executable, changed, &info);
    answer("exec update", updated, number("result", info.result));
    run("exec update", executable);
    MUST(cuGraphClone(&clone, graph));
    MUST(cuGraphNodeFindInClone(&copied, node, clone));
    shown("in a clone", copied);
    MUST(cuGraphCreate(&outer, 0));
    MUST(cuGraphAddChildGraphNode(&holder, outer, nullptr, 0, clone));
    MUST(cuGraphInstantiate(&again, outer, 0));
    run("as a child", again);
    CUgraph small = graph_of(8, 1000, &inner);
    MUST(cuGraphInstantiate(&again, small, 0));
    run("a grid of eight blocks", again);
    CUkernelNodeAttrValue cooperative = {};
    cooperative.cooperative = 1;
    CUgraph together = graph_of(1056, 1000, &inner); // eight blocks a multiprocessor
    answer("cooperative", cuGraphKernelNodeSetAttribute(inner, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative));
    shown("cooperative", inner);
    CUresult made = cuGraphInstantiate(&again, together, 0);
    answer("instantiate: cooperative", made);
    if (made == CUDA_SUCCESS)
        run("cooperative", again);
    // Captured, and generic nodes.
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUresult launched = cuLaunchKernel(function, 8192, 1, 1, 128, 1, 1, 1000, stream, parameters, nullptr);
    CUgraph captured = nullptr;
    size_t count = 1;
    answer("captured", launched, "\"end\":\"" + name_of(cuStreamEndCapture(stream, &captured)) + "\"");
    MUST(cuGraphGetNodes(captured, &inner, &count));
    shown("captured", inner);
    MUST(cuGraphInstantiate(&again, captured, 0));
    run("captured", again);
    set_as_read("captured", inner, again);
    CUgraphNodeParams generic = {};
    generic.type = CU_GRAPH_NODE_TYPE_KERNEL;
    generic.kernel.func = function;
    generic.kernel.gridDimX = 8192;
    generic.kernel.gridDimY = generic.kernel.gridDimZ = generic.kernel.blockDimY = generic.kernel.blockDimZ = 1;
    generic.kernel.blockDimX = 128;
    generic.kernel.sharedMemBytes = 1000;
    generic.kernel.kernelParams = parameters;
    MUST(cuGraphCreate(&outer, 0));
    answer("add a generic node", cuGraphAddNode(&inner, outer, nullptr, nullptr, 0, &generic));
    shown("generic", inner);
    generic.kernel.sharedMemBytes = 2000;
    answer("set a generic node", cuGraphNodeSetParams(inner, &generic));
    shown("generic, set", inner);
    MUST(cuGraphInstantiate(&again, outer, 0));
    run("generic, set", again);
    reads("in the end");
    // Launched by itself; then the program asks how many blocks fit, which must be the driver's answer.
    CUresult single = cuLaunchKernel(function, 8192, 1, 1, 128, 1, 1, 1000, stream, parameters, nullptr);
    answer("launched", single, got());
    for (unsigned dynamic : {1000u, 49152u, 60000u, 115713u}) {
        CUlaunchAttribute attribute = cluster_of(2);
        CUlaunchConfig config = {};
        config.gridDimX = 8192;
        config.blockDimX = 128;
        config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
        config.sharedMemBytes = dynamic;
        config.attrs = &attribute;
        config.numAttrs = 1;
        int blocks = -1, clusters = -1, grid = -1, threads = -1;
        CUresult asked = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, dynamic);
        CUresult of_clusters = cuOccupancyMaxActiveClusters(&clusters, function, &config);
        CUresult best = cuOccupancyMaxPotentialBlockSize(&grid, &threads, function, nullptr, dynamic, 0);
        answer("occupancy, " + std::to_string(dynamic) + " B", asked,
               number("blocks", blocks) + "," + number("clusters_code", of_clusters) + "," +
                   number("clusters", clusters) + "," + number("best_code", best) + "," + number("grid", grid) + "," +
                   number("threads", threads));
    }
    size_t available = 0;
    CUresult asked = cuOccupancyAvailableDynamicSMemPerBlock(&available, function, 2, 128);
    answer("available to 2 blocks", asked, number("dynamic", (long long)available));
    single = cuLaunchKernel(function, 8192, 1, 1, 128, 1, 1, 1000, stream, parameters, nullptr);
    answer("launched after that", single, got());
    reads("occupancy was asked");
    function = function_of(module, "touch");
    MUST(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
    answer("its own carve-out", launch(function, 8192, 128, 1024, stream));
    reads("its own carve-out");
    MUST(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1));
    answer("its own carve-out no more", launch(function, 8192, 128, 1024, stream));
    reads("its own carve-out no more");
}

/* ---- handles: are they used again, and are CUkernels taken for CUfunctions? ---- */

static void ask_handles() {
    for (const char *kind : {"function", "kernel"}) {
        std::set<void *> seen;
        int again = 0, same = 0;
        void *last = nullptr;
        for (int i = 0; i < 300; i++) {
            void *value;
            if (!strcmp(kind, "function")) {
                CUmodule module = load();
                value = (void *)function_of(module, i % 2 ? "touch" : "empty");
                MUST(cuModuleUnload(module));
            } else {
                CUlibrary library;
                CUkernel kernel;
                MUST(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
                MUST(cuLibraryGetKernel(&kernel, library, i % 2 ? "touch" : "empty"));
                value = (void *)kernel;
                MUST(cuLibraryUnload(library));
            }
            again += !seen.insert(value).second;
            same += value == last;
            last = value;
        }
        answer(std::string("handles of 300 loads and unloads, ") + kind, CUDA_SUCCESS,
               number("given_out_before", again) + "," + number("same_as_the_last", same));
    }
    CUmodule first = load(), second = load();
    CUfunction a = function_of(first, "touch"), b = function_of(first, "touch"), c = function_of(second, "touch");
    answer("asked twice", CUDA_SUCCESS,
           number("same_handle", a == b) + "," + number("of_another_module_the_same", a == c) + "," +
               number("multiple_of_16", (uintptr_t)a % 16 == 0) + "," +
               number("below_2_to_the_61", (uintptr_t)a >> 61 == 0));
    printf("{\"question\":\"handles\",\"case\":\"addresses\",\"functions\":[\"%p\",\"%p\"]}\n", (void *)a, (void *)c);
}

// Each in a process of its own.
static void ask_kernel_as_function(const std::string &which) {
    CUlibrary library;
    CUkernel kernel;
    CUmodule module = load();
    CUfunction function = function_of(module, "touch"), of_kernel = nullptr;
    MUST(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "touch"));
    CUfunction cast = (CUfunction)kernel;
    const char *name = "";
    int value = -1;
    CUresult result;
    auto limit_of_function = [&] {
        int limit = -1;
        cuFuncGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, of_kernel);
        return limit;
    };
    auto limit_of_kernel = [&] {
        int limit = -1;
        cuKernelGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, device);
        return limit;
    };
    auto limits = [&](const char *what, CUresult set) {
        CUresult by_kernel = launch(cast, 1, 32, 105000, nullptr);
        CUresult by_function = launch(of_kernel, 1, 32, 105000, nullptr);
        answer(what, set,
               number("limit_of_kernel", limit_of_kernel()) + "," + number("limit_of_function", limit_of_function()) +
                   ",\"launch_of_kernel_105000\":\"" + name_of(by_kernel) + "\",\"launch_of_function_105000\":\"" +
                   name_of(by_function) + "\"");
    };
    if (which == "launch") {
        result = launch(cast, 1, 32, 128, nullptr);
        answer("cuLaunchKernel of a CUkernel", result, "\"synchronise\":\"" + name_of(cuCtxSynchronize()) + "\"");
        result = cuKernelGetFunction(&of_kernel, kernel);
        answer("cuKernelGetFunction", result, number("same_pointer", (void *)of_kernel == (void *)kernel));
    } else if (which == "get") {
        result = cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, cast);
        answer("cuFuncGetAttribute of a CUkernel", result, number("value", value));
    } else if (which == "set") {
        result = cuFuncSetAttribute(cast, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000);
        answer("cuFuncSetAttribute of a CUkernel", result, number("limit_of_kernel", limit_of_kernel()));
    } else if (which == "name") {
        result = cuFuncGetName(&name, cast);
        answer("cuFuncGetName of a CUkernel", result, "\"name\":\"" + std::string(name) + "\"");
    } else if (which == "module") {
        CUmodule found = nullptr;
        answer("cuFuncGetModule of a CUkernel", cuFuncGetModule(&found, cast));
    } else if (which == "occupancy") {
        result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, cast, 128, 0);
        answer("cuOccupancyMaxActiveBlocksPerMultiprocessor of a CUkernel", result, number("blocks", value));
    } else if (which == "kernel-name") {
        result = cuKernelGetName(&name, (CUkernel)function);
        answer("cuKernelGetName of a CUfunction", result, "\"name\":\"" + std::string(name) + "\"");
    } else if (which == "kernel-get") {
        result = cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUkernel)function, device);
        answer("cuKernelGetAttribute of a CUfunction", result, number("value", value));
    } else if (which == "limits") {
        MUST(cuKernelGetFunction(&of_kernel, kernel));
        auto of_the_kernel = [&](int bytes) {
            return cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes, kernel, device);
        };
        auto of_the_function = [&](int bytes) {
            return cuFuncSetAttribute(of_kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
        };
        limits("at first", CUDA_SUCCESS);
        limits("the kernel's limit set to 100,000", of_the_kernel(100000));
        limits("the kernel's limit set to 110,000", of_the_kernel(110000));
        limits("the function's limit set to 60,000", of_the_function(60000));
        limits("the function's limit set to 120,000", of_the_function(120000));
        limits("the kernel's limit set to 70,000", of_the_kernel(70000));
        limits("the kernel's limit set to 130,000", of_the_kernel(130000));
        MUST(cuLibraryUnload(library));
        MUST(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
        MUST(cuLibraryGetKernel(&kernel, library, "touch"));
        cast = (CUfunction)kernel;
        MUST(cuKernelGetFunction(&of_kernel, kernel));
        limits("loaded again, the function's limit set to 110,000 first", of_the_function(110000));
    } else if (which == "mixed" || which == "mixed-captured") {
        // A program that sets the limit of a function and launches the CUkernel it came from. Large grids, which a
        // policy may shape; the answers behind the library must be the bare ones.
        MUST(cuKernelGetFunction(&of_kernel, kernel));
        auto of_the_function = [&](int bytes) {
            return cuFuncSetAttribute(of_kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
        };
        auto tell = [&](const char *what, CUresult launched) {
            answer(what, launched,
                   number("limit_of_kernel", limit_of_kernel()) + "," +
                       number("limit_of_function", limit_of_function()) + ",\"synchronise\":\"" +
                       name_of(cuCtxSynchronize()) + "\"");
        };
        if (which == "mixed") {
            tell("the kernel, 1024 B", launch(cast, 8192, 128, 1024, nullptr));
            MUST(of_the_function(110000));
            tell("function's limit 110,000; the kernel, 105,000 B", launch(cast, 8192, 128, 105000, nullptr));
            tell("function's limit 110,000; the function, 105,000 B", launch(of_kernel, 8192, 128, 105000, nullptr));
            MUST(of_the_function(60000));
            tell("function's limit 60,000; the kernel, 105,000 B", launch(cast, 8192, 128, 105000, nullptr));
            tell("function's limit 60,000; the kernel, 2048 B", launch(cast, 8192, 128, 2048, nullptr));
            tell("function's limit 60,000; the function, 2048 B", launch(of_kernel, 8192, 128, 2048, nullptr));
        } else {
            CUstream stream;
            CUgraph graph = nullptr;
            MUST(of_the_function(60000));
            MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
            MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
            result = launch(cast, 8192, 128, 1024, stream);
            answer("function's limit 60,000; the kernel, 1024 B, captured", result);
            answer("end of the capture", cuStreamEndCapture(stream, &graph));
        }
    } else if (which == "lazy") {
        CUfunction lazy = function_of(module, "lazy_one"), set_one = function_of(module, "lazy_two");
        CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_MAX, after = CU_FUNCTION_LOADING_STATE_MAX;
        cuFuncIsLoaded(&state, lazy);
        result = cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, lazy);
        cuFuncIsLoaded(&after, lazy);
        answer("cuFuncGetAttribute of a function not used before", result,
               number("loaded_before", state) + "," + number("loaded_after", after));
        result = cuFuncSetAttribute(set_one, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000);
        cuFuncIsLoaded(&after, set_one);
        answer("cuFuncSetAttribute of a function not used before", result, number("loaded_after", after));
        CUfunction listed[32];
        unsigned count = 0;
        CUmodule other = load();
        cuModuleGetFunctionCount(&count, other);
        CUresult listing = cuModuleEnumerateFunctions(listed, count, other);
        cuFuncIsLoaded(&state, listed[0]);
        result = cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, listed[0]);
        CUresult named = cuFuncGetName(&name, listed[0]);
        answer("cuFuncGetAttribute of an enumerated function", result,
               number("count", count) + "," + number("listing", listing) + "," + number("loaded_before", state) +
                   ",\"cuFuncGetName\":\"" + name_of(named) + "\",\"name\":\"" + name + "\"");
    }
}

/* ---- churn: many threads load, launch, check and unload; handles are used again all the time ---- */

static void ask_churn() {
    std::atomic<int> wrong{0}, failed{0};
    std::atomic<long> launches{0};
    std::vector<std::thread> threads;
    for (int index = 0; index < 8; index++)
        threads.emplace_back([&, index] {
            cuCtxSetCurrent(context);
            CUdeviceptr out;
            CUstream stream;
            if (cuMemAlloc(&out, 4) || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) {
                failed++;
                return;
            }
            for (int round = 0; round < 150; round++) {
                CUmodule module = nullptr;
                CUlibrary library = nullptr;
                CUfunction function = nullptr;
                CUkernel kernel = nullptr;
                const char *name = (round + index) % 3 == 0   ? "touch"
                                   : (round + index) % 3 == 1 ? "fixed_20k"
                                                              : "pairs";
                bool by_library = (round / 3 + index) % 2;
                CUresult result =
                    by_library ? cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0)
                               : cuModuleLoadData(&module, image.data());
                if (!result)
                    result = by_library ? cuLibraryGetKernel(&kernel, library, name)
                                        : cuModuleGetFunction(&function, module, name);
                for (unsigned threads_per_block : {64u, 128u, 256u}) {
                    int read = -1;
                    void *parameters[] = {&out};
                    if (!result)
                        result = cuLaunchKernel(by_library ? (CUfunction)kernel : function, 8192, 1, 1,
                                                threads_per_block, 1, 1, 1024, stream, parameters, nullptr);
                    if (!result)
                        result = cuMemcpyDtoHAsync(&read, out, 4, stream);
                    if (!result)
                        result = cuStreamSynchronize(stream);
                    int last = (int)threads_per_block - 1;
                    if (!result && strcmp(name, "fixed_20k") && read != last)
                        wrong++;
                    if (!result && !strcmp(name, "fixed_20k") && (read < last || read > 2 * last))
                        wrong++;
                    launches++;
                }
                failed += result != CUDA_SUCCESS;
                if (module)
                    cuModuleUnload(module);
                if (library)
                    cuLibraryUnload(library);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    answer("8 threads", CUDA_SUCCESS,
           number("launches", launches) + "," + number("wrong", wrong) + "," + number("failed", failed));
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: driver_questions QUESTION CUBIN [NAME ...]\n");
        return 2;
    }
    begin(argv[1], argv[2]);
    if (question == "names")
        ask_names({argv + 3, argv + argc});
    else if (question == "capture")
        ask_capture();
    else if (question == "streams")
        ask_streams();
    else if (question == "errors")
        ask_errors();
    else if (question == "clusters")
        ask_clusters();
    else if (question == "graph")
        ask_graph();
    else if (question == "nodes")
        ask_nodes();
    else if (question == "handles")
        ask_handles();
    else if (question == "churn")
        ask_churn();
    else
        ask_kernel_as_function(question);
    return 0;
}
