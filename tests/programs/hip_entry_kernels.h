/* Where kernels come from and go, what is asked about them, and graphs, for hip_entry_recipes.h. */
#pragma once

/* ---- Modules, libraries, symbols ---- */

static hipFunction_t function_of(hipModule_t its) {
    hipFunction_t got = NULL;
    printf("function: %d\n", hipModuleGetFunction(&got, its, "k"));
    return got;
}
static void recipe_hipModuleLoad(type_hipModuleLoad *call) {
    hipModule_t its = NULL;
    printf("%d", call(&its, code_file));
    printf(" %d\n", call(&module, "/nobody/has/this"));
    launch_often(function_of(its));
}
#define LOADS(name, ...)                                                                                               \
    static void recipe_##name(type_##name *call) {                                                                     \
        hipModule_t its = NULL;                                                                                        \
        printf("%d\n", call(&its, code __VA_ARGS__));                                                                  \
        launch_often(function_of(its));                                                                                \
    }
LOADS(hipModuleLoadData)
LOADS(hipModuleLoadFatBinary)
LOADS(hipModuleLoadDataEx, COMMA 0 COMMA NULL COMMA NULL)

static void recipe_hipModuleGetFunction(type_hipModuleGetFunction *call) {
    hipFunction_t got = NULL, none = NULL;
    printf("%d", call(&got, module, "k"));
    printf(" %d %d\n", call(&none, module, "nobody"), call(NULL, module, "k"));
    launch_often(got);
}
/* After the end of a module its handles may mean other kernels. */
static void recipe_hipModuleUnload(type_hipModuleUnload *call) {
    launch_often(k_f);
    launch_often(leave_f);
    printf("%d", call(module));
    load();
    printf(" again %d\n", call(NULL));
    launch_often(leave_f);
    launch_often(k_f);
}

/* Of 7.2, so looked up. */
typedef hipError_t load_library(hipLibrary_t *, const void *, int *, void **, unsigned, int *, void **, unsigned);
static hipLibrary_t load_as_library(void) {
    hipLibrary_t its = NULL;
    load_library *call = (load_library *)dlsym(library, "hipLibraryLoadData");
    printf("library: %d\n", call(&its, code, NULL, NULL, 0, NULL, NULL, 0));
    return its;
}
static void recipe_hipLibraryGetKernel(type_hipLibraryGetKernel *call) {
    hipLibrary_t its = load_as_library();
    hipKernel_t got = NULL, none = NULL;
    printf("%d", call(&got, its, "k"));
    printf(" %d\n", call(&none, its, "nobody"));
    launch_often(got);
}
static void recipe_hipLibraryUnload(type_hipLibraryUnload *call) {
    hipLibrary_t its = load_as_library();
    hipKernel_t got = NULL;
    type_hipLibraryGetKernel *get = (type_hipLibraryGetKernel *)dlsym(library, "hipLibraryGetKernel");
    printf("kernel: %d\n", get(&got, its, "k"));
    launch_often(got);
    printf("%d\n", call(its));
    its = load_as_library();
    printf("kernel: %d\n", get(&got, its, "leave"));
    launch_often(got);
}
static void recipe_hipGetFuncBySymbol(type_hipGetFuncBySymbol *call) {
    hipFunction_t got = NULL, none = NULL;
    printf("%d", call(&got, k));
    printf(" %d %d\n", call(&none, "nobody"), call(NULL, k));
    launch_often(got);
    launch_host_often(k);
}
static void recipe___hipUnregisterFatBinary(type___hipUnregisterFatBinary *call) {
    launch_host_often(k);
    call(binary);
    printf("gone: %d\n", launch_host(k));
    register_kernels();
    launch_host_often(leave);
    launch_host_often(k);
}
static void recipe_hipDeviceReset(type_hipDeviceReset *call) {
    launch_often(k_f);
    printf("%d\n", call());
    set_scene();
    launch_often(k_f);
}

/* ---- Occupancy: the answer is the runtime's, and the kernel is left alone from then on ---- */

#define ASKS(name, again, ...)                                                                                         \
    static void recipe_##name(type_##name *call) {                                                                     \
        int one = -1, two = -1;                                                                                        \
        size_t bytes = 0;                                                                                              \
        again;                                                                                                         \
        for (uint32_t dynamic = 0; dynamic < 70000; dynamic += 30000) {                                                \
            printf("%d", call(__VA_ARGS__));                                                                           \
            printf(", %d %d %zu\n", one, two, bytes);                                                                  \
        }                                                                                                              \
        again;                                                                                                         \
    }
#define HOST_ASKS(name, ...) ASKS(name, launch_host_often(k), __VA_ARGS__)
#define FUNCTION_ASKS(name, ...) ASKS(name, launch_often(k_f), __VA_ARGS__)
HOST_ASKS(hipOccupancyMaxActiveBlocksPerMultiprocessor, &one, k, THREADS, dynamic)
HOST_ASKS(hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &one, k, THREADS, dynamic, 0)
HOST_ASKS(hipOccupancyMaxPotentialBlockSize, &one, &two, k, dynamic, 0)
HOST_ASKS(hipOccupancyAvailableDynamicSMemPerBlock, &bytes, k, 1 + (int)dynamic / 30000, THREADS)
FUNCTION_ASKS(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, &one, k_f, THREADS, dynamic)
FUNCTION_ASKS(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &one, k_f, THREADS, dynamic, 0)
FUNCTION_ASKS(hipModuleOccupancyMaxPotentialBlockSize, &one, &two, k_f, dynamic, 0)
FUNCTION_ASKS(hipModuleOccupancyMaxPotentialBlockSizeWithFlags, &one, &two, k_f, dynamic, 0, 0)

/* ---- Graphs ---- */

static hipKernelNodeParams node_of(const void *function, uint32_t blocks) {
    return (hipKernelNodeParams){
        .func = function, .gridDim = {blocks, 1, 1}, .blockDim = {THREADS, 1, 1}, .kernelParams = parameters};
}
static hipGraphNodeParams any_of(const void *function, uint32_t blocks) {
    hipGraphNodeParams any;
    memset(&any, 0, sizeof any);
    any.kernel = node_of(function, blocks);
    return any;
}
static hipGraphNode_t add(const void *function, uint32_t blocks) {
    const hipKernelNodeParams params = node_of(function, blocks);
    hipGraphNode_t made = NULL;
    printf("added: %d\n", hipGraphAddKernelNode(&made, graph, NULL, 0, &params));
    return made;
}
static hipGraphExec_t instantiate(void) {
    hipGraphExec_t exec = NULL;
    printf("instantiated: %d\n", hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    return exec;
}
static void run(hipGraphExec_t exec) {
    printf("run: %d\n", hipGraphLaunch(exec, stream));
}

#define ADDS(name, kind, make)                                                                                         \
    static void recipe_##name(type_##name *call) {                                                                     \
        hipGraphNode_t one = NULL, two = NULL, bad = NULL;                                                             \
        kind first = make(k, BIG), second = make(comm, 16), third = make(leave, BIG), wrong = make(k, 0);              \
        printf("%d", call(&one, graph, NULL, 0, &first));                                                              \
        printf(" %d", call(&two, graph, &one, 1, &second));                                                            \
        printf(" %d", call(&two, graph, &one, 1, &third));                                                             \
        printf(" %d\n", call(&bad, graph, NULL, 0, &wrong));                                                           \
        run(instantiate());                                                                                            \
    }
ADDS(hipGraphAddKernelNode, hipKernelNodeParams, node_of)
ADDS(hipGraphAddNode, hipGraphNodeParams, any_of)

#define SETS(name, kind, make)                                                                                         \
    static void recipe_##name(type_##name *call) {                                                                     \
        hipGraphNode_t node = add(k, 10);                                                                              \
        kind big = make(k, BIG), wrong = make(k, 0);                                                                   \
        printf("%d", call(node, &big));                                                                                \
        printf(" %d\n", call(node, &wrong));                                                                           \
        run(instantiate());                                                                                            \
    }
SETS(hipGraphKernelNodeSetParams, hipKernelNodeParams, node_of)
SETS(hipGraphNodeSetParams, hipGraphNodeParams, any_of)

#define EXEC_SETS(name, kind, make)                                                                                    \
    static void recipe_##name(type_##name *call) {                                                                     \
        hipGraphNode_t node = add(k, 10);                                                                              \
        hipGraphExec_t exec = instantiate();                                                                           \
        kind big = make(k, BIG), wrong = make(k, 0);                                                                   \
        printf("%d", call(exec, node, &big));                                                                          \
        printf(" %d\n", call(exec, node, &wrong));                                                                     \
        run(exec);                                                                                                     \
    }
EXEC_SETS(hipGraphExecKernelNodeSetParams, hipKernelNodeParams, node_of)
EXEC_SETS(hipGraphExecNodeSetParams, hipGraphNodeParams, any_of)

static void recipe_hipGraphKernelNodeGetParams(type_hipGraphKernelNodeGetParams *call) {
    hipKernelNodeParams shown = {.sharedMemBytes = 7};
    hipGraphNode_t node = add(k, BIG);
    printf("%d", call(node, &shown));
    printf(" %u blocks, %u bytes, %d\n", shown.gridDim.x, shown.sharedMemBytes, call(NULL, &shown));
    run(instantiate());
}
/* A node that becomes cooperative may be shaped no longer. */
static void recipe_hipGraphKernelNodeSetAttribute(type_hipGraphKernelNodeSetAttribute *call) {
    const vendor_attribute_value together = {.cooperative = 1};
    hipGraphNode_t node = add(k, BIG);
    printf("%d", call(node, LAUNCH_ATTRIBUTE_COOPERATIVE, &together));
    printf(" %d\n", call(node, 999, &together));
    run(instantiate());
}
static void recipe_hipGraphKernelNodeCopyAttributes(type_hipGraphKernelNodeCopyAttributes *call) {
    const vendor_attribute_value together = {.cooperative = 1};
    hipGraphNode_t from = add(leave, 50), to = add(k, BIG);
    printf("%d", hipGraphKernelNodeSetAttribute(from, LAUNCH_ATTRIBUTE_COOPERATIVE, &together));
    printf(" %d\n", call(from, to));
    run(instantiate());
}

#define INSTANTIATES(name, ...)                                                                                        \
    static void recipe_##name(type_##name *call) {                                                                     \
        hipGraphExec_t exec = NULL;                                                                                    \
        hipGraphNode_t bad = NULL;                                                                                     \
        char log[16] = "";                                                                                             \
        struct {                                                                                                       \
            hipGraphNode_t bad;                                                                                        \
            uint64_t flags;                                                                                            \
            int result;                                                                                                \
            hipStream_t stream;                                                                                        \
        } how = {NULL, 0, -1, NULL};                                                                                   \
        (void)bad, (void)log;                                                                                          \
        add(k, BIG);                                                                                                   \
        add(comm, 16);                                                                                                 \
        printf("%d", call(&exec, graph, __VA_ARGS__));                                                                 \
        printf(" %d\n", how.result);                                                                                   \
        run(exec);                                                                                                     \
    }
INSTANTIATES(hipGraphInstantiate, &bad, log, sizeof log)
INSTANTIATES(hipGraphInstantiateWithFlags, 0)
INSTANTIATES(hipGraphInstantiateWithParams, &how)

#define RUNS(name)                                                                                                     \
    static void recipe_##name(type_##name *call) {                                                                     \
        add(leave, BIG);                                                                                               \
        hipGraphExec_t exec = instantiate();                                                                           \
        printf("%d", call(exec, stream));                                                                              \
        printf(" %d\n", call(NULL, stream));                                                                           \
    }
RUNS(hipGraphLaunch)
RUNS(hipGraphLaunch_spt)

static void recipe_hipGraphExecDestroy(type_hipGraphExecDestroy *call) {
    add(comm, 16);
    printf("%d", call(instantiate()));
    printf(" %d\n", call(NULL));
}
