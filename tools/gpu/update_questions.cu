// Executable graphs that honour priorities of nodes: what an update refuses, and what it leaves behind; at which priority nodes
// run; which flags the program reads back; and attributes of nodes whose kernel may ask for less by now. One JSON line an answer.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 update_questions.cu -o update_questions -lcuda
//   nvcc -cubin -arch=sm_90 question_kernels.cu -o question_kernels.cubin
//   ./update_questions shown|flags|runs|update|child|limit question_kernels.cubin       each in a process of its own
#include "questions.h"

#include <cudaTypedefs.h>

#include <algorithm>
#include <chrono>

static PFN_cuGraphExecUpdate_v10020 update_v1;
static CUmodule module;
static CUfunction sizes, hold, mark;
static CUdeviceptr out;
static unsigned long long *marks;
static CUstream at[3]; // of priorities 0, -2, -5
static const int PRIORITIES[] = {0, -2, -5};
static const unsigned long long FLAG = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

struct Node {
    int priority;
    unsigned dynamic = 0;
    bool set = true;
};

static int shown(CUgraphNode node) {
    CUlaunchAttributeValue value = {};
    CUresult result = cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    return result == CUDA_SUCCESS ? value.priority : 1000 + (int)result;
}

static CUresult put(CUgraphNode node, int priority) {
    CUlaunchAttributeValue value = {};
    value.priority = priority;
    return cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}

// Kernel nodes that depend on nothing; each writes the dynamic size that it ran with.
static CUgraph graph_of(std::vector<Node> nodes, std::vector<CUgraphNode> *made = nullptr) {
    CUgraph graph;
    MUST(cuGraphCreate(&graph, 0));
    for (size_t i = 0; i < nodes.size(); i++) {
        CUdeviceptr to = out + 8 * i;
        void *parameters[] = {&to};
        CUDA_KERNEL_NODE_PARAMS params = {};
        params.func = sizes;
        params.gridDimX = params.gridDimY = params.gridDimZ = 1;
        params.blockDimX = 32;
        params.blockDimY = params.blockDimZ = 1;
        params.sharedMemBytes = nodes[i].dynamic;
        params.kernelParams = parameters;
        CUgraphNode node;
        MUST(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
        if (nodes[i].set)
            MUST(put(node, nodes[i].priority));
        if (made)
            made->push_back(node);
    }
    return graph;
}

static CUgraphExec exec_of(CUgraph graph, unsigned long long flags) {
    CUgraphExec executable;
    MUST(cuGraphInstantiate(&executable, graph, flags));
    return executable;
}

// The dynamic sizes that the nodes of a graph ran with.
static std::string ran(CUgraphExec executable) {
    unsigned got[8] = {};
    MUST(cuMemsetD32(out, 0, 8));
    CUresult result = cuGraphLaunch(executable, at[0]);
    MUST(cuCtxSynchronize());
    MUST(cuMemcpyDtoH(got, out, sizeof got));
    return number("launch", result) + "," + number("ran_0", got[0]) + "," + number("ran_1", got[2]) + "," +
           number("ran_2", got[4]);
}

static int place(const std::vector<CUgraphNode> &nodes, CUgraphNode node) {
    if (!node)
        return -1;
    auto found = std::find(nodes.begin(), nodes.end(), node);
    return found == nodes.end() ? 99 : (int)(found - nodes.begin());
}

static double now_us() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* ---- shown: the priority of a node, captured or added ---- */

static void ask_shown() {
    for (int i = 0; i < 3; i++)
        for (int own : {99, -5, 0}) { // 99: no attribute of the launch
            CUgraph graph;
            CUgraphNode node;
            size_t count = 1;
            MUST(cuStreamBeginCapture(at[i], CU_STREAM_CAPTURE_MODE_RELAXED));
            MUST(launch(sizes, 1, 32, 0, at[i],
                        own == 99 ? std::vector<CUlaunchAttribute>{}
                                  : std::vector<CUlaunchAttribute>{priority_of(own)}));
            MUST(cuStreamEndCapture(at[i], &graph));
            MUST(cuGraphGetNodes(graph, &node, &count));
            answer("captured", CUDA_SUCCESS,
                   number("stream", PRIORITIES[i]) + "," + number("launch", own) + "," + number("shown", shown(node)));
        }
    std::vector<CUgraphNode> nodes;
    graph_of({{0, 0, false}, {0}}, &nodes);
    answer("added", CUDA_SUCCESS, number("shown", shown(nodes[0])));
    for (int asked : {-2, -5, -6, -100, 1, 100}) {
        CUresult result = put(nodes[1], asked);
        answer("set", result, number("asked", asked) + "," + number("shown", shown(nodes[1])));
    }
}

/* ---- flags ---- */

static void ask_flags() {
    for (unsigned long long asked : {0ull, FLAG, 1ull, 1ull | FLAG}) {
        cuuint64_t flags = 99;
        CUgraphExec executable = exec_of(graph_of({{0}, {-5}}), asked);
        CUresult result = cuGraphExecGetFlags(executable, &flags);
        answer("cuGraphExecGetFlags", result,
               number("asked", (long long)asked) + "," + number("flags", (long long)flags));
    }
}

/* ---- runs: how long a node waits behind 20 waves of blocks of the least priority ---- */

static CUgraph graph_that_marks(int priority) {
    unsigned long long nanoseconds = 1000, *to = marks;
    void *parameters[] = {&nanoseconds, &to};
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = mark;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = parameters;
    CUgraph graph;
    CUgraphNode node;
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    MUST(put(node, priority));
    return graph;
}

static long long waits(CUgraphExec executable, CUstream stream, CUstream behind) {
    std::vector<double> samples;
    for (int i = 0; i < 5; i++) {
        unsigned long long nanoseconds = 100000;
        void *parameters[] = {&nanoseconds};
        marks[0] = marks[1] = 0;
        MUST(
            cuLaunchKernel(hold, (unsigned)multiprocessors * 2 * 20, 1, 1, 1024, 1, 1, 0, behind, parameters, nullptr));
        double start = now_us();
        while (now_us() - start < 300)
            ;
        MUST(cuGraphLaunch(executable, stream));
        start = now_us();
        while (((volatile unsigned long long *)marks)[1] == 0)
            ;
        samples.push_back(now_us() - start);
        MUST(cuCtxSynchronize());
    }
    std::sort(samples.begin(), samples.end());
    return (long long)samples[2];
}

static void ask_runs() {
    CUstream behind;
    MUST(cuStreamCreateWithPriority(&behind, CU_STREAM_NON_BLOCKING, 0));
    for (unsigned long long flags : {0ull, FLAG})
        for (int node : {0, -5})
            for (int i : {0, 2}) {
                CUgraphExec executable = exec_of(graph_that_marks(node), flags);
                answer("waited", CUDA_SUCCESS,
                       number("flags", (long long)flags) + "," + number("node", node) + "," +
                           number("stream", PRIORITIES[i]) + "," +
                           number("waited_us", waits(executable, at[i], behind)));
            }
}

/* ---- update ---- */

static void ask_update() {
    struct Case {
        const char *name;
        std::vector<Node> before, after;
    };
    const std::vector<Case> cases = {
        {"the second priority", {{0, 100}, {0, 100}, {0, 100}}, {{0, 200}, {-5, 200}, {0, 200}}},
        {"two priorities", {{0, 100}, {-5, 100}, {-5, 100}}, {{0, 200}, {0, 200}, {0, 200}}},
        {"the last one", {{-5, 100}, {0, 100}, {0, 100}}, {{-5, 200}, {0, 200}, {-2, 200}}},
        {"both clamped to the same", {{-5, 100}, {0, 100}, {0, 100}}, {{-100, 200}, {0, 200}, {0, 200}}},
        {"a node more and a priority", {{-5, 100}, {0, 100}}, {{0, 200}, {0, 200}, {0, 200}}},
    };
    for (const Case &c : cases)
        for (unsigned long long flags : {0ull, FLAG})
            for (bool first : {false, true}) {
                std::vector<CUgraphNode> nodes;
                CUgraphExec executable = exec_of(graph_of(c.before), flags);
                CUgraph changed = graph_of(c.after, &nodes);
                CUgraphExecUpdateResultInfo info = {};
                CUgraphNode wrong = nullptr;
                CUgraphExecUpdateResult outcome = CU_GRAPH_EXEC_UPDATE_ERROR;
                auto update = [&] {
                    CUresult result = first ? update_v1(executable, changed, &wrong, &outcome)
                                            : cuGraphExecUpdate(executable, changed, &info);
                    return result;
                };
                std::string name = std::string(first ? "v1, " : "v2, ") + c.name;
                auto told = [&](CUresult result) {
                    answer(name, result,
                           number("flags", (long long)flags) + "," +
                               number("outcome", first ? (int)outcome : (int)info.result) + "," +
                               number("node", place(nodes, first ? wrong : info.errorNode)) + "," +
                               number("from", first ? -1 : place(nodes, info.errorFromNode)) + "," + ran(executable));
                };
                told(update());
                // As it was made: does it take that after it has failed?
                for (size_t i = 0; i < c.before.size() && c.before.size() == c.after.size(); i++)
                    MUST(put(nodes[i], c.before[i].priority));
                name += ", priorities as before";
                told(update());
            }
}

/* ---- child: the graph of a child node ---- */

static void ask_child() {
    for (unsigned long long flags : {0ull, FLAG})
        for (int priority : {0, -5}) {
            CUgraph outer, changed;
            CUgraphNode holder, other;
            std::vector<CUgraphNode> nodes;
            CUgraph inside = graph_of({{0, 200}, {priority, 200}}, &nodes), inner;
            MUST(cuGraphCreate(&outer, 0));
            MUST(cuGraphAddChildGraphNode(&holder, outer, nullptr, 0, graph_of({{0, 100}, {0, 100}})));
            CUgraphExec executable = exec_of(outer, flags);
            std::string more = number("flags", (long long)flags) + "," + number("priority", priority) + ",";
            CUresult result = cuGraphExecChildGraphNodeSetParams(executable, holder, inside);
            answer("cuGraphExecChildGraphNodeSetParams", result, more + ran(executable));
            CUgraphNodeParams params = {};
            params.type = CU_GRAPH_NODE_TYPE_GRAPH;
            params.graph.graph = inside;
            result = cuGraphExecNodeSetParams(executable, holder, &params);
            answer("cuGraphExecNodeSetParams", result, more + ran(executable));
            MUST(cuGraphCreate(&changed, 0));
            MUST(cuGraphAddChildGraphNode(&other, changed, nullptr, 0, inside));
            MUST(cuGraphChildGraphNodeGetGraph(other, &inner));
            std::vector<CUgraphNode> in(2);
            size_t count = 2;
            MUST(cuGraphGetNodes(inner, in.data(), &count));
            CUgraphExecUpdateResultInfo info = {};
            result = cuGraphExecUpdate(executable, changed, &info);
            answer("cuGraphExecUpdate", result,
                   more + number("outcome", info.result) + "," + number("node", place(in, info.errorNode)) + "," +
                       number("is_holder", info.errorNode == other) + "," + ran(executable));
            result = put(in[1], 0);
            answer("set inside", result, number("shown", shown(in[1])));
            result = cuGraphExecUpdate(executable, changed, &info);
            answer("cuGraphExecUpdate, set inside", result,
                   more + number("outcome", info.result) + "," + ran(executable));
        }
}

/* ---- limit: the kernel of a node may ask for less by now ---- */

static void ask_limit() {
    CUgraphNode node;
    std::vector<CUgraphNode> nodes, small;
    MUST(cuFuncSetAttribute(sizes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    CUgraph graph = graph_of({{0, 60000}}, &nodes);
    graph_of({{-3, 100}}, &small);
    CUgraphExec executable = exec_of(graph, 0);
    MUST(cuFuncSetAttribute(sizes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000));
    node = nodes[0];
    CUlaunchAttributeValue value = {};
    CUresult result = put(node, -2);
    answer("set a priority", result, number("shown", shown(node)));
    value.clusterDim = {1, 1, 1};
    answer("set a cluster", cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    value = {};
    value.cooperative = 1;
    answer("set cooperative", cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    result = cuGraphKernelNodeCopyAttributes(node, small[0]);
    answer("copy attributes", result, number("shown", shown(node)));
    CUDA_KERNEL_NODE_PARAMS params = {};
    result = cuGraphKernelNodeGetParams(node, &params);
    answer("get", result, number("dynamic", params.sharedMemBytes));
    answer("set what was got", cuGraphKernelNodeSetParams(node, &params));
    answer("exec set what was got", cuGraphExecKernelNodeSetParams(executable, node, &params));
    CUgraphExecUpdateResultInfo info = {};
    result = cuGraphExecUpdate(executable, graph, &info);
    answer("update", result, number("outcome", info.result));
    answer("run", CUDA_SUCCESS, ran(executable));
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: update_questions QUESTION CUBIN\n");
        return 2;
    }
    begin(argv[1], argv[2]);
    CUdriverProcAddressQueryResult found;
    MUST(cuGetProcAddress("cuGraphExecUpdate", (void **)&update_v1, 11000, CU_GET_PROC_ADDRESS_DEFAULT, &found));
    module = load();
    sizes = function_of(module, "dynamic_size");
    hold = function_of(module, "hold_place");
    mark = function_of(module, "mark_time");
    MUST(cuMemAlloc(&out, 256));
    MUST(cuMemHostAlloc((void **)&marks, 64, 0));
    for (int i = 0; i < 3; i++)
        MUST(cuStreamCreateWithPriority(&at[i], CU_STREAM_NON_BLOCKING, PRIORITIES[i]));
    const struct {
        const char *name;
        void (*ask)();
    } questions[] = {{"shown", ask_shown},   {"flags", ask_flags}, {"runs", ask_runs},
                     {"update", ask_update}, {"child", ask_child}, {"limit", ask_limit}};
    for (const auto &asked : questions)
        if (question == asked.name)
            asked.ask();
    return 0;
}
