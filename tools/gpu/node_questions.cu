// Kernel nodes of graphs, by every way and version of the driver's calls: what the program reads back, what is refused, and
// what runs. One JSON line an answer; kernel_got (dynamic bytes that it ran with) and kernel_early (it started long before
// the end of a grid that was there first) alone may differ behind the library.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 node_questions.cu -o node_questions -lcuda
//   nvcc -cubin -arch=sm_90 question_kernels.cu -o question_kernels.cubin
//   ./node_questions ways|communication|attributes|changes|launches question_kernels.cubin       each in a process of its own
#include "questions.h"

#include <cudaTypedefs.h>
#include <unistd.h>

// The older forms, which the names of today's headers do not reach.
static PFN_cuGraphAddKernelNode_v10000 add_v1;
static PFN_cuGraphKernelNodeGetParams_v10000 get_v1;
static PFN_cuGraphKernelNodeSetParams_v10000 set_v1;
static PFN_cuGraphExecKernelNodeSetParams_v10010 exec_set_v1;
static PFN_cuGraphAddNode_v12020 add_generic_v1;
static PFN_cuGraphAddDependencies_v10000 add_dependencies_v1;
static CUresult (*instantiate_log)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);

static void older(const char *name, int version, void *to) {
    CUdriverProcAddressQueryResult found;
    MUST(cuGetProcAddress(name, (void **)to, version, CU_GET_PROC_ADDRESS_DEFAULT, &found));
}

static CUfunction function;
static CUkernel kernel;
static CUstream stream, beside;
static CUdeviceptr out;
static void *parameters[] = {&out};

/* ---- Ways to add and to change a node ---- */

enum Way { V1, V2, KERNEL, GENERIC, GENERIC_EDGES, CAPTURED, TO_GRAPH };
static const char *const WAYS[] = {"v1", "v2", "v2, CUkernel", "generic", "generic, edges", "captured", "to a graph"};
static const Way EVERY[] = {V1, V2, KERNEL, GENERIC, GENERIC_EDGES, CAPTURED, TO_GRAPH};

struct Wanted {
    unsigned dynamic;
    unsigned blocks = 8192;
    void **arguments = parameters;
    CUfunction of = function;
    CUkernel of_kernel = kernel;
};

static CUDA_KERNEL_NODE_PARAMS params_of(Way way, const Wanted &w) {
    CUDA_KERNEL_NODE_PARAMS params = {};
    if (way == KERNEL)
        params.kern = w.of_kernel;
    else
        params.func = w.of;
    params.gridDimX = w.blocks;
    params.blockDimX = 128;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.sharedMemBytes = w.dynamic;
    params.kernelParams = w.arguments;
    return params;
}

static CUDA_KERNEL_NODE_PARAMS_v1 older_params(const CUDA_KERNEL_NODE_PARAMS &params) {
    CUDA_KERNEL_NODE_PARAMS_v1 old;
    memcpy(&old, &params, sizeof old);
    return old;
}

static CUgraphNodeParams generic_params(const CUDA_KERNEL_NODE_PARAMS &params) {
    CUgraphNodeParams generic = {};
    generic.type = CU_GRAPH_NODE_TYPE_KERNEL;
    memcpy(&generic.kernel, &params, sizeof params);
    return generic;
}

static CUresult add(Way way, CUgraphNode *node, CUgraph graph, const Wanted &w) {
    CUDA_KERNEL_NODE_PARAMS params = params_of(way, w);
    CUDA_KERNEL_NODE_PARAMS_v1 old = older_params(params);
    CUgraphNodeParams generic = generic_params(params);
    if (way == V1)
        return add_v1(node, graph, nullptr, 0, &old);
    if (way == V2 || way == KERNEL)
        return cuGraphAddKernelNode(node, graph, nullptr, 0, &params);
    if (way == GENERIC)
        return add_generic_v1(node, graph, nullptr, 0, &generic);
    if (way == GENERIC_EDGES)
        return cuGraphAddNode(node, graph, nullptr, nullptr, 0, &generic);
    MUST(cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUresult made = cuLaunchKernel(w.of, w.blocks, 1, 1, 128, 1, 1, w.dynamic, stream, w.arguments, nullptr);
    CUresult end = cuStreamEndCapture(stream, &graph);
    size_t count = 1;
    if (made == CUDA_SUCCESS && end == CUDA_SUCCESS)
        MUST(cuGraphGetNodes(graph, node, &count));
    return made;
}

// A graph with one node. That of CAPTURED is the capture's own.
static CUgraph graph_of(Way way, CUgraphNode *node, const Wanted &w, const std::string &what) {
    CUgraph graph = nullptr;
    if (way == CAPTURED) {
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        CUresult made = cuLaunchKernel(w.of, w.blocks, 1, 1, 128, 1, 1, w.dynamic, stream, w.arguments, nullptr);
        CUresult end = cuStreamEndCapture(stream, &graph);
        size_t count = 1;
        answer("add: " + what, made, "\"end\":\"" + name_of(end) + "\"");
        if (graph)
            MUST(cuGraphGetNodes(graph, node, &count));
        return made == CUDA_SUCCESS ? graph : nullptr;
    }
    MUST(cuGraphCreate(&graph, 0));
    CUresult made = add(way, node, graph, w);
    answer("add: " + what, made);
    return made == CUDA_SUCCESS ? graph : nullptr;
}

static CUresult set(Way way, CUgraphNode node, const Wanted &w) {
    CUDA_KERNEL_NODE_PARAMS params = params_of(way, w);
    CUDA_KERNEL_NODE_PARAMS_v1 old = older_params(params);
    CUgraphNodeParams generic = generic_params(params);
    if (way == V1)
        return set_v1(node, &old);
    return way == GENERIC || way == GENERIC_EDGES ? cuGraphNodeSetParams(node, &generic)
                                                  : cuGraphKernelNodeSetParams(node, &params);
}

static CUresult exec_set(Way way, CUgraphExec executable, CUgraphNode node, const Wanted &w) {
    CUDA_KERNEL_NODE_PARAMS params = params_of(way, w);
    CUDA_KERNEL_NODE_PARAMS_v1 old = older_params(params);
    CUgraphNodeParams generic = generic_params(params);
    if (way == V1)
        return exec_set_v1(executable, node, &old);
    return way == GENERIC || way == GENERIC_EDGES ? cuGraphExecNodeSetParams(executable, node, &generic)
                                                  : cuGraphExecKernelNodeSetParams(executable, node, &params);
}

/* ---- Forms of instantiation, what is shown, what ran ---- */

static const char *const FORMS[] = {"with a log", "flags 0", "params", "flags for priorities"};

static CUresult instantiate(int form, CUgraph graph, CUgraphExec *executable) {
    CUgraphNode wrong = nullptr;
    char log[64] = "";
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
    if (form == 0)
        return instantiate_log(executable, graph, &wrong, log, sizeof log);
    if (form == 2) {
        CUresult result = cuGraphInstantiateWithParams(executable, graph, &params);
        answer("params of instantiation", (CUresult)params.result_out, number("flags", (long long)params.flags));
        return result;
    }
    return cuGraphInstantiate(executable, graph, form == 3 ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0);
}

static std::string got() {
    unsigned sizes[2] = {};
    CUresult result = cuCtxSynchronize();
    MUST(cuMemcpyDtoH(sizes, out, 8));
    MUST(cuMemsetD32(out, 0, 2));
    MUST(cuCtxSynchronize()); // the next one runs on a stream that waits for nothing
    return "\"synchronise\":\"" + name_of(result) + "\"," + number("ran", sizes[1] != 0) + "," +
           number("kernel_got", sizes[0]);
}

static void run(const std::string &what, CUgraphExec executable) {
    CUresult result = cuGraphLaunch(executable, stream);
    answer("run: " + what, result, got());
}

static void make_and_run(const std::string &what, CUgraph graph, int form = 1) {
    CUgraphExec executable = nullptr;
    CUresult made = instantiate(form, graph, &executable);
    answer("instantiate: " + what, made);
    if (made != CUDA_SUCCESS)
        return;
    run(what, executable);
    MUST(cuGraphExecDestroy(executable));
}

static int priority_shown(CUgraphNode node) {
    CUlaunchAttributeValue value = {};
    CUresult result = cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    return result == CUDA_SUCCESS ? value.priority : 1000 + (int)result;
}

static void shown(const std::string &what, CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS back = {};
    CUDA_KERNEL_NODE_PARAMS_v1 old = {};
    CUresult result = cuGraphKernelNodeGetParams(node, &back), of_old = get_v1(node, &old);
    answer("shown: " + what, result,
           number("old_code", of_old) + "," + number("dynamic", back.sharedMemBytes) + "," +
               number("old_dynamic", old.sharedMemBytes) + "," + number("blocks", back.gridDimX) + "," +
               number("func", back.func == function) + "," + number("kern", back.kern == kernel) + "," +
               number("priority", priority_shown(node)));
}

static void ask_ways() {
    for (Way way : EVERY) {
        std::string name = WAYS[way];
        CUgraphNode node = nullptr;
        CUgraph graph = graph_of(way, &node, {1000}, name);
        if (!graph)
            continue;
        shown(name, node);
        for (int form = 0; form < 4; form++)
            make_and_run(name + ", " + FORMS[form], graph, form);
        answer("set 2000: " + name, set(way, node, {2000}));
        shown("set 2000: " + name, node);
        CUgraphExec executable;
        MUST(cuGraphInstantiate(&executable, graph, 0));
        run("set 2000: " + name, executable);
        for (unsigned dynamic : {3000u, 49152u, 49153u, 500000u, 16u}) {
            answer("exec set: " + name, exec_set(way, executable, node, {dynamic}), number("dynamic", dynamic));
            run("exec set: " + name, executable);
        }
        for (unsigned dynamic : {49152u, 49153u, 500000u, 24u}) {
            answer("set: " + name, set(way, node, {dynamic}), number("dynamic", dynamic));
            shown("set: " + name, node);
        }
        CUDA_KERNEL_NODE_PARAMS back = {};
        CUDA_KERNEL_NODE_PARAMS_v1 old = {};
        MUST(cuGraphKernelNodeGetParams(node, &back));
        MUST(get_v1(node, &old));
        answer("set as read: " + name, cuGraphKernelNodeSetParams(node, &back));
        answer("set as read, v1: " + name, set_v1(node, &old));
        answer("exec set as read: " + name, cuGraphExecKernelNodeSetParams(executable, node, &back));
        answer("exec set as read, v1: " + name, exec_set_v1(executable, node, &old));
        run("exec set as read: " + name, executable);
        shown("set as read: " + name, node);
        for (unsigned dynamic : {49153u, 500000u}) {
            CUgraphNode refused = nullptr;
            CUgraph more;
            MUST(cuGraphCreate(&more, 0));
            if (way < CAPTURED)
                answer("add: " + name, add(way, &refused, more, {dynamic}), number("dynamic", dynamic));
        }
    }
}

/* ---- Communication ---- */

struct Ran {
    unsigned long long start, end;
    unsigned operation, multiprocessor;
};

static void ask_communication() {
    enum { MOST = 16384 };
    CUfunction long_one = function_of(load(), "k");
    CUmodule module = load();
    CUfunction communication = function_of(module, "ncclDevKernel_of_windows");
    CUdeviceptr ran, count;
    MUST(cuMemAlloc(&ran, MOST * sizeof(Ran)));
    MUST(cuMemAlloc(&count, 4));
    unsigned most = MOST, first = 1, second = 2;
    unsigned long long time = 100000, little = 5000;
    void *of_long[] = {&ran, &count, &most, &first, &time}, *of_short[] = {&ran, &count, &most, &second, &little};
    CUlibrary library;
    CUkernel as_kernel;
    MUST(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    MUST(cuLibraryGetKernel(&as_kernel, library, "ncclDevKernel_of_windows"));
    auto early = [&](CUgraphExec executable) {
        std::vector<Ran> rows(MOST);
        unsigned number_of = 0;
        MUST(cuMemsetD32(count, 0, 1));
        MUST(cuGraphUpload(executable, beside));
        MUST(cuCtxSynchronize());
        MUST(cuLaunchKernel(long_one, (unsigned)multiprocessors * 60, 1, 1, 1024, 1, 1, 0, stream, of_long, nullptr));
        usleep(600);
        CUresult result = cuGraphLaunch(executable, beside);
        MUST(cuCtxSynchronize());
        MUST(cuMemcpyDtoH(&number_of, count, 4));
        MUST(cuMemcpyDtoH(rows.data(), ran, MOST * sizeof(Ran)));
        unsigned long long end = 0, start = 0;
        unsigned blocks = 0;
        for (unsigned i = 0; i < number_of && i < MOST; i++) {
            end = rows[i].operation == first && rows[i].end > end ? rows[i].end : end;
            start = rows[i].operation == second && rows[i].start > start ? rows[i].start : start;
            blocks += rows[i].operation == second;
        }
        answer("run beside a long grid", result,
               number("blocks", blocks) + "," + number("kernel_early", start + 1000000 < end));
    };
    MUST(cuLaunchKernel(communication, 4, 1, 1, 128, 1, 1, 0, beside, of_short, nullptr));
    MUST(cuCtxSynchronize());
    for (Way way : EVERY)
        for (int form = 0; form < 4; form++) {
            std::string name = std::string(WAYS[way]) + ", " + FORMS[form];
            CUgraphNode node = nullptr;
            CUgraph graph = graph_of(way, &node, {0, 4, of_short, communication, as_kernel}, name);
            CUgraphExec executable = nullptr;
            CUresult made = graph ? instantiate(form, graph, &executable) : CUDA_ERROR_UNKNOWN;
            answer("instantiate: " + name, made);
            if (made == CUDA_SUCCESS)
                early(executable);
            if (graph)
                answer("priority: " + name, CUDA_SUCCESS, number("kernel_priority", priority_shown(node)));
        }
    // The program's own priority, set by itself.
    CUgraphNode node, child;
    CUgraph graph = graph_of(V2, &node, {0, 4, of_short, communication, as_kernel}, "its own priority"), outer;
    CUgraphExec executable;
    CUlaunchAttributeValue value = {};
    for (int priority : {-2, 0, -5}) {
        value.priority = priority;
        CUresult result = cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
        answer("set priority", result, number("asked", priority) + "," + number("read", priority_shown(node)));
    }
    MUST(cuGraphCreate(&outer, 0));
    answer("as a child", cuGraphAddChildGraphNode(&child, outer, nullptr, 0, graph));
    MUST(cuGraphInstantiate(&executable, outer, 0));
    early(executable);
    answer("exec set", exec_set(V2, executable, node, {0, 4, of_short, communication, as_kernel}));
    CUgraphExecUpdateResultInfo info = {};
    MUST(cuGraphInstantiate(&executable, graph, 0));
    CUgraph again = graph_of(V2, &node, {0, 8, of_short, communication, as_kernel}, "for an update");
    CUresult updated = cuGraphExecUpdate(executable, again, &info);
    answer("exec update", updated, number("kernel_update", info.result));
    early(executable);
}

/* ---- Attributes that forbid shaping, set on nodes that are there ---- */

static void ask_attributes() {
    auto cluster = [] {
        CUlaunchAttributeValue value = {};
        value.clusterDim = {2, 1, 1};
        return value;
    }();
    CUlaunchAttributeValue together = {};
    together.cooperative = 1;
    for (Way way : EVERY) {
        std::string name = WAYS[way];
        CUgraphNode node = nullptr, other = nullptr;
        CUgraph graph = graph_of(way, &node, {1000, 1056}, "cooperative, " + name);
        answer("cooperative, " + name, cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &together));
        shown("cooperative, " + name, node);
        make_and_run("cooperative, " + name, graph);
        answer("set: cooperative, " + name, set(way, node, {2000, 528}));
        shown("set: cooperative, " + name, node);
        make_and_run("set: cooperative, " + name, graph);
        graph = graph_of(way, &node, {1000}, "cluster, " + name);
        answer("cluster, " + name,
               cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &cluster));
        shown("cluster, " + name, node);
        make_and_run("cluster, " + name, graph);
        graph = graph_of(way, &other, {1000}, "attributes copied, " + name);
        answer("attributes copied, " + name, cuGraphKernelNodeCopyAttributes(other, node));
        shown("attributes copied, " + name, other);
        make_and_run("attributes copied, " + name, graph);
    }
    for (bool programmatic : {false, true}) {
        std::string name = programmatic ? "programmatic edge" : "edge";
        CUgraphNode from, to;
        CUgraphEdgeData edge = {};
        edge.from_port = programmatic ? CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC : 0;
        edge.type = programmatic ? CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC : CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
        CUgraph graph = graph_of(V2, &from, {1000}, name);
        MUST(add(V2, &to, graph, {1000}));
        answer(name, cuGraphAddDependencies(graph, &from, &to, &edge, 1));
        shown(name, to);
        make_and_run(name, graph);
        answer("set: " + name, set(V2, to, {1500}));
        shown("set: " + name, to);
        make_and_run("set: " + name, graph);
        graph = graph_of(V2, &from, {1000}, "added with " + name);
        CUgraphNodeParams generic = generic_params(params_of(V2, {1000}));
        answer("added with " + name, cuGraphAddNode(&to, graph, &from, &edge, 1, &generic));
        shown("added with " + name, to);
        make_and_run("added with " + name, graph);
    }
    CUgraphNode from, to;
    CUgraph graph = graph_of(V1, &from, {1000}, "edge, v1");
    MUST(add(V1, &to, graph, {1000}));
    answer("edge, v1", add_dependencies_v1(graph, &from, &to, 1));
    make_and_run("edge, v1", graph);
}

/* ---- Graphs that change, and graphs in graphs ---- */

static void ask_changes() {
    CUfunction touch = function_of(load(), "touch");
    for (Way way : EVERY) {
        std::string name = WAYS[way];
        CUgraphNode node, other, copied, holder;
        CUgraph graph = graph_of(way, &node, {1000}, name), clone, outer, changed;
        CUgraphExec executable, nested;
        CUgraphExecUpdateResultInfo info = {};
        MUST(cuGraphInstantiate(&executable, graph, 0));
        for (unsigned dynamic : {2000u, 49152u}) {
            changed = graph_of(way, &other, {dynamic, 4096}, "update, " + name);
            CUresult updated = cuGraphExecUpdate(executable, changed, &info);
            answer("exec update, " + name, updated, number("update", info.result));
            run("exec update, " + name, executable);
            MUST(cuGraphDestroy(changed));
        }
        changed = graph_of(V2, &other, {512, 4096, parameters, touch}, "another kernel, " + name);
        CUresult updated = cuGraphExecUpdate(executable, changed, &info);
        answer("exec update, another kernel, " + name, updated, number("update", info.result));
        for (unsigned enabled : {0u, 1u}) {
            CUresult result = cuGraphNodeSetEnabled(executable, node, enabled);
            answer("enabled, " + name, result, number("enabled", enabled));
            run("enabled, " + name, executable);
        }
        answer("another kernel, " + name, set(V2, node, {512, 4096, parameters, touch}));
        answer("back, " + name, set(V2, node, {1000}));
        MUST(cuGraphClone(&clone, graph));
        MUST(cuGraphNodeFindInClone(&copied, node, clone));
        shown("clone, " + name, copied);
        answer("set in a clone, " + name, set(way, copied, {4000}));
        shown("clone, set, " + name, copied);
        shown("the original, " + name, node);
        make_and_run("clone, " + name, clone);
        MUST(cuGraphCreate(&outer, 0));
        MUST(cuGraphAddChildGraphNode(&holder, outer, nullptr, 0, clone));
        CUgraph inside;
        MUST(cuGraphChildGraphNodeGetGraph(holder, &inside));
        size_t count = 1;
        MUST(cuGraphGetNodes(inside, &copied, &count));
        shown("child, " + name, copied);
        MUST(cuGraphInstantiate(&nested, outer, 0));
        run("child, " + name, nested);
        answer("exec set in a child, " + name, exec_set(way, nested, copied, {6000}));
        run("exec set in a child, " + name, nested);
        if (way < CAPTURED) { // a condition that holds from the start
            CUgraphConditionalHandle handle;
            CUgraph conditional;
            CUgraphNodeParams params = {};
            MUST(cuGraphCreate(&conditional, 0));
            CUresult can =
                cuGraphConditionalHandleCreate(&handle, conditional, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
            answer("handle of a conditional, " + name, can);
            if (can != CUDA_SUCCESS)
                continue;
            params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
            params.conditional.handle = handle;
            params.conditional.type = CU_GRAPH_COND_TYPE_IF;
            params.conditional.size = 1;
            params.conditional.ctx = context;
            answer("conditional, " + name, cuGraphAddNode(&holder, conditional, nullptr, nullptr, 0, &params));
            answer("in a conditional, " + name, add(way, &copied, params.conditional.phGraph_out[0], {1000}));
            shown("in a conditional, " + name, copied);
            make_and_run("conditional, " + name, conditional);
        }
        MUST(cuGraphDestroyNode(node));
        make_and_run("empty, " + name, graph);
    }
}

/* ---- Launches that are not shaped, or refused; by itself and captured ---- */

static void ask_launches() {
    int smaller = -1;
    MUST(cuFuncGetAttribute(&smaller, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    answer("first limit", CUDA_SUCCESS, number("limit", smaller));
    auto made = [&](const std::string &what, CUfunction of, unsigned blocks, unsigned dynamic,
                    std::vector<CUlaunchAttribute> attributes, bool captured) {
        CUlaunchConfig config = {};
        config.gridDimX = blocks;
        config.blockDimX = 128;
        config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
        config.sharedMemBytes = dynamic;
        config.hStream = stream;
        config.attrs = attributes.data();
        config.numAttrs = (unsigned)attributes.size();
        std::string more = number("blocks", blocks) + "," + number("dynamic", dynamic) + ",";
        if (!captured) {
            CUresult result = cuLaunchKernelEx(&config, of, parameters, nullptr);
            answer(what, result, more + got());
            return;
        }
        CUgraph graph = nullptr;
        CUgraphNode node = nullptr;
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CUresult result = cuLaunchKernelEx(&config, of, parameters, nullptr);
        CUresult end = cuStreamEndCapture(stream, &graph);
        answer("captured: " + what, result, more + "\"end\":\"" + name_of(end) + "\"");
        size_t count = 1;
        if (!graph || cuGraphGetNodes(graph, &node, &count) != CUDA_SUCCESS || !count)
            return;
        CUlaunchAttributeValue cluster = {}, cooperative_is = {};
        cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &cluster);
        cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative_is);
        answer("attributes: " + what, CUDA_SUCCESS,
               number("cluster", cluster.clusterDim.x) + "," + number("cooperative", cooperative_is.cooperative));
        shown(what, node);
        make_and_run("captured: " + what, graph);
    };
    for (CUfunction of : {function, (CUfunction)kernel}) {
        std::string name = of == function ? "function" : "CUkernel";
        for (bool captured : {false, true}) {
            for (unsigned dynamic : {1000u, 49152u, 49153u, 232449u, 1u << 20})
                made("plain, " + name, of, 8192, dynamic, {}, captured);
            for (unsigned blocks : {132u, 1056u, 8448u})
                made("cooperative, " + name, of, blocks, 1000, {cooperative()}, captured);
            made("cooperative, beyond the limit, " + name, of, 132, 49153, {cooperative()}, captured);
            for (unsigned size : {2u, 4u, 8u, 16u})
                made("cluster of " + std::to_string(size) + ", " + name, of, 8192, 1000, {cluster_of(size)}, captured);
            made("cluster of 4, grid of 6, " + name, of, 6, 1000, {cluster_of(4)}, captured);
            made("cluster of 2, beyond the limit, " + name, of, 8192, 49153, {cluster_of(2)}, captured);
            made("its own priority, " + name, of, 8192, 1000, {priority_of(-3)}, captured);
        }
        CUresult result = cuLaunchCooperativeKernel(of, 1056, 1, 1, 128, 1, 1, 1000, stream, parameters);
        answer("cuLaunchCooperativeKernel, " + name, result, got());
        result = cuLaunchCooperativeKernel(of, 99999, 1, 1, 128, 1, 1, 1000, stream, parameters);
        answer("cuLaunchCooperativeKernel, too many, " + name, result, got());
        // `extra` in place of parameters.
        size_t size = sizeof out;
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &out, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
        result = cuLaunchKernel(of, 8192, 1, 1, 128, 1, 1, 1000, stream, nullptr, extra);
        answer("extra, " + name, result, got());
        result = cuLaunchKernel(of, 0, 1, 1, 128, 1, 1, 1000, stream, parameters, nullptr);
        answer("no blocks, " + name, result, got());
        result = cuLaunchKernel(of, 8192, 1, 1, 2048, 1, 1, 1000, stream, parameters, nullptr);
        answer("2048 threads, " + name, result, got());
    }
    MUST(cuFuncGetAttribute(&smaller, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    answer("limit in the end", CUDA_SUCCESS, number("limit", smaller));
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: node_questions QUESTION CUBIN\n");
        return 2;
    }
    begin(argv[1], argv[2]);
    older("cuGraphAddKernelNode", 11000, &add_v1);
    older("cuGraphKernelNodeGetParams", 11000, &get_v1);
    older("cuGraphKernelNodeSetParams", 11000, &set_v1);
    older("cuGraphExecKernelNodeSetParams", 11000, &exec_set_v1);
    older("cuGraphAddNode", 12020, &add_generic_v1);
    older("cuGraphAddDependencies", 11000, &add_dependencies_v1);
    older("cuGraphInstantiate", 11000, &instantiate_log);
    CUlibrary library;
    MUST(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "dynamic_size"));
    function = function_of(load(), "dynamic_size");
    MUST(cuMemAlloc(&out, 8));
    MUST(cuMemsetD32(out, 0, 2));
    MUST(cuCtxSynchronize());
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
    if (question == "ways")
        ask_ways();
    else if (question == "communication")
        ask_communication();
    else if (question == "attributes")
        ask_attributes();
    else if (question == "changes")
        ask_changes();
    else
        ask_launches();
    return 0;
}
