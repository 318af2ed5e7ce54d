/* The rest of differ_cuda.h, which includes it: threads and contexts, arguments of several words, what a block of calls is about. */
#pragma once

/* ---- Threads and their contexts ---- */

extern CUresult cuInit(uint32_t), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext),
    cuCtxCreate_v2(CUcontext *, uint32_t, CUdevice), cuCtxGetCurrent(CUcontext *);
/* Another context of the device, which no call ends, or the primary one of the second device. */
static CUcontext another(uint32_t which) {
    static CUcontext others[2];
    CUcontext before = NULL;
    if (!others[which] && !cuCtxGetCurrent(&before)) {
        if (which ? cuDevicePrimaryCtxRetain(&others[1], 1) : cuCtxCreate_v2(&others[0], 0, 0))
            others[which] = NULL;
        cuCtxSetCurrent(before);
    }
    return others[which];
}
/* Most blocks begin in the context that most programs use: else nearly all calls after the end of a context fail. Some begin with
 * none, or with another one than that of most handles. */
static void enter_block(int first) {
    static CUcontext primary;
    const uint32_t other = of_block(903, 12);
    if (!first && of_block(902, 8) == 0)
        return;
    if (!first && primary && other < 4) {
        cuCtxSetCurrent(other < 2 ? NULL : another(other - 2));
        return;
    }
    if (primary && !cuCtxSetCurrent(primary))
        return;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&primary, 0) || cuCtxSetCurrent(primary))
        return;
    keep(CONTEXT, primary);
}
static void after_timed(void) {}

/* ---- Arguments that are more than a word ---- */

static void show_const_CUlaunchConfig_p(const char *name, const CUlaunchConfig *config) {
    if (!config) {
        show_word(name, 0);
        return;
    }
    say("%s={%u,%u,%u %u,%u,%u %u ", name, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
        config->blockDimY, config->blockDimZ, config->sharedMemBytes);
    show_word("stream", (uintptr_t)config->hStream);
    for (uint32_t i = 0; config->attrs && i < config->numAttrs; i++)
        say("%u:%d,%u,%u ", config->attrs[i].id, config->attrs[i].value.priority, config->attrs[i].value.cluster.y,
            config->attrs[i].value.cluster.z);
    say("} ");
}
static void show_const_char_p(const char *name, const char *text) {
    say("%s=%s ", name, text ? text : "NULL");
}
static void show_const_CUgraphNode_p(const char *name, const CUgraphNode *nodes) {
    show_word(name, (uintptr_t)(nodes ? nodes[0] : NULL));
}
static void show_const_CUlaunchAttributeValue_p(const char *name, const CUlaunchAttributeValue *value) {
    show_word(name, value ? (uint64_t)value->priority : 0);
}
#define show_const_CUstreamAttrValue_p show_const_CUlaunchAttributeValue_p

/* ---- What a block of calls is about ---- */

enum { LOAD, THEMES_FIRST };
static const struct theme themes[] = {
    {"load",
     {"cuModuleLoadData", "cuModuleGetFunction", "cuModuleGetFunction", "cuModuleGetFunction", "cuLibraryLoadData",
      "cuLibraryGetKernel", "cuLibraryGetKernel", "cuKernelGetFunction", "cuStreamCreate*", "cuEventCreate",
      "cuMemAlloc_v2", "cuGraphCreate", "cuModuleEnumerateFunctions", "cuLibraryEnumerateKernels",
      "cuLibraryGetModule"},
     {NULL}},
    {"any", {"*"}, {NULL}},
    {"launch",
     {"cuLaunchKernel*", "cuLaunchKernel*", "cuLaunch*", "cuFuncSetAttribute", "cuKernelSetAttribute",
      "cuFuncGetAttribute", "cuEvent*", "cuStreamWaitEvent*", "cuFuncSet*", "cuModuleGetFunction"},
     {NULL}},
    {"settings",
     {"cuFunc*", "cuKernel*", "cuFuncSetAttribute", "cuFuncGetAttribute", "cuOccupancy*", "cuLaunchKernel*",
      "cuCtx*CacheConfig", "cuModuleGetFunction", "cuModuleGetFunction", "cuLibraryGetKernel"},
     {NULL}},
    {"capture",
     {"cuLaunchKernel*", "cuLaunchKernel*", "cuLaunch*", "cuEventRecord*", "cuStreamWaitEvent*", "cuMemsetD*Async*",
      "cuStream*", "cuModuleUnload", "cuFuncSetAttribute"},
     {"cuStreamBeginCapture*", [11] = "cuStreamEndCapture*", "cuGraphInstantiate*", "cuGraphLaunch*",
      "cuGraphGetNodes"}},
    {"update",
     {"cuLaunchKernel*"},
     {"cuStreamBeginCapture_v2", [4] = "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
      "cuStreamBeginCapture_v2", [11] = "cuStreamEndCapture", "cuGraphExecUpdate*", "cuGraphExecUpdate_v2",
      "cuGraphLaunch"}},
    {"raise",
     {"cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent", "cuEventSynchronize", "cuStreamSynchronize",
      "cuStreamGetPriority*", "cuStreamGetAttribute*", "cuStreamCopyAttributes*", "cuMemcpyDtoH*", "cuStreamCreate"},
     {[2] = "cuLaunchKernel",
      "cuStreamSynchronize",
      [6] = "cuLaunchKernel",
      "cuStreamSynchronize",
      [10] = "cuLaunchKernel",
      "cuStreamSynchronize"}},
    {"raise more", {"cuLaunchKernel", "cuStreamSynchronize", "cuStreamGet*"}, {NULL}},
    {"current",
     {"cuCtxSetCurrent", "cuCtxPushCurrent*", "cuCtxPopCurrent*", "cuLaunchKernel*", "cuLaunchKernel*", "cuLaunch*",
      "cuEventRecord*", "cuStreamWaitEvent*", "cuStreamSynchronize*", "cuEventSynchronize", "cuStreamDestroy*",
      "cuStream*Attribute*", "cuStreamGetPriority*", "cuMem*Async*", "cuGraphLaunch*"},
     {"cuCtxSetCurrent", [4] = "cuStreamBeginCapture*", [8] = "cuStreamEndCapture*"}},
    {"order", {"cuEvent*", "cuStream*", "cuCtxSynchronize*", "cuLaunchKernel*", "cuMem*"}, {NULL}},
    {"copy", {"cuMem*", "cuLaunchKernel*"}, {NULL}},
    {"life",
     {"cuModule*", "cuLibrary*", "cuCtx*", "cuGreenCtx*", "cuStream*", "cuDevice*", "cuLaunchKernel*",
      "cuFuncGetAttribute", "cuKernelGetAttribute"},
     {NULL}},
};
/* So rarely, because they end everything that a device has. */
static const char *const rare[] = {"cuDevicePrimaryCtxRe*", "cuCtxDestroy*", "cuCtxDetach", "cuCtxCreate*",
                                   "cuGreenCtx*"};
/* Whether something is over yet depends on time, which a library may take some of. */
static const char *const timed[] = {"*Query*", "*ElapsedTime*"};
static const char *const ends[] = {"cuCtxDestroy*", "cuCtxDetach", "cuDevicePrimaryCtxRe[sl]e*", "cuGreenCtxDestroy"};
#define DRIVER_FILE "libcuda.so.1"
