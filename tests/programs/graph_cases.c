/* What the words of client.c cannot say: one case each, named by the first argument. Linked to the driver. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAY_LINKED
#include "../../shim/vendor/cuda/cuda_abi.h"
#include "driver.h"

extern int cuGraphCreate(void **, unsigned), cuGraphKernelNodeGetParams_v2(void *, CUDA_KERNEL_NODE_PARAMS *);
extern int cuGraphAddKernelNode_v2(void **, void *, void *const *, size_t, const CUDA_KERNEL_NODE_PARAMS *);
extern int cuGraphAddNode_v2(void **, void *, void *const *, const void *, size_t, CUgraphNodeParams *);
extern int cuGraphKernelNodeSetParams_v2(void *, const CUDA_KERNEL_NODE_PARAMS *);
extern int cuGraphKernelNodeSetAttribute(void *, int, const CUlaunchAttributeValue *);
extern int cuGraphGetNodes(void *, void **, size_t *);
extern int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, void *, int, size_t);
extern int cuStreamDestroy_v2(void *), cuStreamSetAttribute(void *, int, const CUlaunchAttributeValue *);
extern int cuLibraryGetModule(void **, void *);

#define NCCL "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
enum { BLOCKS = 4000, THREADS = 256 };

static uint64_t a;
static uint32_t b;
static void *parameters[] = {&a, &b};

static void *module_of(const char *names) {
    char *text = ptx_of(names);
    void *module = NULL;
    printf("load: %d\n", cuModuleLoadData(&module, text));
    free(text);
    return module;
}

static void *function_of(void *module, const char *name) {
    void *function = NULL;
    printf("function: %d\n", cuModuleGetFunction(&function, module, name));
    return function;
}

static void launch(void *function, unsigned blocks, void *stream) {
    printf("launch: %d\n", cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));
}

static CUDA_KERNEL_NODE_PARAMS node_of(void *function) {
    return (CUDA_KERNEL_NODE_PARAMS){.func = function,
                                     .gridDimX = BLOCKS,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = THREADS,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = parameters};
}

static void use_device(int device) {
    void *context = NULL;
    printf("device: %d", cuDevicePrimaryCtxRetain(&context, device));
    printf(" %d\n", cuCtxSetCurrent(context));
}

static void *stream_of(int priority) {
    void *stream = NULL;
    printf("stream: %d\n", cuStreamCreateWithPriority(&stream, 1, priority));
    return stream;
}

/* A node for a function of one device, while the other is the current one; then that function is launched. */
static void other_device(void) {
    void *k = function_of(module_of("k"), "k"), *graph = NULL, *node = NULL;
    CUDA_KERNEL_NODE_PARAMS params = node_of(k);
    use_device(1);
    printf("graph: %d\n", cuGraphCreate(&graph, 0));
    printf("node: %d\n", cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    use_device(0);
    launch(k, BLOCKS, NULL);
}

/* A function that was enumerated, asked about, and then asked for by its name. */
static void enumerated(void) {
    void *module = module_of("k"), *found = NULL;
    int blocks = 0;
    printf("enumerate: %d\n", cuModuleEnumerateFunctions(&found, 1, module));
    printf("occupancy: %d", cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, found, THREADS, 0));
    printf(" %d\n", blocks);
    launch(function_of(module, "k"), BLOCKS, NULL);
}

/* A node that starts before what it depends on has ended. */
static void programmatic(void) {
    void *k = function_of(module_of("k"), "k"), *graph = NULL, *nodes[2] = {NULL, NULL};
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = node_of(k)};
    unsigned char edge[8] = {1, 0, 1}; /* from port 1, a programmatic one; of type 1, programmatic */
    params.kernel.gridDimX = 8;
    printf("graph: %d\n", cuGraphCreate(&graph, 0));
    printf("node: %d\n", cuGraphAddNode_v2(&nodes[0], graph, NULL, NULL, 0, &params));
    params.kernel.gridDimX = BLOCKS;
    printf("node: %d\n", cuGraphAddNode_v2(&nodes[1], graph, nodes, edge, 1, &params));
    printf("set: %d\n", cuGraphKernelNodeSetParams_v2(nodes[1], &params.kernel));
}

/* A node with an attribute that forbids to shape it gets parameters once more. */
static void attribute_of_node(int attribute, unsigned value) {
    void *k = function_of(module_of("k"), "k"), *graph = NULL, *node = NULL;
    CUDA_KERNEL_NODE_PARAMS params = node_of(k);
    CUlaunchAttributeValue set = {.cluster = {value, 1, 1}};
    printf("graph: %d\n", cuGraphCreate(&graph, 0));
    printf("node: %d\n", cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    printf("attribute: %d\n", cuGraphKernelNodeSetAttribute(node, attribute, &set));
    printf("set: %d\n", cuGraphKernelNodeSetParams_v2(node, &params));
}

/* A kernel of a library is launched while a stream captures; its node is looked at. */
static void captured(void) {
    void *library = NULL, *k = NULL, *stream = stream_of(0), *graph = NULL, *nodes[2];
    char *text = ptx_of("k");
    size_t count = 2;
    CUDA_KERNEL_NODE_PARAMS params;
    printf("library: %d\n", cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    printf("kernel: %d\n", cuLibraryGetKernel(&k, library, "k"));
    printf("begin: %d\n", cuStreamBeginCapture_v2(stream, 0));
    launch(k, BLOCKS, stream);
    printf("end: %d\n", cuStreamEndCapture(stream, &graph));
    printf("nodes: %d", cuGraphGetNodes(graph, nodes, &count));
    printf(" %d\n", (int)count);
    printf("params: %d", cuGraphKernelNodeGetParams_v2(nodes[0], &params));
    printf(" %u bytes\n", params.sharedMemBytes);
    free(text);
}

/* Communication of a kernel of a library, captured: is its priority honoured when the graph runs? */
static void captured_communication(void) {
    void *library = NULL, *nccl = NULL, *stream = stream_of(0), *graph = NULL, *executable = NULL;
    char *text = ptx_of(NCCL);
    printf("library: %d\n", cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    printf("kernel: %d\n", cuLibraryGetKernel(&nccl, library, NCCL));
    printf("begin: %d\n", cuStreamBeginCapture_v2(stream, 0));
    launch(nccl, 16, stream);
    printf("end: %d\n", cuStreamEndCapture(stream, &graph));
    printf("instantiate: %d\n", cuGraphInstantiateWithFlags(&executable, graph, 0));
    printf("run: %d\n", cuGraphLaunch(executable, stream));
    free(text);
}

/* A node that is wrong by itself, and then one that is right. */
static void wrong_node(void) {
    void *k = function_of(module_of("k"), "k"), *graph = NULL, *node = NULL;
    CUDA_KERNEL_NODE_PARAMS params = node_of(k);
    printf("graph: %d\n", cuGraphCreate(&graph, 0));
    printf("node: %d\n", cuGraphAddKernelNode_v2(&node, graph, NULL, 1, &params));
    printf("node: %d\n", cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
}

/* The limit of a library's kernel is set by the function of the library's module, and counts for the kernel, too. */
static void function_of_module(int first) {
    void *library = NULL, *module = NULL, *k = NULL, *function = NULL;
    char *text = ptx_of("k");
    printf("library: %d\n", cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    printf("kernel: %d\n", cuLibraryGetKernel(&k, library, "k"));
    if (first)
        launch(k, BLOCKS, NULL);
    printf("module: %d\n", cuLibraryGetModule(&module, library));
    function = function_of(module, "k");
    printf("set: %d\n", cuFuncSetAttribute(function, 8, first ? 110000 : 60000));
    printf("launch: %d\n", cuLaunchKernel(k, BLOCKS, 1, 1, THREADS, 1, 1, first ? 105000 : 0, NULL, parameters, NULL));
    free(text);
}

int main(int count, char **words) {
    const char *asked = count > 1 ? words[1] : "";
    driver_start();
    if (strcmp(asked, "other_device") == 0)
        other_device();
    else if (strcmp(asked, "enumerated") == 0)
        enumerated();
    else if (strcmp(asked, "programmatic") == 0)
        programmatic();
    else if (strcmp(asked, "attribute") == 0)
        attribute_of_node(atoi(words[2]), (unsigned)atoi(words[3]));
    else if (strcmp(asked, "captured") == 0)
        captured();
    else if (strcmp(asked, "captured_communication") == 0)
        captured_communication();
    else if (strcmp(asked, "wrong_node") == 0)
        wrong_node();
    else if (strcmp(asked, "function_of_module") == 0)
        function_of_module(atoi(words[2]));
    fflush(stdout);
    return 0;
}
