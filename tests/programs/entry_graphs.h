/* Graphs, for entry_recipes.h. */
#pragma once

static CUDA_KERNEL_NODE_PARAMS node_of(CUfunction function, uint32_t blocks) {
    CUDA_KERNEL_NODE_PARAMS params;
    memset(&params, 0, sizeof params);
    params.func = function;
    params.gridDimX = blocks;
    params.blockDimX = THREADS;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = parameters;
    return params;
}
static CUgraphNodeParams any_of(CUfunction function, uint32_t blocks) {
    CUgraphNodeParams any;
    memset(&any, 0, sizeof any);
    any.kernel = node_of(function, blocks);
    return any;
}
static CUgraphNode add(CUfunction function, uint32_t blocks) {
    const CUDA_KERNEL_NODE_PARAMS params = node_of(function, blocks);
    CUgraphNode made = NULL;
    printf("added: %d\n", cuGraphAddKernelNode_v2(&made, graph, NULL, 0, &params));
    return made;
}
static CUgraphExec instantiate(void) {
    CUgraphExec exec = NULL;
    printf("instantiated: %d\n", cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}
static void run(CUgraphExec exec) {
    printf("run: %d\n", cuGraphLaunch(exec, stream));
}

/* After a node of computation and one of communication were added. */
#define ADD(name, kind, make, ...)                                                                                     \
    static void recipe_##name(type_##name *call) {                                                                     \
        CUgraphNode one = NULL, two = NULL, bad = NULL;                                                                \
        kind first = make(k, BIG), second = make(comm, 16), wrong = make(k, 0);                                        \
        printf("%d", call(&one, graph, NULL, __VA_ARGS__, &first));                                                    \
        printf(" %d", call(&two, graph, &one, __VA_ARGS__ + 1, &second));                                              \
        printf(" %d\n", call(&bad, graph, NULL, __VA_ARGS__, &wrong));                                                 \
        print_node(one);                                                                                               \
        print_node(two);                                                                                               \
        run(instantiate());                                                                                            \
    }
ADD(cuGraphAddKernelNode, CUDA_KERNEL_NODE_PARAMS, node_of, 0)
ADD(cuGraphAddKernelNode_v2, CUDA_KERNEL_NODE_PARAMS, node_of, 0)
ADD(cuGraphAddNode, CUgraphNodeParams, any_of, 0)
ADD(cuGraphAddNode_v2, CUgraphNodeParams, any_of, NULL, 0)

#define SET(name, kind, make)                                                                                          \
    static void recipe_##name(type_##name *call) {                                                                     \
        CUgraphNode node = add(k, 10);                                                                                 \
        kind big = make(k, BIG), wrong = make(k, 0);                                                                   \
        printf("%d", call(node, &big));                                                                                \
        printf(" %d\n", call(node, &wrong));                                                                           \
        print_node(node);                                                                                              \
    }
SET(cuGraphKernelNodeSetParams, CUDA_KERNEL_NODE_PARAMS, node_of)
SET(cuGraphKernelNodeSetParams_v2, CUDA_KERNEL_NODE_PARAMS, node_of)
SET(cuGraphNodeSetParams, CUgraphNodeParams, any_of)

#define EXEC_SET(name, kind, make)                                                                                     \
    static void recipe_##name(type_##name *call) {                                                                     \
        CUgraphNode node = add(k, 10);                                                                                 \
        CUgraphExec exec = instantiate();                                                                              \
        kind big = make(k, BIG), wrong = make(k, 0);                                                                   \
        printf("%d", call(exec, node, &big));                                                                          \
        printf(" %d\n", call(exec, node, &wrong));                                                                     \
        run(exec);                                                                                                     \
    }
EXEC_SET(cuGraphExecKernelNodeSetParams, CUDA_KERNEL_NODE_PARAMS, node_of)
EXEC_SET(cuGraphExecKernelNodeSetParams_v2, CUDA_KERNEL_NODE_PARAMS, node_of)
EXEC_SET(cuGraphExecNodeSetParams, CUgraphNodeParams, any_of)

#define GET(name)                                                                                                      \
    static void recipe_##name(type_##name *call) {                                                                     \
        CUDA_KERNEL_NODE_PARAMS shown = {0};                                                                           \
        CUgraphNode node = add(k, BIG);                                                                                \
        printf("%d", call(node, &shown));                                                                              \
        printf(" %u blocks, %u bytes, %d\n", shown.gridDimX, shown.sharedMemBytes, call(NULL, &shown));                \
        print_node(node);                                                                                              \
    }
GET(cuGraphKernelNodeGetParams)
GET(cuGraphKernelNodeGetParams_v2)

static void recipe_cuGraphKernelNodeSetAttribute(type_cuGraphKernelNodeSetAttribute *call) {
    const CUlaunchAttributeValue clusters = {.cluster = {2, 1, 1}};
    CUgraphNode node = add(k, BIG);
    print_node(node);
    printf("%d", call(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &clusters));
    printf(" %d\n", call(node, 999, &clusters));
    printf("after: ");
    print_node(node);
    run(instantiate());
}
static void recipe_cuGraphKernelNodeCopyAttributes(type_cuGraphKernelNodeCopyAttributes *call) {
    const CUlaunchAttributeValue clusters = {.cluster = {2, 1, 1}};
    CUgraphNode from = add(k, 100), to = add(k, BIG);
    print_node(to);
    printf("%d", cuGraphKernelNodeSetAttribute(from, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &clusters));
    printf(" %d\n", call(to, from));
    printf("after: ");
    print_node(to);
    run(instantiate());
}

static void recipe_cuGraphAddDependencies_v2(type_cuGraphAddDependencies_v2 *call) {
    const CUgraphEdgeData early = {.from_port = 1, .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    CUgraphNode from = add(leave, 100), to = add(k, BIG), other = add(k, BIG);
    print_node(to);
    printf("%d", call(graph, &from, &to, &early, 1));
    printf(" %d", call(graph, &from, &other, NULL, 1));
    printf(" %d\n", call(graph, NULL, NULL, NULL, 1));
    printf("after: ");
    print_node(to);
    print_node(other);
    run(instantiate());
}

static void recipe_cuGraphInstantiate(type_cuGraphInstantiate *call) {
    CUgraphExec exec = NULL;
    CUgraphNode bad = NULL;
    char log[16] = "";
    add(comm, 16);
    printf("%d\n", call(&exec, graph, &bad, log, sizeof log));
    run(exec);
}
static void recipe_cuGraphInstantiate_v2(type_cuGraphInstantiate_v2 *call) {
    recipe_cuGraphInstantiate(call);
}
static void recipe_cuGraphInstantiateWithFlags(type_cuGraphInstantiateWithFlags *call) {
    CUgraphExec exec = NULL;
    add(comm, 16);
    printf("%d", call(&exec, graph, 0));
    printf(" %d\n", call(&exec, graph, 1 << 20));
    run(exec);
}
static void recipe_cuGraphInstantiateWithParams(type_cuGraphInstantiateWithParams *call) {
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0, NULL, NULL, -1};
    CUgraphExec exec = NULL;
    add(comm, 16);
    printf("%d", call(&exec, graph, &params));
    printf(", flags %d, result %d\n", (int)params.flags, params.result_out);
    run(exec);
}
static void recipe_cuGraphInstantiateWithParams_ptsz(type_cuGraphInstantiateWithParams_ptsz *call) {
    recipe_cuGraphInstantiateWithParams(call);
}

/* A graph with communication at the priority that it would have without us. */
static CUgraph without_priority(void) {
    const CUlaunchAttributeValue none = {.priority = 0};
    const CUgraph before = graph;
    printf("created: %d\n", cuGraphCreate(&graph, 0));
    printf("%d\n", cuGraphKernelNodeSetAttribute(add(comm, 16), PRIORITY, &none));
    const CUgraph made = graph;
    graph = before;
    return made;
}
static void recipe_cuGraphExecUpdate(type_cuGraphExecUpdate *call) {
    CUgraphNode bad = NULL;
    int outcome = -1;
    add(comm, 16);
    CUgraphExec exec = instantiate();
    printf("%d", call(exec, without_priority(), &bad, &outcome));
    printf(", outcome %d, %s\n", outcome, bad ? "a node" : "no node");
    run(exec);
}
static void recipe_cuGraphExecUpdate_v2(type_cuGraphExecUpdate_v2 *call) {
    CUgraphExecUpdateResultInfo info = {-1, NULL, NULL};
    add(comm, 16);
    CUgraphExec exec = instantiate();
    printf("%d", call(exec, without_priority(), &info));
    printf(", outcome %d, %s\n", info.result, info.errorNode || info.errorFromNode ? "a node" : "no node");
    run(exec);
}
static void recipe_cuGraphExecChildGraphNodeSetParams(type_cuGraphExecChildGraphNodeSetParams *call) {
    const CUgraph inside = graph;
    CUgraphNode node = NULL;
    add(comm, 16);
    printf("created: %d\n", cuGraphCreate(&graph, 0));
    printf("child: %d\n", cuGraphAddChildGraphNode(&node, graph, NULL, 0, inside));
    CUgraphExec exec = instantiate();
    printf("%d\n", call(exec, node, without_priority()));
    run(exec);
}
static void recipe_cuGraphExecGetFlags(type_cuGraphExecGetFlags *call) {
    uint64_t flags = 99;
    add(comm, 16);
    printf("%d", call(instantiate(), &flags));
    printf(", flags %d\n", (int)flags);
}
static void recipe_cuGraphExecDestroy(type_cuGraphExecDestroy *call) {
    add(comm, 16);
    printf("%d", call(instantiate()));
    printf(" %d\n", call(NULL));
}
static void recipe_cuGraphLaunch(type_cuGraphLaunch *call) {
    add(leave, BIG);
    CUgraphExec exec = instantiate();
    printf("%d", call(exec, stream));
    printf(" %d\n", call(NULL, stream));
}
static void recipe_cuGraphLaunch_ptsz(type_cuGraphLaunch_ptsz *call) {
    recipe_cuGraphLaunch(call);
}
