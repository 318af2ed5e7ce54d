/* The interpreter's calls on HIP, reached in the way that the build says:
 *   WAY_LINKED  by the program's own PLT; the program is linked to libamdhip64.so.RUNTIME
 *   WAY_DLSYM   by dlopen and dlsym
 *   WAY_PROC    by hipGetProcAddress (6.1 and newer), as Triton does
 * What the runtime has no entry point for threads for gets the handle that stands for their default stream. CODE: a file
 * with a bundle of code objects that hold the two kernels.
 */
#pragma once

#include <dlfcn.h>
#include <stdint.h>
#include <stddef.h>

#include "windows_gpu.h"

typedef struct {
    uint32_t x, y, z;
} Dim3;

/* hipKernelNodeParams */
typedef struct {
    Dim3 block;
    void **extra, *function;
    Dim3 grid;
    void **parameters;
    uint32_t shared;
} NodeParams;

#define BOTH(X, name, parameters)                                                                                      \
    X(name, parameters)                                                                                                \
    X(name##_spt, parameters)

#if RUNTIME >= 6
#define EXT_MODULE_LAUNCH hipExtModuleLaunchKernel
#else
#define EXT_MODULE_LAUNCH                                                                                              \
    _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j
#endif

#define ENTRIES(X)                                                                                                     \
    X(hipInit, (unsigned))                                                                                             \
    X(hipGetDeviceCount, (int *))                                                                                      \
    X(hipSetDevice, (int))                                                                                             \
    X(hipDeviceSynchronize, (void))                                                                                    \
    X(hipMalloc, (void **, size_t))                                                                                    \
    X(hipMemsetD32, (uint64_t, int, size_t))                                                                           \
    X(hipModuleLoadData, (void **, const void *))                                                                      \
    X(hipModuleGetFunction, (void **, void *, const char *))                                                           \
    X(hipModuleLaunchKernel,                                                                                           \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))        \
    X(EXT_MODULE_LAUNCH, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, void *, void **, \
                          void **, void *, void *, unsigned))                                                          \
    X(hipExtLaunchKernel, (const void *, Dim3, Dim3, void **, size_t, void *, void *, void *, int))                    \
    BOTH(X, hipLaunchKernel, (const void *, Dim3, Dim3, void **, size_t, void *))                                      \
    X(hipStreamCreateWithFlags, (void **, unsigned))                                                                   \
    X(hipStreamDestroy, (void *))                                                                                      \
    BOTH(X, hipStreamSynchronize, (void *))                                                                            \
    BOTH(X, hipStreamQuery, (void *))                                                                                  \
    BOTH(X, hipStreamWaitEvent, (void *, void *, unsigned))                                                            \
    X(hipStreamWaitValue32, (void *, uint64_t, uint32_t, unsigned, uint32_t))                                          \
    X(hipStreamWriteValue32, (void *, uint64_t, uint32_t, unsigned))                                                   \
    X(hipEventCreateWithFlags, (void **, unsigned))                                                                    \
    X(hipEventDestroy, (void *))                                                                                       \
    BOTH(X, hipEventRecord, (void *, void *))                                                                          \
    X(hipEventRecordWithFlags, (void *, void *, unsigned))                                                             \
    X(hipEventSynchronize, (void *))                                                                                   \
    X(hipEventQuery, (void *))                                                                                         \
    X(hipEventElapsedTime, (float *, void *, void *))                                                                  \
    BOTH(X, hipMemcpy, (uint64_t, uint64_t, size_t, int))                                                              \
    BOTH(X, hipMemcpyAsync, (uint64_t, uint64_t, size_t, int, void *))                                                 \
    X(hipMemcpyWithStream, (uint64_t, uint64_t, size_t, int, void *))                                                  \
    BOTH(X, hipMemset, (uint64_t, int, size_t))                                                                        \
    BOTH(X, hipMemsetAsync, (uint64_t, int, size_t, void *))                                                           \
    BOTH(X, hipLaunchHostFunc, (void *, void (*)(void *), void *))                                                     \
    BOTH(X, hipStreamBeginCapture, (void *, int))                                                                      \
    BOTH(X, hipStreamEndCapture, (void *, void **))                                                                    \
    X(hipStreamGetCaptureInfo_v2, (void *, int *, uint64_t *, void **, void *const **, size_t *))                      \
    X(hipStreamUpdateCaptureDependencies, (void *, void *const *, size_t, unsigned))                                   \
    X(hipGraphCreate, (void **, unsigned))                                                                             \
    X(hipGraphDestroy, (void *))                                                                                       \
    X(hipGraphAddChildGraphNode, (void **, void *, void *const *, size_t, void *))                                     \
    X(hipGraphAddKernelNode, (void **, void *, void *const *, size_t, const NodeParams *))                             \
    X(hipGraphInstantiateWithFlags, (void **, void *, uint64_t))                                                       \
    X(hipGraphExecDestroy, (void *))                                                                                   \
    BOTH(X, hipGraphLaunch, (void *, void *))

/* Of the code that hipcc writes into programs; always linked, or found beside the others. */
#define REGISTER(X)                                                                                                    \
    X(void **, __hipRegisterFatBinary, (const void *))                                                                 \
    X(void, __hipRegisterFunction,                                                                                     \
      (void **, const void *, const char *, const char *, unsigned, void *, void *, void *, void *, int *))

#ifdef WAY_LINKED

/* An older runtime has not all of them. */
#define X(name, parameters) extern int name parameters __attribute__((weak));
ENTRIES(X)
#undef X
#define X(result, name, parameters) extern result name parameters;
REGISTER(X)
#undef X
#define HIP(name) name
static inline void driver_open(void) {}

#else

#define NAMED(name, parameters) static int(*real_##name) parameters __attribute__((unused));
#define X(name, parameters) NAMED(name, parameters)
ENTRIES(X)
#undef X
#define X(result, name, parameters) static result(*name) parameters;
REGISTER(X)
#undef X
#define REAL(name) real_##name
#define HIP(name) REAL(name)

#define TEXT(word) #word
#define SONAME(version) "libamdhip64.so." TEXT(version)

static inline void driver_open(void) {
    void *const library = dlopen(SONAME(RUNTIME), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("no runtime: %s\n", dlerror());
        exit(3);
    }
#define X(result, name, parameters) name = (result(*) parameters)dlsym(library, #name);
    REGISTER(X)
#undef X
#ifdef WAY_DLSYM
#define FIND(name, parameters) REAL(name) = (int(*) parameters)dlsym(library, #name);
#else
    int (*find)(const char *, void **, int, uint64_t, int *) =
        (int (*)(const char *, void **, int, uint64_t, int *))dlsym(library, "hipGetProcAddress");
    void *out;
#define FIND(name, parameters)                                                                                         \
    if (find(#name, &out, 601, 0, NULL) == 0)                                                                          \
        REAL(name) = (int(*) parameters)out;
#endif
#define X(name, parameters) FIND(name, parameters)
    ENTRIES(X)
#undef X
}

#endif

/* hipStreamLegacy came with 7; before, nobody could ask for it by a handle. */
#if RUNTIME >= 7
#define LEGACY ((void *)1)
#else
#define LEGACY NULL
#endif
#define PER_THREAD ((void *)2)

static const char *const kernel_names[KERNELS] = {"k", "ncclDevKernel_Generic_4"};
/* What stands for the kernels in calls by functions of the program. */
static char hosts[KERNELS][16];

__asm__(".pushsection .rodata\n.balign 4096\ncode:\n.incbin \"" CODE "\"\n.popsection");
extern const char code[] __attribute__((visibility("hidden")));

/* The default stream of the thread by its handle, where NULL would mean the legacy one. */
static inline void *by_handle(void *on) {
    return on ? on : PER_THREAD;
}

static inline void *handle_of(struct named stream) {
    return stream.per_thread ? by_handle(stream.handle) : stream.handle;
}

static inline int event_record_flags(void *event, void *on, unsigned flags) {
#if RUNTIME >= 6
    return HIP(hipEventRecordWithFlags)(event, on, flags);
#else
    return flags ? 801 /* hipErrorNotSupported */ : HIP(hipEventRecord)(event, on);
#endif
}

enum { TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3 };

#define allocate(address, bytes) HIP(hipMalloc)((void **)(address), bytes)
#define fill(address, count) HIP(hipMemsetD32)(address, 0, count)
#define device_synchronize HIP(hipDeviceSynchronize)
#define stream_create HIP(hipStreamCreateWithFlags)
#define stream_destroy HIP(hipStreamDestroy)
#define event_create HIP(hipEventCreateWithFlags)
#define event_destroy HIP(hipEventDestroy)
#define event_synchronize HIP(hipEventSynchronize)
#define event_query HIP(hipEventQuery)
#define event_elapsed HIP(hipEventElapsedTime)
#define graph_create HIP(hipGraphCreate)
#define graph_destroy HIP(hipGraphDestroy)
#define graph_add_child HIP(hipGraphAddChildGraphNode)
#define graph_instantiate HIP(hipGraphInstantiateWithFlags)
#define exec_destroy HIP(hipGraphExecDestroy)
#define capture_info HIP(hipStreamGetCaptureInfo_v2)
#define capture_update HIP(hipStreamUpdateCaptureDependencies)

/* By the plain entry point, and by that for threads. */
#define event_record HIP(hipEventRecord)
#define event_record_thread HIP(hipEventRecord_spt)
#define event_record_flags_thread(event, on, flags) event_record_flags(event, by_handle(on), flags)
#define stream_wait HIP(hipStreamWaitEvent)
#define stream_wait_thread HIP(hipStreamWaitEvent_spt)
#define stream_synchronize HIP(hipStreamSynchronize)
#define stream_synchronize_thread HIP(hipStreamSynchronize_spt)
#define stream_query HIP(hipStreamQuery)
#define stream_query_thread HIP(hipStreamQuery_spt)
#define copy_async(to, from, bytes, on) HIP(hipMemcpyAsync)(to, from, bytes, ON_DEVICE, on)
#define copy_async_thread(to, from, bytes, on) HIP(hipMemcpyAsync_spt)(to, from, bytes, ON_DEVICE, on)
#define fill_async(address, bytes, on) HIP(hipMemsetAsync)(address, 0, bytes, on)
#define fill_async_thread(address, bytes, on) HIP(hipMemsetAsync_spt)(address, 0, bytes, on)
#define host_function HIP(hipLaunchHostFunc)
#define host_function_thread HIP(hipLaunchHostFunc_spt)
#define wait_value(on, address, value, flags) HIP(hipStreamWaitValue32)(on, address, value, flags, UINT32_MAX)
#define wait_value_thread(on, address, value, flags) wait_value(by_handle(on), address, value, flags)
#define write_value HIP(hipStreamWriteValue32)
#define write_value_thread(on, address, value, flags) HIP(hipStreamWriteValue32)(by_handle(on), address, value, flags)
#define capture_begin HIP(hipStreamBeginCapture)
#define capture_begin_thread HIP(hipStreamBeginCapture_spt)
#define capture_end HIP(hipStreamEndCapture)
#define capture_end_thread HIP(hipStreamEndCapture_spt)
#define graph_launch HIP(hipGraphLaunch)
#define graph_launch_thread HIP(hipGraphLaunch_spt)

static inline int use_device(int device) {
    return HIP(hipSetDevice)(device);
}

static inline void register_kernels(void) {
    static const struct {
        uint32_t magic, version;
        const void *data;
        void *unused;
    } wrapper = {0x48495046, 1, code, NULL};
    void **const binary = __hipRegisterFatBinary(&wrapper);
    for (int k = 0; k < KERNELS; k++)
        __hipRegisterFunction(binary, hosts[k], kernel_names[k], kernel_names[k], UINT32_MAX, NULL, NULL, NULL, NULL,
                              NULL);
}

static inline int start_devices(void) {
    register_kernels();
    int result = HIP(hipInit)(0);
    if (!result)
        result = HIP(hipGetDeviceCount)(&device_count);
    device_count = device_count > DEVICES ? DEVICES : device_count;
    for (int i = 0; !result && i < device_count; i++) {
        void *module;
        need(use_device(i), "device");
        need(HIP(hipModuleLoadData)(&module, code), "module");
        for (int k = 0; k < KERNELS; k++)
            need(HIP(hipModuleGetFunction)(&devices[i].kernels[k], module, kernel_names[k]), "function");
        result = allocate(&devices[i].memory, BYTES);
    }
    return result;
}

#define GRID ((Dim3){grids[kind], 1, 1})
#define BLOCK ((Dim3){THREADS, 1, 1})

/* how: 1: by a hipFunction_t; 2 more: a large grid. */
static inline int launch(struct named stream, int kind, int how) {
    const unsigned blocks = grid_of(kind, how);
    if (how & 1)
        return HIP(hipModuleLaunchKernel)(devices[stream.device].kernels[kind], blocks, 1, 1, THREADS, 1, 1, 0,
                                          handle_of(stream), parameters, NULL);
    return (stream.per_thread ? HIP(hipLaunchKernel_spt) : HIP(hipLaunchKernel))(hosts[kind], (Dim3){blocks, 1, 1},
                                                                                 BLOCK, parameters, 0, stream.handle);
}

/* There is no such call. */
static inline int set_priority(void *stream, int priority) {
    (void)stream, (void)priority;
    return 801; /* hipErrorNotSupported */
}

/* As RCCL launches its kernels, and as rocBLAS launches GEMMs. */
static inline int launch_recording(struct named stream, int kind, void *before, void *behind) {
    if (kind == COMMUNICATION)
        return HIP(hipExtLaunchKernel)(hosts[kind], GRID, BLOCK, parameters, 0, handle_of(stream), before, behind, 0);
    return HIP(EXT_MODULE_LAUNCH)(devices[stream.device].kernels[kind], grids[kind] * THREADS, 1, 1, THREADS, 1, 1, 0,
                                  handle_of(stream), parameters, NULL, before, behind, 0);
}

static inline int add_kernel(void **node, void *graph, int kind) {
    const NodeParams params = {BLOCK, NULL, hosts[kind], GRID, parameters, 0};
    return HIP(hipGraphAddKernelNode)(node, graph, NULL, 0, &params);
}

static inline int copy_and_wait(struct named stream, uint64_t memory) {
    static uint32_t host;
    return HIP(hipMemcpyWithStream)((uintptr_t)&host, memory, 4, TO_HOST, handle_of(stream));
}

/* h, d, D, m: to the device, to the host, on the device, a fill. */
static inline int copy(char kind, int per_thread, uint64_t memory) {
    static uint32_t host;
    const uint64_t here = (uintptr_t)&host, to = kind == 'd' ? here : memory;
    const uint64_t from = kind == 'h' ? here : kind == 'd' ? memory : memory + 64;
    const int direction = kind == 'h' ? TO_DEVICE : kind == 'd' ? TO_HOST : ON_DEVICE;
    if (kind == 'm')
        return (per_thread ? HIP(hipMemset_spt) : HIP(hipMemset))(memory, 0, 4);
    return (per_thread ? HIP(hipMemcpy_spt) : HIP(hipMemcpy))(to, from, 4, direction);
}
