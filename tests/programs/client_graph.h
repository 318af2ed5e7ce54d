/* Graphs in client.c: captured, or built by nodes.
 *
 *   begin=S[,MODE] end=S       capture a stream; the graph becomes the current one, its nodes 0, 1, ...
 *   go=S,N         instantiate the current graph, without flags, and launch it N times on stream S
 *   graph          a new graph becomes the current one         clone  a copy of it does         gdestroy  destroy it
 *   node=K,blocks,threads,dynamic[,after]                      add a kernel node
 *   setnode=I,K,blocks,threads,dynamic       the I-th node of the current graph      execnode=  ...in the executable one
 *   getnode=I      what it shows               nattr=I,ID:V[:V:V]  nget=I,ID    attributes of nodes
 *   make=flags[,N] instantiate
 *   update update1 the executable graph by the current one: cuGraphExecUpdate_v2, cuGraphExecUpdate
 *   eflags         which flags the executable graph has         edestroy  destroy it
 *   run=S,N        launch the executable graph
 */
#pragma once

static void *graph, *nodes[MOST], *exec;
static int node_count;

static NodeParams node_params(const struct kernel *kernel, char **fields) {
    static uint64_t a = 9;
    static uint32_t b = 8;
    static void *parameters[] = {&a, &b};
    return (NodeParams){.function = kernel->is_kernel ? NULL : kernel->handle,
                        .kernel = kernel->is_kernel ? kernel->handle : NULL,
                        .grid = {(uint32_t)atol(fields[0]), 1, 1},
                        .block = {(uint32_t)atol(fields[1]), 1, 1},
                        .shared = (uint32_t)atol(fields[2]),
                        .parameters = parameters};
}

static int add_node(void) {
    const int after = word_count > 4 ? atoi(words[4]) : -1;
    const NodeParams params = node_params(find_kernel(words[0]), words + 1);
    return CU(cuGraphAddKernelNode_v2)(&nodes[node_count++], graph, after < 0 ? NULL : &nodes[after], after >= 0,
                                       &params);
}

static int set_node(int in_exec) {
    void *const node = nodes[atoi(words[0])];
    const NodeParams params = node_params(find_kernel(words[1]), words + 2);
    return in_exec ? CU(cuGraphExecKernelNodeSetParams_v2)(exec, node, &params)
                   : CU(cuGraphKernelNodeSetParams_v2)(node, &params);
}

static int get_node(void) {
    NodeParams params;
    memset(&params, 0, sizeof params);
    const int result = CU(cuGraphKernelNodeGetParams_v2)(nodes[atoi(words[0])], &params);
    printf("node: %u blocks, %u threads, %u bytes\n", params.grid[0], params.block[0], params.shared);
    return result;
}

static Attribute attribute_of(char *text) {
    Attribute made;
    memset(&made, 0, sizeof made);
    made.id = (uint32_t)strtol(text, &text, 0);
    for (int i = 0; i < 3 && *text == ':'; i++)
        made.value.dimension[i] = (uint32_t)strtol(text + 1, &text, 0);
    return made;
}

static int node_attribute(const char *verb) {
    void *const node = nodes[atoi(words[0])];
    Attribute attribute = attribute_of(words[1]);
    if (strcmp(verb, "nattr") == 0)
        return CU(cuGraphKernelNodeSetAttribute)(node, (int)attribute.id, &attribute.value);
    const int result = CU(cuGraphKernelNodeGetAttribute)(node, (int)attribute.id, &attribute.value);
    printf("attribute %d\n", attribute.value.number);
    return result;
}

static int new_graph(int result) {
    node_count = 0;
    return result;
}

static int end_capture(void) {
    size_t count = MOST;
    int result = new_graph(CU(cuStreamEndCapture)(streams[atoi(words[0])], &graph));
    if (result == 0 && CU(cuGraphGetNodes)(graph, nodes, &count) == 0)
        node_count = (int)count;
    return result;
}

static int launch_graph(const char *verb) {
    int result = strcmp(verb, "go") == 0 ? CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) : 0;
    for (int i = 0; i < atoi(words[1]) && result == 0; i++)
        result = CU(cuGraphLaunch)(exec, streams[atoi(words[0])]);
    return result;
}

static int node_number(const void *node) {
    for (int i = 0; i < node_count; i++)
        if (nodes[i] == node)
            return i;
    return node ? MOST : -1;
}

static int update_exec(const char *verb) {
    struct {
        int result;
        void *node, *from;
    } info = {-1, NULL, NULL};
    const int result = strcmp(verb, "update") == 0 ? CU(cuGraphExecUpdate_v2)(exec, graph, &info)
                                                   : CU(cuGraphExecUpdate)(exec, graph, &info.node, &info.result);
    printf("update result %d, node %d, from %d\n", info.result, node_number(info.node), node_number(info.from));
    return result;
}

static int exec_flags(void) {
    uint64_t flags = 99;
    const int result = CU(cuGraphExecGetFlags)(exec, &flags);
    printf("flags %llu\n", (unsigned long long)flags);
    return result;
}

static int graph_word(const char *verb, int *result) {
    if (strcmp(verb, "begin") == 0)
        *result = CU(cuStreamBeginCapture_v2)(streams[atoi(words[0])], word_count > 1 ? atoi(words[1]) : 0);
    else if (strcmp(verb, "end") == 0)
        *result = end_capture();
    else if (strcmp(verb, "graph") == 0)
        *result = new_graph(CU(cuGraphCreate)(&graph, 0));
    else if (strcmp(verb, "clone") == 0)
        *result = new_graph(CU(cuGraphClone)(&graph, graph));
    else if (strcmp(verb, "setnode") == 0 || strcmp(verb, "execnode") == 0)
        *result = set_node(verb[0] == 'e');
    else if (strcmp(verb, "node") == 0)
        *result = add_node();
    else if (strcmp(verb, "getnode") == 0)
        *result = get_node();
    else if (strcmp(verb, "nattr") == 0 || strcmp(verb, "nget") == 0)
        *result = node_attribute(verb);
    else if (strcmp(verb, "make") == 0)
        *result = CU(cuGraphInstantiateWithFlags)(&exec, graph, word_count > 1 ? strtoull(words[1], NULL, 0) : 0);
    else if (strcmp(verb, "update") == 0 || strcmp(verb, "update1") == 0)
        *result = update_exec(verb);
    else if (strcmp(verb, "eflags") == 0)
        *result = exec_flags();
    else if (strcmp(verb, "edestroy") == 0)
        *result = CU(cuGraphExecDestroy)(exec);
    else if (strcmp(verb, "gdestroy") == 0)
        *result = CU(cuGraphDestroy)(graph);
    else if (strcmp(verb, "run") == 0 || strcmp(verb, "go") == 0)
        *result = launch_graph(verb);
    else
        return 0;
    return 1;
}
