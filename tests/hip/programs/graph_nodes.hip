// Nodes of graphs: adds, changes, copies attributes, reads back. One JSON line for every answer; the packets say the rest.
#include <dlfcn.h>
#include <hip/hip_runtime.h>
#include <stdio.h>

#include "kernels.h"

#define GEMM Cijk_Ailk_Bljk_SB_MT64x64x16
#define LARGE Cijk_Ailk_Bljk_SB_MT128x128x16

static int *data;
static void *arguments[] = {&data};
static hipStream_t stream;

static void say(const char *what, hipError_t result, unsigned shown) {
    printf("{\"what\": \"%s\", \"result\": %d, \"last\": %d, \"shown\": %u}\n", what, (int)result,
           (int)hipPeekAtLastError(), shown);
}

static hipKernelNodeParams of(void (*kernel)(int *), unsigned blocks, unsigned dynamic) {
    hipKernelNodeParams params = {dim3(256), NULL, (void *)kernel, dim3(blocks), arguments, dynamic};
    return params;
}

// HIP 5.2 declares it, and does not have it.
static hipError_t set_attribute(hipGraphNode_t node, hipKernelNodeAttrID which, const hipKernelNodeAttrValue *value) {
    void *call = dlsym(RTLD_DEFAULT, "hipGraphKernelNodeSetAttribute");
    return call ? ((decltype(&hipGraphKernelNodeSetAttribute))call)(node, which, value) : hipErrorNotSupported;
}

static void shown(const char *what, hipGraphNode_t node) {
    hipKernelNodeParams params = {};
    const hipError_t result = hipGraphKernelNodeGetParams(node, &params);
    say(what, result, params.sharedMemBytes);
}

static hipGraphExec_t run(hipGraph_t graph, int with_flags) {
    hipGraphExec_t exec = NULL;
    say("instantiate",
        with_flags ? hipGraphInstantiateWithFlags(&exec, graph, 0) : hipGraphInstantiate(&exec, graph, NULL, NULL, 0),
        0);
    if (exec)
        say("launch", hipGraphLaunch(exec, stream), 0);
    hipStreamSynchronize(stream);
    return exec;
}

int main() {
    hipGraph_t graph, outer;
    hipGraphNode_t node, other, child;
    if (hipMalloc(&data, 4096) != hipSuccess || hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) != hipSuccess)
        return 1;
    ncclDevKernel_Generic_2<<<16, 256>>>(data);
    hipDeviceSynchronize();

    hipGraphCreate(&graph, 0);
    hipKernelNodeParams params = of(GEMM, 2101, 64);
    say("add", hipGraphAddKernelNode(&node, graph, NULL, 0, &params), 0);
    params = of(LARGE, 2102, 0);
    say("add", hipGraphAddKernelNode(&other, graph, &node, 1, &params), 0);
    shown("get", node);
    hipGraphExec_t exec = run(graph, 0);
    params = of(GEMM, 2103, 64);
    say("exec set", hipGraphExecKernelNodeSetParams(exec, node, &params), 0);
    say("launch", hipGraphLaunch(exec, stream), 0);
    hipStreamSynchronize(stream);

    // As programs do that change one number; and the same through our own hands, when a node is set back.
    hipGraphKernelNodeGetParams(node, &params);
    params.gridDim.x = 2104;
    say("set", hipGraphKernelNodeSetParams(node, &params), 0);
    shown("get", node);
    hipKernelNodeAttrValue value = {};
    value.cooperative = 1;
    say("attribute", set_attribute(other, hipKernelNodeAttributeCooperative, &value), 0);
    shown("get", other);
    run(graph, 1);
    params = of(LARGE, 2105, 0);
    say("set", hipGraphKernelNodeSetParams(other, &params), 0);
    hipGraphCreate(&outer, 0);
    say("child", hipGraphAddChildGraphNode(&child, outer, NULL, 0, graph), 0);
    run(outer, 1);

    // More than there is, and nonsense.
    params = of(GEMM, 2106, 65536);
    say("too much", hipGraphKernelNodeSetParams(node, &params), 0);
    say("nothing", hipGraphKernelNodeSetParams(node, NULL), 0);
    shown("get", node);
    return hipDeviceSynchronize();
}
