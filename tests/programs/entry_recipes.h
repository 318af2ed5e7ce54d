/* For every row of driver.def what a program does with it. Each begins with a scene of its own: kernels that nobody has
 * launched yet. What is named `call` goes the way that is tested; everything else is linked. `raw` is the driver's own. */
#pragma once

enum { BIG = 1200, THREADS = 256, BYTES = 8, CARVEOUT = 9, PRIORITY = CU_LAUNCH_ATTRIBUTE_PRIORITY };

static const char image[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                            ".visible .entry k(.param .u64 a, .param .u32 b)\n{\n ret;\n}\n"
                            ".visible .entry leave(.param .u64 a, .param .u32 b)\n{\n ret;\n}\n"
                            ".visible .entry inside(.param .u64 a, .param .u32 b)\n{\n ret;\n}\n"
                            ".visible .entry ncclDevKernel(.param .u64 a, .param .u32 b)\n{\n ret;\n}\n";
static uint64_t a = 1;
static uint32_t b = 2;
static void *parameters[] = {&a, &b};
static CUcontext primary;
static CUmodule module;
static CUlibrary code;
static CUfunction k, leave, inside, comm;
static CUkernel kernel;
static CUstream stream; /* made behind our back: the policy wants those of this program raised */
static CUgraph graph;

/* behind: got from the driver itself, so nobody has seen where these kernels come from; their addresses are others'. */
static void load(int behind) {
    type_cuModuleGetFunction *get = behind ? RAW(cuModuleGetFunction) : cuModuleGetFunction;
    CUresult bad = cuModuleLoadData(&module, image) + get(&k, module, "k") + get(&leave, module, "leave") +
                   get(&inside, module, "inside") + get(&comm, module, "ncclDevKernel");
    if (bad)
        printf("load: %d\n", bad);
}

static void set_scene(void) {
    if (!primary)
        cuDevicePrimaryCtxRetain(&primary, 0);
    cuCtxSetCurrent(primary);
    load(0);
    CUresult bad = cuLibraryLoadData(&code, image, NULL, NULL, 0, NULL, NULL, 0) +
                   cuLibraryGetKernel(&kernel, code, "k") + RAW(cuStreamCreate)(&stream, 1) + cuGraphCreate(&graph, 0);
    if (bad)
        printf("scene: %d\n", bad);
}

static CUresult launch(CUfunction function) {
    return cuLaunchKernel(function, BIG, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL);
}
/* So often that it goes the hot path. */
static void launch_often(CUfunction function) {
    for (int i = 0; i < 3; i++)
        printf("launched: %d\n", launch(function));
}
static void print_attribute(CUfunction function, int attribute) {
    int value = -9;
    RAW(cuFuncGetAttribute)(&value, attribute, function);
    printf("driver: attribute %d is %d\n", attribute, value);
}
static void print_priority(CUstream made) {
    int priority = -9;
    ((CUresult (*)(CUstream, int *))raw("cuStreamGetPriority"))(made, &priority);
    printf("driver: stream of priority %d\n", priority);
}
static void print_node(CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS shown;
    CUlaunchAttributeValue value = {{0}};
    memset(&shown, 0, sizeof shown);
    RAW(cuGraphKernelNodeGetParams_v2)(node, &shown);
    ((CUresult (*)(CUgraphNode, int, void *))raw("cuGraphKernelNodeGetAttribute"))(node, PRIORITY, &value);
    printf("driver: node of %u bytes, priority %d\n", shown.sharedMemBytes, value.priority);
}

/* ---- Launches ---- */

#define LAUNCH(name)                                                                                                   \
    static void recipe_##name(type_##name *call) {                                                                     \
        for (int i = 0; i < 3; i++)                                                                                    \
            printf("%d", call(k, BIG, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));                              \
        printf(" %d", call(k, 10, 1, 1, THREADS, 1, 1, 100, stream, parameters, NULL));                                \
        printf(" %d", call(comm, 16, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));                               \
        printf(" %d\n", call(k, 0, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));                                 \
    }
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)

static CUlaunchConfig config_of(uint32_t blocks, CUlaunchAttribute *attributes, uint32_t count) {
    return (CUlaunchConfig){blocks, 1, 1, THREADS, 1, 1, 0, 0, stream, attributes, count, 0};
}
#define LAUNCH_EX(name)                                                                                                \
    static void recipe_##name(type_##name *call) {                                                                     \
        CUlaunchAttribute one = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.cluster = {2, 1, 1}};             \
        const CUlaunchConfig plain = config_of(BIG, NULL, 0), few = config_of(16, NULL, 0),                            \
                             clusters = config_of(BIG, &one, 1), none = config_of(0, NULL, 0);                         \
        for (int i = 0; i < 3; i++)                                                                                    \
            printf("%d", call(&plain, k, parameters, NULL));                                                           \
        printf(" %d", call(&clusters, k, parameters, NULL));                                                           \
        printf(" %d %d\n", call(&few, comm, parameters, NULL), call(&none, k, parameters, NULL));                      \
    }
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)

#define LAUNCH_COOPERATIVE(name)                                                                                       \
    static void recipe_##name(type_##name *call) {                                                                     \
        printf("%d", call(k, 1056, 1, 1, THREADS, 1, 1, 0, stream, parameters));                                       \
        printf(" %d", call(comm, 16, 1, 1, THREADS, 1, 1, 0, stream, parameters));                                     \
        printf(" %d\n", call(k, BIG, 1, 1, THREADS, 1, 1, 0, stream, parameters));                                     \
    }
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz)

static void set_shape(void) {
    printf("shape: %d\n", cuFuncSetBlockShape(k, THREADS, 1, 1) + cuParamSetSize(k, 12) + cuParamSetv(k, 0, &a, 8) +
                              cuParamSetv(k, 8, &b, 4));
}
static void recipe_cuFuncSetSharedSize(type_cuFuncSetSharedSize *call) {
    printf("%d\n", call(k, 1024));
}
static void recipe_cuLaunch(type_cuLaunch *call) {
    set_shape();
    printf("%d\n", call(k));
}
static void recipe_cuLaunchGrid(type_cuLaunchGrid *call) {
    set_shape();
    printf("%d\n", call(k, BIG, 1));
}
static void recipe_cuLaunchGridAsync(type_cuLaunchGridAsync *call) {
    set_shape();
    printf("%d\n", call(k, BIG, 1, stream));
}
static void recipe_cuLaunchCooperativeKernelMultiDevice(type_cuLaunchCooperativeKernelMultiDevice *call) {
    struct {
        CUfunction function;
        uint32_t grid[3], block[3], shared;
        CUstream stream;
        void **parameters;
    } one = {k, {132, 1, 1}, {THREADS, 1, 1}, 0, stream, parameters};
    printf("%d\n", call((CUDA_LAUNCH_PARAMS *)&one, 1, 0));
}

/* ---- Entry ---- */

static void recipe_cuInit(type_cuInit *call) {
    printf("%d %d\n", call(0), call(1));
}
static void recipe_cuGetProcAddress(type_cuGetProcAddress *call) {
    void *found = NULL;
    printf("%d", call("cuLaunchKernel", &found, 7000, 2));
    printf(" %d\ndriver: hands out a function of %s\n", call("cuNobodyHasThis", &found, 7000, 0), owner_of(found));
    printf("%d", call("cuLaunchKernel", &found, 7000, 2));
    printf("\ndriver: hands out a function of %s\n", owner_of(found));
}
static void recipe_cuGetProcAddress_v2(type_cuGetProcAddress_v2 *call) {
    void *found = NULL;
    int status = -1;
    printf("%d", call("cuNobodyHasThis", &found, 12000, 0, &status));
    printf(" %d, status %d\n", call("cuLaunchKernelEx", &found, 12000, 0, &status), status);
    printf("driver: hands out a function of %s\n", owner_of(found));
}

/* ---- Streams: the policy wants those that this program makes to be raised ---- */

static void *split_of(void) {
    static char all[1024], part[1024];
    unsigned groups = 1;
    void *description = NULL;
    CUresult bad = cuDeviceGetDevResource(0, all, 1) + cuDevSmResourceSplitByCount(part, &groups, all, NULL, 0, 16) +
                   cuDevResourceGenerateDesc(&description, part, 1);
    if (bad)
        printf("split: %d\n", bad);
    return description;
}
static void *split(void) {
    void *green = NULL;
    CUresult bad = cuGreenCtxCreate(&green, split_of(), 0, 1);
    if (bad)
        printf("green: %d\n", bad);
    return green;
}
static void recipe_cuStreamCreate(type_cuStreamCreate *call) {
    CUstream made = NULL;
    printf("%d %d\n", call(&made, 1), call(NULL, 1));
    print_priority(made);
}
static void recipe_cuStreamCreateWithPriority(type_cuStreamCreateWithPriority *call) {
    CUstream made = NULL;
    printf("%d %d\n", call(&made, 1, 0), call(&made, 77, 0));
    print_priority(made);
}
static void recipe_cuGreenCtxStreamCreate(type_cuGreenCtxStreamCreate *call) {
    CUstream made = NULL;
    printf("%d\n", call(&made, split(), 1, 0));
    print_priority(made);
}
static void print_destroyed(CUresult first, CUresult second) {
    printf("%d %d\n", first, second);
}
static void recipe_cuStreamDestroy(type_cuStreamDestroy *call) {
    CUresult first = call(stream);
    print_destroyed(first, call(stream));
    stream = NULL;
}
static void recipe_cuStreamDestroy_v2(type_cuStreamDestroy_v2 *call) {
    CUresult first = call(stream);
    print_destroyed(first, call(stream));
    stream = NULL;
}
#define STREAM_PRIORITY(name)                                                                                          \
    static void recipe_##name(type_##name *call) {                                                                     \
        int priority = 99;                                                                                             \
        const CUresult result = call(stream, &priority);                                                               \
        printf("%d %d\n", result, priority);                                                                           \
    }
STREAM_PRIORITY(cuStreamGetPriority)
STREAM_PRIORITY(cuStreamGetPriority_ptsz)
#define STREAM_ASKED(name)                                                                                             \
    static void recipe_##name(type_##name *call) {                                                                     \
        CUstreamAttrValue value = {.priority = 99};                                                                    \
        const CUresult result = call(stream, PRIORITY, &value);                                                        \
        printf("%d %d %d\n", result, value.priority, call(stream, 999, &value));                                       \
    }
STREAM_ASKED(cuStreamGetAttribute)
STREAM_ASKED(cuStreamGetAttribute_ptsz)
#define STREAM_COPIED(name)                                                                                            \
    static void recipe_##name(type_##name *call) {                                                                     \
        printf("%d %d\n", call(stream, stream), call(stream, (CUstream)(uintptr_t)1));                                 \
        print_priority(stream);                                                                                        \
    }
STREAM_COPIED(cuStreamCopyAttributes)
STREAM_COPIED(cuStreamCopyAttributes_ptsz)
#define STREAM_ATTRIBUTE(name)                                                                                         \
    static void recipe_##name(type_##name *call) {                                                                     \
        CUstreamAttrValue value = {.priority = -2};                                                                    \
        printf("%d %d\n", call(stream, PRIORITY, &value), call(stream, 999, &value));                                  \
        print_priority(stream);                                                                                        \
    }
STREAM_ATTRIBUTE(cuStreamSetAttribute)
STREAM_ATTRIBUTE(cuStreamSetAttribute_ptsz)

#include "entry_graphs.h"
#include "entry_windows.h"
#include "entry_copies.h"

/* ---- Where kernels come from: what is not known to us is left alone ---- */

static void recipe_cuModuleGetFunction(type_cuModuleGetFunction *call) {
    CUfunction got = NULL, none = NULL;
    cuModuleLoadData(&module, image);
    printf("%d", call(&got, module, "k"));
    printf(" %d\n", call(&none, module, "nobody"));
    launch_often(got);
}
static void recipe_cuLibraryGetKernel(type_cuLibraryGetKernel *call) {
    CUkernel got = NULL, none = NULL;
    cuLibraryLoadData(&code, image, NULL, NULL, 0, NULL, NULL, 0);
    printf("%d", call(&got, code, "k"));
    printf(" %d\n", call(&none, code, "nobody"));
    launch_often(got);
}
static void recipe_cuModuleEnumerateFunctions(type_cuModuleEnumerateFunctions *call) {
    CUfunction got[3] = {NULL};
    cuModuleLoadData(&module, image);
    printf("%d\n", call(got, 3, module));
    launch_often(got[0]);
}
static void recipe_cuLibraryEnumerateKernels(type_cuLibraryEnumerateKernels *call) {
    CUkernel got[3] = {NULL};
    cuLibraryLoadData(&code, image, NULL, NULL, 0, NULL, NULL, 0);
    printf("%d\n", call(got, 3, code));
    launch_often(got[0]);
}
static void recipe_cuKernelGetFunction(type_cuKernelGetFunction *call) {
    CUfunction got = NULL;
    printf("%d", call(&got, kernel));
    printf(" %d\n", call(&got, NULL));
    launch_often(got);
}
/* After the end of what it was made in, a handle may mean another kernel, which is left alone: nobody knows it. Which
 * of the new ones has the address of an old one is the driver's affair. */
static void launch_all(void) {
    launch_often(k);
    launch_often(leave);
    launch_often(comm);
}

static void recipe_cuLibraryGetModule(type_cuLibraryGetModule *call) {
    CUmodule inside = NULL;
    CUfunction got = NULL;
    printf("%d", call(&inside, code));
    printf(" %d\n", cuModuleGetFunction(&got, inside, "k"));
    launch_often(got);
    /* It dies with the library, and its address may mean another kernel then. */
    printf("%d\n", cuLibraryUnload(code));
    load(1);
    launch_all();
}

static void recipe_cuModuleUnload(type_cuModuleUnload *call) {
    launch_often(k);
    printf("%d", call(module));
    load(1);
    printf(" again %d\n", call(NULL));
    launch_all();
}
static void recipe_cuLibraryUnload(type_cuLibraryUnload *call) {
    launch_often(kernel);
    printf("%d", call(code));
    cuLibraryLoadData(&code, image, NULL, NULL, 0, NULL, NULL, 0);
    printf(" %d\n", RAW(cuLibraryGetKernel)(&kernel, code, "k"));
    launch_often(kernel);
}
#define CONTEXT_MADE(name, make)                                                                                       \
    static void recipe_##name(type_##name *call) {                                                                     \
        CUcontext context = NULL;                                                                                      \
        printf("%d\n", make);                                                                                          \
        printf("made: %d\n", context != NULL);                                                                         \
        primary = NULL;                                                                                                \
        set_scene();                                                                                                   \
    }
CONTEXT_MADE(cuCtxCreate, call(&context, 0, 0))
CONTEXT_MADE(cuCtxCreate_v2, call(&context, 0, 0))
CONTEXT_MADE(cuCtxCreate_v3, call(&context, NULL, 0, 0, 0))
CONTEXT_MADE(cuCtxCreate_v4, call(&context, NULL, 0, 0))
CONTEXT_MADE(cuDevicePrimaryCtxRetain, call(&context, 0))
static void recipe_cuGreenCtxCreate(type_cuGreenCtxCreate *call) {
    CUgreenCtx made = NULL;
    printf("%d", call(&made, split_of(), 0, 1));
    printf(" %d\n", made != NULL);
    cuGreenCtxDestroy(made);
}
#define CONTEXT_END(name, create, end)                                                                                 \
    static void recipe_##name(type_##name *call) {                                                                     \
        for (int i = 0; i < 2; i++) {                                                                                  \
            CUcontext context = NULL, green = NULL;                                                                    \
            (void)green;                                                                                               \
            create;                                                                                                    \
            cuCtxSetCurrent(context);                                                                                  \
            load(i);                                                                                                   \
            printf("made: %d\n", RAW(cuStreamCreate)(&stream, 1));                                                     \
            i ? launch_all() : launch_often(k);                                                                        \
            printf("%d\n", end);                                                                                       \
            stream = NULL;                                                                                             \
        }                                                                                                              \
        primary = NULL;                                                                                                \
        set_scene();                                                                                                   \
    }
CONTEXT_END(cuCtxDestroy, cuCtxCreate_v2(&context, 0, 0), call(context))
CONTEXT_END(cuCtxDestroy_v2, cuCtxCreate_v2(&context, 0, 0), call(context))
CONTEXT_END(cuCtxDetach, cuCtxCreate_v2(&context, 0, 0), call(context))
CONTEXT_END(cuGreenCtxDestroy, (green = split(), cuCtxFromGreenCtx(&context, green)), call(green))
CONTEXT_END(cuCtxFromGreenCtx, (green = split(), call(&context, green)), cuGreenCtxDestroy(green))
#define PRIMARY_END(name) CONTEXT_END(name, cuDevicePrimaryCtxRetain(&context, 0), call(0))
PRIMARY_END(cuDevicePrimaryCtxReset)
PRIMARY_END(cuDevicePrimaryCtxReset_v2)
PRIMARY_END(cuDevicePrimaryCtxRelease)
PRIMARY_END(cuDevicePrimaryCtxRelease_v2)

/* ---- Attributes and occupancy, of kernels that were launched with our size, limit and carve-out ---- */

static void recipe_cuFuncSetAttribute(type_cuFuncSetAttribute *call) {
    int value = -1;
    launch_often(k);
    printf("%d", call(k, BYTES, 1024));
    printf(" %d %d\n", call(k, BYTES, 9999999), cuFuncGetAttribute(&value, BYTES, k));
    printf("it is %d\n", value);
    print_attribute(k, BYTES);
    launch_often(k);
}
static void recipe_cuKernelSetAttribute(type_cuKernelSetAttribute *call) {
    int value = -1;
    launch_often(kernel);
    printf("%d", call(BYTES, 1024, kernel, 0));
    printf(" %d %d\n", call(BYTES, 9999999, kernel, 0), cuKernelGetAttribute(&value, BYTES, kernel, 0));
    printf("it is %d\n", value);
    RAW(cuKernelGetAttribute)(&value, BYTES, kernel, 0);
    printf("driver: attribute %d is %d\n", BYTES, value);
    launch_often(kernel);
}
static void recipe_cuFuncGetAttribute(type_cuFuncGetAttribute *call) {
    launch_often(k);
    for (int attribute = 0; attribute < 10; attribute++) {
        int value = -7, result = call(&value, attribute, k);
        printf("%d %d\n", result, value);
    }
    print_attribute(k, BYTES);
    print_attribute(k, CARVEOUT);
}
static void recipe_cuKernelGetAttribute(type_cuKernelGetAttribute *call) {
    launch_often(kernel);
    for (int attribute = 0; attribute < 10; attribute++) {
        int value = -7, result = call(&value, attribute, kernel, 0);
        printf("%d %d\n", result, value);
        RAW(cuKernelGetAttribute)(&value, attribute, kernel, 0);
        if (attribute == BYTES || attribute == CARVEOUT)
            printf("driver: attribute %d is %d\n", attribute, value);
    }
}
static void recipe_cuFuncSetCacheConfig(type_cuFuncSetCacheConfig *call) {
    launch_often(k);
    print_attribute(k, CARVEOUT);
    printf("%d %d\n", call(k, 2), call(k, 99));
    printf("after: ");
    print_attribute(k, CARVEOUT);
}
static void recipe_cuKernelSetCacheConfig(type_cuKernelSetCacheConfig *call) {
    int value = -7;
    launch_often(kernel);
    RAW(cuKernelGetAttribute)(&value, CARVEOUT, kernel, 0);
    printf("driver: attribute %d is %d\n", CARVEOUT, value);
    printf("%d %d\n", call(kernel, 2, 0), call(kernel, 99, 0));
    RAW(cuKernelGetAttribute)(&value, CARVEOUT, kernel, 0);
    printf("after: driver: attribute %d is %d\n", CARVEOUT, value);
}

static void recipe_cuCtxSetCacheConfig(type_cuCtxSetCacheConfig *call) {
    launch_often(k);
    print_attribute(k, CARVEOUT);
    printf("%d %d\n", call(2), call(99));
    printf("after: ");
    print_attribute(k, CARVEOUT);
    call(0);
}

static size_t bytes_of(int threads) {
    return (size_t)threads * 100;
}
#define ASKS(name, ...)                                                                                                \
    static void recipe_##name(type_##name *call) {                                                                     \
        int one = -1, two = -1;                                                                                        \
        size_t bytes = 0;                                                                                              \
        CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.cluster = {2, 1, 1}};         \
        CUlaunchConfig config = config_of(BIG, &cluster, 1);                                                           \
        launch_often(k);                                                                                               \
        for (uint32_t dynamic = 0; dynamic < 70000; dynamic += 30000) {                                                \
            config.sharedMemBytes = dynamic;                                                                           \
            printf("%d", call(__VA_ARGS__));                                                                           \
            printf(", %d %d %zu\n", one, two, bytes);                                                                  \
        }                                                                                                              \
        (void)bytes_of, (void)config;                                                                                  \
        print_attribute(k, CARVEOUT);                                                                                  \
        launch_often(k);                                                                                               \
    }
ASKS(cuOccupancyMaxActiveBlocksPerMultiprocessor, &one, k, THREADS, dynamic)
ASKS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &one, k, THREADS, dynamic, 0)
ASKS(cuOccupancyMaxPotentialBlockSize, &one, &two, k, dynamic ? bytes_of : NULL, dynamic, 0)
ASKS(cuOccupancyMaxPotentialBlockSizeWithFlags, &one, &two, k, dynamic ? bytes_of : NULL, dynamic, 0, 1)
ASKS(cuOccupancyAvailableDynamicSMemPerBlock, &bytes, k, 1 + (int)dynamic / 30000, THREADS)
ASKS(cuOccupancyMaxActiveClusters, &one, k, &config)
ASKS(cuOccupancyMaxPotentialClusterSize, &one, k, &config)
