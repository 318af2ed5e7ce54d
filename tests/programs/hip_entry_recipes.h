/* For every row of HIP's driver.def what a program does with it. Each begins with a scene of its own: kernels that nobody
 * has launched yet, as functions of modules (k_f) and as functions of the program that stand for them (k). What is named
 * `call` goes the way that is tested; everything else is linked. */
#pragma once

enum { BIG = 400, MOST = 80, THREADS = 256, KERNELS = 4, SCENES = 400 };
#define XY(x, y) ((uint64_t)(y) << 32 | (uint32_t)(x)) /* two members of a dim3, as it is passed */

static uint64_t a = 1;
static uint32_t b = 2;
static void *parameters[] = {&a, &b};
static hipModule_t module;
static hipFunction_t k_f, leave_f, inside_f, comm_f;
static const void *k, *leave, *inside, *comm;
static const char *variable; /* stands for a variable of the GPU */
static void **binary;
static hipStream_t stream; /* of another library: the policy wants those of this program raised */
static hipGraph_t graph;

static const char *read_file(const char *name) {
    FILE *file = fopen(name, "rb");
    static char bytes[1 << 16];
    return file && fread(bytes, 1, sizeof bytes, file) > 0 ? bytes : NULL;
}

static void load(void) {
    hipError_t bad = hipModuleLoadData(&module, code) + hipModuleGetFunction(&k_f, module, "k") +
                     hipModuleGetFunction(&leave_f, module, "leave") +
                     hipModuleGetFunction(&inside_f, module, "inside") +
                     hipModuleGetFunction(&comm_f, module, "ncclDevKernel");
    if (bad)
        printf("load: %d\n", bad);
}

/* What hipcc's code does before main. */
static void register_kernels(void) {
    static const char *const names[KERNELS] = {"k", "leave", "inside", "ncclDevKernel"};
    static struct {
        uint32_t magic, version;
        const void *data, *unused;
    } wrapper = {0x48495046, 1, NULL, NULL};
    static char hosts[SCENES][KERNELS + 1][16];
    static int scene;
    wrapper.data = code;
    binary = __hipRegisterFatBinary(&wrapper);
    for (int i = 0; i < KERNELS; i++)
        __hipRegisterFunction(binary, hosts[scene][i], (char *)names[i], names[i], 0, NULL, NULL, NULL, NULL, NULL);
    k = hosts[scene][0], leave = hosts[scene][1], inside = hosts[scene][2], comm = hosts[scene][3];
    variable = hosts[scene][4];
    __hipRegisterVar(binary, hosts[scene][4], "variable", "variable", 0, 64, 0, 0);
    scene++;
}

static void set_scene(void) {
    load();
    register_kernels();
    stream = scene_stream(1);
    hipError_t bad = hipGraphCreate(&graph, 0);
    if (bad || !stream)
        printf("scene: %d\n", bad);
}

static hipError_t launch(hipFunction_t function) {
    return hipModuleLaunchKernel(function, BIG, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL);
}
static hipError_t launch_host(const void *function) {
    return hipLaunchKernel(function, XY(BIG, 1), 1, XY(THREADS, 1), 1, parameters, 0, stream);
}
/* So often that it goes the hot path. */
static void launch_often(hipFunction_t function) {
    for (int i = 0; i < 3; i++)
        printf("launched: %d\n", launch(function));
}
static void launch_host_often(const void *function) {
    for (int i = 0; i < 3; i++)
        printf("launched: %d\n", launch_host(function));
}
static void print_priority(hipStream_t made) {
    int priority = -9;
    hipStreamGetPriority(made, &priority);
    printf("driver: stream of priority %d\n", priority);
}
/* Virtual time passes, and nobody learns what is over. */
static void spend(void) {
    size_t available, total;
    for (int i = 0; i < 2000; i++)
        hipMemGetInfo(&available, &total);
}

/* ---- Launches: some that are shaped, and others with a size of their own, of communication, and refused ---- */

#define BY_HOST_LAUNCH(name, ...)                                                                                      \
    static void recipe_##name(type_##name *call) {                                                                     \
        for (int i = 0; i < 3; i++)                                                                                    \
            printf("%d", call(k, XY(BIG / 2, 2), 1, XY(THREADS / 4, 2), 2, parameters, 0, stream __VA_ARGS__));        \
        printf(" %d", call(k, XY(5, 1), 2, XY(THREADS, 1), 1, parameters, 100, stream __VA_ARGS__));                   \
        printf(" %d", call(comm, XY(16, 1), 1, XY(THREADS, 1), 1, parameters, 0, stream __VA_ARGS__));                 \
        printf(" %d", call(leave, XY(BIG, 1), 1, XY(THREADS, 1), 1, parameters, 0, stream __VA_ARGS__));               \
        printf(" %d\n", call(k, XY(0, 1), 1, XY(THREADS, 1), 1, parameters, 0, stream __VA_ARGS__));                   \
    }
#define COMMA ,
BY_HOST_LAUNCH(hipLaunchKernel)
BY_HOST_LAUNCH(hipLaunchKernel_spt)
BY_HOST_LAUNCH(hipExtLaunchKernel, COMMA NULL COMMA NULL COMMA 0)

/* In workgroups, and in work-items. */
#define BY_FUNCTION_LAUNCH(name, x, y, ...)                                                                            \
    static void recipe_##name(type_##name *call) {                                                                     \
        for (int i = 0; i < 3; i++)                                                                                    \
            printf("%d", call(k_f, BIG / 2 * (x), 2 * (y), 1, 64, 4, 1, 0, stream, parameters __VA_ARGS__));           \
        printf(" %d", call(k_f, 10 * (x), 1 * (y), 1, 64, 4, 1, 100, stream, parameters __VA_ARGS__));                 \
        printf(" %d", call(comm_f, 16 * (x), 1 * (y), 1, 64, 4, 1, 0, stream, parameters __VA_ARGS__));                \
        printf(" %d", call(leave_f, BIG * (x), 1 * (y), 1, 64, 4, 1, 0, stream, parameters __VA_ARGS__));              \
        printf(" %d\n", call(k_f, 0, 1 * (y), 1, 64, 4, 1, 0, stream, parameters __VA_ARGS__));                        \
    }
#define MANGLED_EXT _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j
#define MANGLED_HCC _Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_
#define BY_ITEMS_LAUNCH(name, ...) BY_FUNCTION_LAUNCH(name, 64, 4, __VA_ARGS__)
BY_FUNCTION_LAUNCH(hipModuleLaunchKernel, 1, 1, COMMA NULL)
BY_ITEMS_LAUNCH(hipExtModuleLaunchKernel, COMMA NULL COMMA NULL COMMA NULL COMMA 0)
BY_ITEMS_LAUNCH(MANGLED_EXT, COMMA NULL COMMA NULL COMMA NULL COMMA 0)
BY_ITEMS_LAUNCH(hipHccModuleLaunchKernel, COMMA NULL COMMA NULL COMMA NULL)
BY_ITEMS_LAUNCH(MANGLED_HCC, COMMA NULL COMMA NULL COMMA NULL)

static vendor_attribute attribute_of(uint32_t id, int value) {
    vendor_attribute made = {.id = id};
    made.value.cooperative = value;
    return made;
}
static void recipe_hipLaunchKernelExC(type_hipLaunchKernelExC *call) {
    vendor_attribute together = attribute_of(LAUNCH_ATTRIBUTE_COOPERATIVE, 1),
                     urgent = attribute_of(LAUNCH_ATTRIBUTE_PRIORITY, -1);
    hipLaunchConfig_t config = {{BIG, 1, 1}, {THREADS, 1, 1}, 0, stream, NULL, 0};
    const hipLaunchConfig_t before = config;
    for (int i = 0; i < 3; i++)
        printf("%d", call(&config, k, parameters));
    printf(" %d %d", call(&config, leave, parameters), memcmp(&config, &before, sizeof config));
    config.gridDim.x = 16;
    printf(" %d", call(&config, comm, parameters));
    config.attrs = &together, config.numAttrs = 1;
    printf(" %d", call(&config, k, parameters));
    config.attrs = &urgent;
    printf(" %d %d\n", call(&config, k, parameters), call(NULL, k, parameters));
}
static void recipe_hipDrvLaunchKernelEx(type_hipDrvLaunchKernelEx *call) {
    vendor_attribute together = attribute_of(LAUNCH_ATTRIBUTE_COOPERATIVE, 1),
                     urgent = attribute_of(LAUNCH_ATTRIBUTE_PRIORITY, -1);
    HIP_LAUNCH_CONFIG config = {BIG, 1, 1, THREADS, 1, 1, 0, 0, stream, NULL, 0, 0};
    const HIP_LAUNCH_CONFIG before = config;
    for (int i = 0; i < 3; i++)
        printf("%d", call(&config, k_f, parameters, NULL));
    printf(" %d %d", call(&config, leave_f, parameters, NULL), memcmp(&config, &before, sizeof config));
    config.gridDimX = 16;
    printf(" %d", call(&config, comm_f, parameters, NULL));
    config.attrs = &together, config.numAttrs = 1;
    printf(" %d", call(&config, k_f, parameters, NULL));
    config.attrs = &urgent;
    printf(" %d %d\n", call(&config, k_f, parameters, NULL), call(NULL, k_f, parameters, NULL));
}

/* As many workgroups as fit: several waves were they shaped. */
#define COOPERATIVE(name)                                                                                              \
    static void recipe_##name(type_##name *call) {                                                                     \
        const dim3 most = {MOST, 1, 1}, few = {16, 1, 1}, many = {BIG, 1, 1}, threads = {THREADS, 1, 1};               \
        printf("%d", call(k, most, threads, parameters, 0, stream));                                                   \
        printf(" %d", call(comm, few, threads, parameters, 0, stream));                                                \
        printf(" %d\n", call(k, many, threads, parameters, 0, stream));                                                \
    }
COOPERATIVE(hipLaunchCooperativeKernel)
COOPERATIVE(hipLaunchCooperativeKernel_spt)
static void recipe_hipModuleLaunchCooperativeKernel(type_hipModuleLaunchCooperativeKernel *call) {
    printf("%d", call(k_f, MOST, 1, 1, THREADS, 1, 1, 0, stream, parameters));
    printf(" %d", call(comm_f, 16, 1, 1, THREADS, 1, 1, 0, stream, parameters));
    printf(" %d\n", call(k_f, BIG, 1, 1, THREADS, 1, 1, 0, stream, parameters));
}

#define ON_DEVICES(name)                                                                                               \
    static void recipe_##name(type_##name *call) {                                                                     \
        struct {                                                                                                       \
            const void *function;                                                                                      \
            dim3 grid, block;                                                                                          \
            void **parameters;                                                                                         \
            size_t shared;                                                                                             \
            hipStream_t stream;                                                                                        \
        } one = {k, {MOST, 1, 1}, {THREADS, 1, 1}, parameters, 0, stream};                                             \
        printf("%d", call((hipLaunchParams *)&one, 1, 0));                                                             \
        printf(" %d\n", call((hipLaunchParams *)&one, 1, 0));                                                          \
    }
ON_DEVICES(hipLaunchCooperativeKernelMultiDevice)
ON_DEVICES(hipExtLaunchMultiKernelMultiDevice)
static void recipe_hipModuleLaunchCooperativeKernelMultiDevice(type_hipModuleLaunchCooperativeKernelMultiDevice *call) {
    struct {
        hipFunction_t function;
        uint32_t grid[3], block[3], shared;
        hipStream_t stream;
        void **parameters;
    } one = {k_f, {MOST, 1, 1}, {THREADS, 1, 1}, 0, stream, parameters};
    printf("%d\n", call((hipFunctionLaunchParams *)&one, 1, 0));
}
static void recipe_hipLaunchByPtr(type_hipLaunchByPtr *call) {
    const dim3 grid = {BIG, 1, 1}, threads = {THREADS, 1, 1};
    for (int i = 0; i < 3; i++) {
        printf("configured: %d", hipConfigureCall(grid, threads, 0, stream));
        printf(" %d %d", hipSetupArgument(&a, 8, 0), hipSetupArgument(&b, 4, 8));
        printf(" %d\n", call(i < 2 ? k : leave));
    }
    printf("%d\n", call(k)); /* nothing is configured */
}

/* ---- Entry ---- */

static void recipe_hipInit(type_hipInit *call) {
    printf("%d %d\n", call(0), call(1));
}
static void recipe_hipGetDeviceCount(type_hipGetDeviceCount *call) {
    int count = -1;
    printf("%d %d", call(&count), call(NULL));
    printf(" %d\n", count);
}
static void recipe_hipSetDevice(type_hipSetDevice *call) {
    printf("%d %d\n", call(0), call(77));
}
static void recipe_hipMalloc(type_hipMalloc *call) {
    void *made = NULL;
    printf("%d", call(&made, 100));
    printf(" %d %d\n", made != NULL, call(NULL, 100));
    hipFree(made);
}
static void recipe_hipGetProcAddress(type_hipGetProcAddress *call) {
    void *found = NULL;
    int status = -1;
    printf("%d", call("hipNobodyHasThis", &found, 600, 0, &status));
    printf(" %d", call("hipLaunchKernel", &found, 600, 0, &status));
    printf(" %d, status %d\n", call(NULL, &found, 600, 0, &status), status);
    printf("driver: hands out a function of %s\n", owner_of(found));
}
#define ENTRY_POINT(name)                                                                                              \
    static void recipe_##name(type_##name *call) {                                                                     \
        void *found = NULL, *threads = NULL;                                                                           \
        int status = -1;                                                                                               \
        printf("%d", call("hipNobodyHasThis", &found, 0, &status));                                                    \
        printf(" %d", call("hipLaunchKernel", &found, 0, &status));                                                    \
        printf(" %d, status %d\n", call("hipLaunchKernel", &threads, 2, &status), status);                             \
        printf("driver: hands out a function of %s\n", owner_of(found));                                               \
        printf("driver: hands out a function of %s\n", owner_of(threads));                                             \
        printf("launched: %d\n",                                                                                       \
               ((type_hipLaunchKernel *)threads)(leave, XY(BIG, 1), 1, XY(THREADS, 1), 1, parameters, 0, stream));     \
    }
ENTRY_POINT(hipGetDriverEntryPoint)
ENTRY_POINT(hipGetDriverEntryPoint_spt)

/* ---- Streams: the policy wants those that this program makes to be raised ---- */

static void recipe_hipStreamCreate(type_hipStreamCreate *call) {
    hipStream_t made = NULL;
    printf("%d %d\n", call(&made), call(NULL));
    print_priority(made);
}
static void recipe_hipStreamCreateWithFlags(type_hipStreamCreateWithFlags *call) {
    hipStream_t made = NULL;
    printf("%d %d\n", call(&made, 1), call(NULL, 1));
    print_priority(made);
}
static void recipe_hipStreamCreateWithPriority(type_hipStreamCreateWithPriority *call) {
    hipStream_t made = NULL;
    printf("%d %d\n", call(&made, 1, 1), call(&made, 77, 0));
    print_priority(made);
}
static void recipe_hipExtStreamCreateWithCUMask(type_hipExtStreamCreateWithCUMask *call) {
    const uint32_t all[4] = {UINT32_MAX}, none[4] = {0};
    uint32_t has[4] = {0};
    hipStream_t made = NULL;
    printf("%d", call(&made, 4, all));
    printf(" %d", hipExtStreamGetCUMask(made, 4, has));
    printf(" %d %d\n", call(&made, 4, none), call(&made, 0, all));
    printf("driver: mask %08x\n", has[0]);
}
#define STREAM_PRIORITY(name)                                                                                          \
    static void recipe_##name(type_##name *call) {                                                                     \
        int priority = 99;                                                                                             \
        const hipError_t result = call(stream, &priority);                                                             \
        printf("%d %d\n", result, priority);                                                                           \
    }
STREAM_PRIORITY(hipStreamGetPriority)
STREAM_PRIORITY(hipStreamGetPriority_spt)
static void recipe_hipStreamDestroy(type_hipStreamDestroy *call) {
    printf("%d", call(stream));
    printf(" %d\n", call(stream));
    stream = NULL;
}

#include "hip_entry_kernels.h"

#include "hip_entry_windows.h"

#include "hip_entry_copies.h"
