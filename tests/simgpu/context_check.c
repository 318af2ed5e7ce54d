/* Calls on handles of one context while no context, or another one, is current: context_check
 *
 * The results were measured on an H200, driver 580.159.04, CUDA 13.0, 2026-11-28. Prints one line for each call that
 * returns something else, and the number of calls. It runs on a real GPU, too: cc -Itools/simgpu context_check.c -lcuda
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_abi.h"
#include "hip/engine_api.h"

#define LAUNCH_PARAMETERS                                                                                              \
    (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,     \
     CUstream, void **, void **)
#define COOPERATIVE_PARAMETERS                                                                                         \
    (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,     \
     CUstream, void **)

CUresult cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice);
CUresult cuCtxGetCacheConfig(int *);
CUresult cuCtxGetCurrent(CUcontext *);
CUresult cuCtxGetDevice(CUdevice *);
CUresult cuCtxGetDevice_v2(CUdevice *, CUcontext);
CUresult cuCtxPopCurrent_v2(CUcontext *);
CUresult cuCtxPushCurrent_v2(CUcontext);
CUresult cuCtxSynchronize_v2(CUcontext);
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned int *, int *);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuFuncGetAttribute(int *, int, CUfunction);
CUresult cuFuncGetModule(CUmodule *, CUfunction);
CUresult cuFuncGetName(const char **, CUfunction);
CUresult cuFuncSetAttribute(CUfunction, int, int);
CUresult cuFuncSetCacheConfig(CUfunction, int);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *);
CUresult cuKernelGetAttribute(int *, int, CUkernel, CUdevice);
CUresult cuKernelGetFunction(CUfunction *, CUkernel);
CUresult cuKernelGetName(const char **, CUkernel);
CUresult cuKernelSetAttribute(int, int, CUkernel, CUdevice);
CUresult cuKernelSetCacheConfig(CUkernel, int, CUdevice);
CUresult cuLaunchCooperativeKernel COOPERATIVE_PARAMETERS;
CUresult cuLaunchKernel LAUNCH_PARAMETERS;
CUresult cuLaunchKernelEx(const CUlaunchConfig *, CUfunction, void **, void **);
CUresult cuLibraryEnumerateKernels(CUkernel *, unsigned int, CUlibrary);
CUresult cuLibraryGetGlobal(CUdeviceptr *, size_t *, CUlibrary, const char *);
CUresult cuLibraryGetModule(CUmodule *, CUlibrary);
CUresult cuMemFreeHost(void *);
CUresult cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuModuleEnumerateFunctions(CUfunction *, unsigned int, CUmodule);
CUresult cuModuleGetFunctionCount(unsigned int *, CUmodule);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *, CUfunction, int, int);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, CUfunction, int, size_t);
CUresult cuOccupancyMaxPotentialBlockSize(int *, int *, CUfunction, size_t (*)(int), size_t, int);
CUresult cuStreamCopyAttributes(CUstream, CUstream);
CUresult cuStreamGetAttribute(CUstream, int, CUlaunchAttributeValue *);
CUresult cuStreamGetCtx(CUstream, CUcontext *);
CUresult cuStreamGetDevice(CUstream, CUdevice *);
CUresult cuStreamSetAttribute(CUstream, int, const CUlaunchAttributeValue *);

enum { NONE = CUDA_ERROR_INVALID_CONTEXT, HANDLE = CUDA_ERROR_INVALID_HANDLE, ENDED = CUDA_ERROR_CONTEXT_IS_DESTROYED };
enum { BYTES = 4096 };

static const char code[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry k(.param .u64 p)\n{\n ret;\n}\n"
                           ".visible .entry k2(.param .u64 p)\n{\n ret;\n}\n";

static const char *current_is = "";
static int compared;

static CUcontext current(void) {
    CUcontext context = NULL;
    cuCtxGetCurrent(&context);
    return context;
}

static void compare(const char *call, long result, long measured) {
    compared++;
    if (result != measured)
        printf("%s: %s: %ld, measured %ld\n", current_is, call, result, measured);
}

/* No call here changes the current context. */
#define CHECK(text, measured, call)                                                                                    \
    do {                                                                                                               \
        const CUcontext before = current();                                                                            \
        compare(text, call, measured);                                                                                 \
        if (current() != before)                                                                                       \
            printf("%s: %s changes the current context\n", current_is, text);                                          \
    } while (0)
#define SAME(measured, call) CHECK(#call, measured, call)

/* What it returns while none is current, and while another one is. */
#define ROW(none, other, call) CHECK(#call, current() == NULL ? (none) : (other), call)

static void need(const char *call, CUresult result) {
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: %d\n", call, result);
    exit(1);
}
#define NEED(call) need(#call, call)

static void host(void *argument) {
    (void)argument;
}

/* Of the context c: module m, function f, streams s and s2, events e and e2, memory a and b, the executable graph ge. Of the context
 * d of the same device: function df, stream ds, event de. */
static CUcontext c, d;
static CUmodule m;
static CUfunction f, df;
static CUlibrary library;
static CUkernel k;
static CUstream s, s2, ds;
static CUevent e, e2, de;
static CUdeviceptr a, b;
static void *h;
static CUgraph g;
static CUgraphExec ge;
static uint64_t parameter;
static void *args[] = {&parameter};

static CUresult launch(CUfunction function, CUstream stream) {
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, args, NULL);
}

static CUresult launch_ex(CUfunction function, CUstream stream) {
    const CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, stream, NULL, 0};
    return cuLaunchKernelEx(&config, function, args, NULL);
}

static void set_up(void) {
    NEED(cuInit(0));
    NEED(cuDevicePrimaryCtxRetain(&c, 0));
    NEED(cuCtxSetCurrent(c));
    NEED(cuModuleLoadData(&m, code));
    NEED(cuModuleGetFunction(&f, m, "k"));
    NEED(cuLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0));
    NEED(cuLibraryGetKernel(&k, library, "k2"));
    NEED(cuStreamCreate(&s, STREAM_NON_BLOCKING));
    NEED(cuStreamCreate(&s2, 0));
    NEED(cuEventCreate(&e, 0));
    NEED(cuEventCreate(&e2, 0));
    NEED(cuMemAlloc_v2(&a, BYTES));
    NEED(cuMemAlloc_v2(&b, BYTES));
    NEED(cuMemHostAlloc(&h, BYTES, 0));
    NEED(cuStreamBeginCapture_v2(s, MODE_GLOBAL));
    NEED(launch(f, s));
    NEED(cuStreamEndCapture(s, &g));
    NEED(cuGraphInstantiateWithFlags(&ge, g, 0));
    NEED(cuCtxSetCurrent(NULL));
    NEED(cuCtxCreate_v2(&d, 0, 0)); /* makes it current */
    CUmodule module;
    NEED(cuStreamCreate(&ds, STREAM_NON_BLOCKING));
    NEED(cuEventCreate(&de, 0));
    NEED(cuModuleLoadData(&module, code));
    NEED(cuModuleGetFunction(&df, module, "k"));
}

static void launches(void) {
    const CUfunction kernel = (CUfunction)k;
    const CUstream legacy = (CUstream)STREAM_LEGACY, per_thread = (CUstream)STREAM_PER_THREAD;
    ROW(0, 0, launch(f, s));
    ROW(0, 0, launch(kernel, s));
    ROW(0, 0, launch_ex(f, s));
    ROW(0, 0, launch_ex(kernel, s));
    ROW(0, 0, cuLaunchCooperativeKernel(f, 1, 1, 1, 32, 1, 1, 0, s, args));
    ROW(NONE, HANDLE, launch(f, NULL));
    ROW(NONE, HANDLE, launch(f, legacy));
    ROW(NONE, HANDLE, launch(f, per_thread));
    ROW(NONE, 0, launch(kernel, NULL));
    ROW(HANDLE, HANDLE, launch(df, s));
    ROW(HANDLE, HANDLE, launch(f, ds));
    ROW(0, 0, cuGraphLaunch(ge, s));
    ROW(NONE, 0, cuGraphLaunch(ge, NULL));
    ROW(0, 0, cuGraphLaunch(ge, ds));
    ROW(0, 0, cuLaunchHostFunc(s, host, NULL));
}

static void events(void) {
    float milliseconds;
    ROW(0, 0, cuEventRecord(e, s));
    ROW(0, 0, cuEventRecordWithFlags(e2, s, 0));
    ROW(0, 0, cuEventRecord(e, s2));
    ROW(0, 0, cuEventRecord(e, s));
    ROW(HANDLE, HANDLE, cuEventRecord(de, s));
    ROW(NONE, HANDLE, cuEventRecord(e, NULL));
    ROW(0, 0, cuStreamWaitEvent(s2, e, 0));
    ROW(0, 0, cuStreamWaitEvent(ds, e, 0));
    ROW(0, 0, cuEventSynchronize(e));
    ROW(0, 0, cuEventQuery(e));
    ROW(0, 0, cuEventSynchronize(e2));
    ROW(0, 0, cuEventElapsedTime(&milliseconds, e2, e));
}

static void waits_and_copies(void) {
    ROW(0, 0, cuStreamSynchronize(s));
    ROW(0, 0, cuStreamQuery(s));
    ROW(NONE, 0, cuStreamSynchronize(NULL));
    ROW(NONE, 0, cuStreamQuery(NULL));
    ROW(NONE, 0, cuCtxSynchronize());
    ROW(NONE, 0, cuCtxSynchronize_v2(NULL));
    ROW(0, 0, cuCtxSynchronize_v2(c));
    ROW(0, 0, cuMemcpyHtoDAsync_v2(a, h, BYTES, s));
    ROW(0, 0, cuMemcpyDtoHAsync_v2(h, a, BYTES, s));
    ROW(0, 0, cuMemcpyDtoDAsync_v2(b, a, BYTES, s));
    ROW(0, 0, cuMemcpyAsync(b, a, BYTES, s));
    ROW(0, 0, cuMemsetD8Async(a, 0, BYTES, s));
    ROW(NONE, 0, cuMemcpyHtoD_v2(a, h, BYTES));
    ROW(NONE, 0, cuMemcpyDtoH_v2(h, a, BYTES));
    ROW(NONE, 0, cuMemcpy(b, a, BYTES));
    ROW(NONE, 0, cuMemcpyDtoD_v2(b, a, BYTES));
    ROW(NONE, 0, cuMemsetD8_v2(a, 0, BYTES));
    ROW(NONE, CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(0, h, 8));
    ROW(0, 0, cuStreamSynchronize(s));
}

/* A default stream is one of the current context. */
static void default_stream(CUstream stream) {
    int value;
    unsigned int flags;
    CUcontext context = NULL;
    CUdevice device;
    ROW(NONE, 0, cuStreamGetPriority(stream, &value));
    ROW(NONE, 0, cuStreamGetFlags(stream, &flags));
    ROW(NONE, 0, cuStreamGetCtx(stream, &context));
    compare("context of a default stream", context == current(), true);
    ROW(NONE, 0, cuStreamGetDevice(stream, &device));
    ROW(NONE, 0, cuStreamIsCapturing(stream, &value));
    CUlaunchAttributeValue attribute;
    ROW(NONE, 0, cuStreamGetAttribute(stream, LAUNCH_PRIORITY, &attribute));
    ROW(NONE, CUDA_ERROR_INVALID_VALUE, cuStreamCopyAttributes(s, stream));
    ROW(NONE, CUDA_ERROR_INVALID_VALUE, cuStreamCopyAttributes(stream, s));
    ROW(NONE, 0, cuLaunchHostFunc(stream, host, NULL));
    ROW(NONE, 0, cuStreamWaitEvent(stream, e, 0));
    ROW(NONE, 0, cuMemcpyAsync(a, (CUdeviceptr)(uintptr_t)h, 8, stream));
    CUgraph graph;
    const bool may = stream == (CUstream)STREAM_PER_THREAD;
    ROW(NONE, may ? 0 : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(stream, MODE_RELAXED));
    ROW(NONE, may ? 0 : CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
}

static void questions(void) {
    int value, least = 9, greatest = 9;
    unsigned int flags;
    CUcontext context = NULL;
    CUdevice device = -1;
    ROW(0, 0, cuStreamGetPriority(s, &value));
    ROW(0, 0, cuStreamGetFlags(s, &flags));
    compare("flags of s", flags, STREAM_NON_BLOCKING);
    ROW(0, 0, cuStreamGetCtx(s, &context));
    compare("context of s is c", context == c, true);
    ROW(0, 0, cuStreamGetDevice(s, &device));
    compare("device of s", device, 0);
    ROW(NONE, 0, cuCtxGetDevice(&device));
    ROW(NONE, 0, cuCtxGetDevice_v2(&device, NULL));
    device = -1;
    ROW(0, 0, cuCtxGetDevice_v2(&device, c));
    compare("device of c", device, 0);
    ROW(NONE, 0, cuCtxGetStreamPriorityRange(&least, &greatest));
    ROW(9, 0, least);
    ROW(9, -5, greatest);
    ROW(NONE, 0, cuCtxGetCacheConfig(&value));
    CUlaunchAttributeValue attribute = {.integer = -5};
    ROW(0, 0, cuStreamSetAttribute(s, LAUNCH_PRIORITY, &attribute));
    attribute.integer = 9;
    ROW(0, 0, cuStreamGetAttribute(s, LAUNCH_PRIORITY, &attribute));
    compare("priority of s", attribute.integer, -5);
    attribute.integer = 0;
    ROW(0, 0, cuStreamSetAttribute(s, LAUNCH_PRIORITY, &attribute));
    ROW(0, 0, cuStreamCopyAttributes(s2, s));
    ROW(CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, cuStreamCopyAttributes(ds, s));
    ROW(0, 0, cuStreamIsCapturing(s, &value));
}

static void functions(void) {
    int value, block;
    size_t bytes;
    const char *name;
    CUmodule module;
    CUfunction function;
    CUkernel kernel;
    const CUfunction as_function = (CUfunction)k;
    ROW(0, 0, cuFuncGetAttribute(&value, FUNC_NUM_REGS, f));
    ROW(HANDLE, HANDLE, cuFuncGetAttribute(&value, FUNC_NUM_REGS, as_function));
    ROW(0, 0, cuFuncSetAttribute(f, FUNC_MAX_DYNAMIC, 65536));
    ROW(0, 0, cuFuncGetName(&name, f));
    ROW(0, 0, cuFuncGetModule(&module, f));
    ROW(0, 0, cuFuncSetCacheConfig(f, 0));
    ROW(0, 0, cuKernelGetAttribute(&value, FUNC_NUM_REGS, k, 0));
    ROW(0, 0, cuKernelSetAttribute(FUNC_MAX_DYNAMIC, 65536, k, 0));
    ROW(0, 0, cuKernelSetCacheConfig(k, 0, 0));
    ROW(0, 0, cuKernelGetName(&name, k));
    ROW(NONE, 0, cuKernelGetFunction(&function, k));
    ROW(NONE, 0, cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 128, 0));
    ROW(NONE, 0, cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, as_function, 128, 0));
    ROW(NONE, 0, cuOccupancyMaxPotentialBlockSize(&value, &block, f, NULL, 0, 0));
    ROW(NONE, 0, cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 32));
    unsigned int count;
    ROW(0, 0, cuModuleGetFunction(&function, m, "k2"));
    ROW(0, 0, cuModuleGetFunctionCount(&count, m));
    ROW(0, 0, cuModuleEnumerateFunctions(&function, 1, m));
    ROW(0, 0, cuLibraryGetKernel(&kernel, library, "k"));
    ROW(0, 0, cuLibraryEnumerateKernels(&kernel, 1, library));
    ROW(NONE, 0, cuLibraryGetModule(&module, library));
    CUdeviceptr address;
    ROW(NONE, CUDA_ERROR_NOT_FOUND, cuLibraryGetGlobal(&address, &bytes, library, "none"));
}

static void made_and_ended(void) {
    CUevent event;
    CUstream stream;
    CUmodule module;
    CUlibrary loaded;
    CUdeviceptr memory;
    size_t available, total;
    const CUcontext was = current();
    ROW(NONE, 0, cuEventCreate(&event, 0));
    ROW(NONE, 0, cuStreamCreate(&stream, 0));
    ROW(NONE, 0, cuMemAlloc_v2(&memory, 64));
    ROW(NONE, 0, cuMemGetInfo_v2(&available, &total));
    ROW(NONE, 0, cuPointerGetAttribute(&memory, 3, a));
    ROW(NONE, 0, cuModuleLoadData(&module, code));
    void *locked;
    NEED(cuCtxSetCurrent(c));
    NEED(cuStreamCreate(&stream, 0));
    NEED(cuEventCreate(&event, 0));
    NEED(cuModuleLoadData(&module, code));
    NEED(cuMemAlloc_v2(&memory, 64));
    NEED(cuMemHostAlloc(&locked, 64, 0));
    NEED(cuCtxSetCurrent(was));
    ROW(0, 0, cuStreamDestroy_v2(stream));
    ROW(0, 0, cuEventDestroy_v2(event));
    ROW(0, 0, cuModuleUnload(module));
    ROW(0, 0, cuMemFree_v2(memory));
    ROW(0, 0, cuMemFreeHost(locked));
    ROW(0, 0, cuLibraryLoadData(&loaded, code, NULL, NULL, 0, NULL, NULL, 0));
    ROW(0, 0, cuLibraryUnload(loaded));
}

static void captures(void) {
    int mode = MODE_RELAXED;
    CUgraph graph;
    CUgraphExec exec;
    size_t nodes;
    CUgraphExecUpdateResultInfo info;
    ROW(0, 0, cuThreadExchangeStreamCaptureMode(&mode));
    ROW(0, 0, cuThreadExchangeStreamCaptureMode(&mode));
    ROW(0, 0, cuStreamBeginCapture_v2(s, MODE_RELAXED));
    ROW(0, 0, launch(f, s));
    ROW(HANDLE, HANDLE, launch(NULL, s)); /* neither ends the capture */
    ROW(HANDLE, HANDLE, launch(df, s));
    ROW(HANDLE, HANDLE, cuEventRecord(de, s));
    ROW(0, 0, cuStreamEndCapture(s, &graph));
    ROW(NONE, 0, cuGraphInstantiateWithFlags(&exec, graph, 0));
    ROW(NONE, CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(NULL, graph, 0));
    ROW(0, 0, cuGraphExecUpdate_v2(ge, g, &info));
    ROW(0, 0, cuGraphGetNodes(graph, NULL, &nodes));
    ROW(0, 0, cuGraphDestroy(graph));
}

static void calls(void) {
    launches();
    events();
    waits_and_copies();
    for (uintptr_t stream = 0; stream <= STREAM_PER_THREAD; stream++)
        default_stream((CUstream)stream);
    questions();
    functions();
    made_and_ended();
    captures();
}

static int active(void) {
    unsigned int flags;
    int is = -1;
    cuDevicePrimaryCtxGetState(0, &flags, &is);
    return is;
}

/* A primary context that has ended stays current, and its handle stays good: calls that need the device are refused. A reset does
 * not change how often the context is retained. */
static void primary(void) {
    int least, greatest;
    CUdevice device;
    CUstream stream;
    CUdeviceptr memory;
    CUcontext again, other;
    current_is = "primary";
    NEED(cuCtxSetCurrent(c));
    SAME(0, cuDevicePrimaryCtxReset_v2(0));
    SAME(0, active());
    compare("c is current", current() == c, true);
    SAME(0, cuCtxGetDevice(&device));
    SAME(0, cuCtxGetDevice_v2(&device, c));
    SAME(ENDED, cuCtxGetStreamPriorityRange(&least, &greatest));
    SAME(ENDED, cuCtxSynchronize());
    SAME(ENDED, cuCtxSynchronize_v2(c));
    SAME(ENDED, cuStreamCreate(&stream, 0));
    SAME(ENDED, cuMemAlloc_v2(&memory, 64));
    SAME(ENDED, cuStreamSynchronize(NULL));
    SAME(ENDED, cuStreamQuery(NULL));
    SAME(0, cuCtxSetCurrent(c));
    NEED(cuCtxPopCurrent_v2(&again));
    compare("cuCtxPushCurrent(c)", cuCtxPushCurrent_v2(c), 0);
    NEED(cuCtxPopCurrent_v2(&again));
    SAME(0, cuDevicePrimaryCtxReset_v2(0));
    SAME(0, cuDevicePrimaryCtxRelease_v2(0));
    SAME(NONE, cuDevicePrimaryCtxRelease_v2(0));
    SAME(0, cuDevicePrimaryCtxReset_v2(0));
    NEED(cuCtxCreate_v2(&other, 0, 0));
    NEED(cuCtxPopCurrent_v2(&other));
    SAME(0, cuDevicePrimaryCtxRetain(&again, 0));
    SAME(1, active());
    compare("the address is the same", again == c, true);
    NEED(cuCtxSetCurrent(c));
    SAME(0, cuDevicePrimaryCtxReset_v2(0));
    SAME(0, cuDevicePrimaryCtxRetain(&again, 0));
    SAME(1, active());
    SAME(0, cuCtxSynchronize());
    SAME(0, cuStreamCreate(&stream, 0));
    SAME(0, cuDevicePrimaryCtxRelease_v2(0));
    SAME(1, active());
    SAME(0, cuDevicePrimaryCtxRelease_v2(0));
    SAME(0, active());
    SAME(NONE, cuDevicePrimaryCtxRelease_v2(0));
    SAME(0, cuCtxGetDevice(&device));
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    set_up();
    NEED(cuCtxPopCurrent_v2(NULL));
    current_is = "no context";
    calls();
    current_is = "another context";
    NEED(cuCtxSetCurrent(d));
    calls();
    primary();
    printf("%d calls\n", compared);
    return 0;
}
