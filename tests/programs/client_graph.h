/* Graphs in client.c: captured, or built by nodes.
 *
 *   begin=S[,MODE] end=S       capture a stream; the graph becomes the current one, its nodes 0, 1, ...
 *   go=S,N         instantiate the current graph, without flags, and launch it N times on stream S
 *   graph          a new graph becomes the current one         use=I  the I-th does        clone  a copy of it does
 *   node node1 any any2 = K,blocks,threads,dynamic[,after]
 *                  add a kernel node by cuGraphAddKernelNode_v2, cuGraphAddKernelNode, cuGraphAddNode, _v2
 *   child=I        add graph I as a node
 *   setnode setnode1 setany = I,K,blocks,threads,dynamic       the I-th node of the current graph
 *   execnode execnode1 execany = ...                           ...in the executable one
 *   getnode getnode1 = I       what it shows                   again_node=I  set it to what it shows
 *   nattr=I,ID:V[:V:V]  nget=I,ID  ncopy=TO,FROM               attributes of nodes
 *   make=FORM[,flags]          instantiate: 1, 2, flags, params, params_ptsz
 *   update update1 the executable graph by the current one: cuGraphExecUpdate_v2, cuGraphExecUpdate
 *   update0        by cuGraphExecUpdate, without asking for the node
 *   execchild execchildany = I,G   node I of the graph that was instantiated, a child graph, becomes graph G
 *   eflags         which flags the executable graph has         edestroy  destroy it
 *   eother         the other executable graph becomes the current one: there are two
 *   emany=N        instantiate the current graph and destroy that, N times           gdestroy  destroy the current graph
 *   run=S,N run_ptsz=S,N       launch the executable graph
 */
#pragma once

static void *graphs[MOST], *graph, *nodes[MOST], *exec, *other_exec;
static int graph_count, node_count;

static NodeParams node_params(const struct kernel *kernel, char **fields, int second) {
    static uint64_t a = 9;
    static uint32_t b = 8;
    static void *parameters[] = {&a, &b};
    NodeParams params;
    memset(&params, 0, sizeof params);
    params.function = kernel->is_kernel && second ? NULL : kernel->handle;
    params.kernel = kernel->is_kernel && second ? kernel->handle : NULL;
    params.grid[0] = (uint32_t)atol(fields[0]);
    params.block[0] = (uint32_t)atol(fields[1]);
    params.shared = (uint32_t)atol(fields[2]);
    params.grid[1] = params.grid[2] = params.block[1] = params.block[2] = 1;
    params.parameters = parameters;
    return params;
}

/* The older form ends where its page ends. */
static const NodeParams *first_form(const NodeParams *params) {
    const size_t size = offsetof(NodeParams, kernel), page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + page, page, PROT_NONE);
    return memcpy(pages + page - size, params, size);
}

static AnyNodeParams any_form(const NodeParams *params) {
    AnyNodeParams any;
    memset(&any, 0, sizeof any);
    any.of.kernel = *params;
    return any;
}

static int add_node(const char *verb) {
    const int second = strcmp(verb, "node1") != 0, after = word_count > 4 ? atoi(words[4]) : -1;
    const NodeParams params = node_params(find_kernel(words[0]), words + 1, second);
    AnyNodeParams any = any_form(&params);
    void **const made = &nodes[node_count], *before = after >= 0 ? nodes[after] : NULL;
    void *const *const dependencies = after >= 0 ? &before : NULL;
    const size_t count = after >= 0;
    const int result = strcmp(verb, "any") == 0    ? CU(cuGraphAddNode)(made, graph, dependencies, count, &any)
                       : strcmp(verb, "any2") == 0 ? CU(cuGraphAddNode_v2)(made, graph, dependencies, NULL, count, &any)
                       : second ? CU(cuGraphAddKernelNode_v2)(made, graph, dependencies, count, &params)
                                : CU(cuGraphAddKernelNode)(made, graph, dependencies, count, first_form(&params));
    node_count += result == 0;
    return result;
}

static int set_node(const char *verb) {
    void *const node = nodes[atoi(words[0])];
    const int in_exec = strncmp(verb, "exec", 4) == 0, second = strchr(verb, '1') == NULL;
    const NodeParams params = node_params(find_kernel(words[1]), words + 2, second);
    AnyNodeParams any = any_form(&params);
    if (strstr(verb, "any"))
        return in_exec ? CU(cuGraphExecNodeSetParams)(exec, node, &any) : CU(cuGraphNodeSetParams)(node, &any);
    if (second)
        return in_exec ? CU(cuGraphExecKernelNodeSetParams_v2)(exec, node, &params)
                       : CU(cuGraphKernelNodeSetParams_v2)(node, &params);
    return in_exec ? CU(cuGraphExecKernelNodeSetParams)(exec, node, first_form(&params))
                   : CU(cuGraphKernelNodeSetParams)(node, first_form(&params));
}

static int get_node(const char *verb) {
    NodeParams params;
    memset(&params, 0, sizeof params);
    const int result = strcmp(verb, "getnode1") == 0
                           ? CU(cuGraphKernelNodeGetParams)(nodes[atoi(words[0])], &params)
                           : CU(cuGraphKernelNodeGetParams_v2)(nodes[atoi(words[0])], &params);
    printf("node: %u blocks, %u threads, %u bytes\n", params.grid[0], params.block[0], params.shared);
    return result || strcmp(verb, "again_node") != 0
               ? result
               : CU(cuGraphKernelNodeSetParams_v2)(nodes[atoi(words[0])], &params);
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
    if (strcmp(verb, "ncopy") == 0)
        return CU(cuGraphKernelNodeCopyAttributes)(node, nodes[atoi(words[1])]);
    Attribute attribute = attribute_of(words[1]);
    if (strcmp(verb, "nattr") == 0)
        return CU(cuGraphKernelNodeSetAttribute)(node, (int)attribute.id, &attribute.value);
    const int result = CU(cuGraphKernelNodeGetAttribute)(node, (int)attribute.id, &attribute.value);
    printf("attribute %d\n", attribute.value.number);
    return result;
}

static int make_exec(void) {
    const char *form = words[0];
    const uint64_t flags = word_count > 1 ? strtoull(words[1], NULL, 0) : 0;
    InstantiateParams params = {flags, NULL, NULL, -1};
    char log[64] = "";
    void *bad = NULL;
    int result;
    if (strcmp(form, "1") == 0)
        result = CU(cuGraphInstantiate)(&exec, graph, &bad, log, sizeof log);
    else if (strcmp(form, "2") == 0)
        result = CU(cuGraphInstantiate_v2)(&exec, graph, &bad, log, sizeof log);
    else if (strcmp(form, "flags") == 0)
        result = CU(cuGraphInstantiateWithFlags)(&exec, graph, flags);
    else {
        result = strcmp(form, "params") == 0 ? CU(cuGraphInstantiateWithParams)(&exec, graph, &params)
                                             : CU(cuGraphInstantiateWithParams_ptsz)(&exec, graph, &params);
        printf("flags %llu, result %d\n", (unsigned long long)params.flags, params.result);
        bad = params.bad;
    }
    for (int i = 0; i < node_count && bad; i++)
        if (nodes[i] == bad)
            printf("the node is %d\n", i);
    return result;
}

static int add_graph(int result) {
    if (result == 0)
        graphs[graph_count++] = graph;
    node_count = 0;
    return result;
}

static int end_capture(void) {
    size_t count = MOST;
    int result = add_graph(CU(cuStreamEndCapture)(streams[atoi(words[0])], &graph));
    if (result == 0 && CU(cuGraphGetNodes)(graph, nodes, &count) == 0)
        node_count = (int)count;
    return result;
}

static int launch_graph(const char *verb) {
    int result = strcmp(verb, "go") == 0 ? CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) : 0;
    for (int i = 0; i < atoi(words[1]) && result == 0; i++)
        result = strcmp(verb, "run_ptsz") == 0 ? CU(cuGraphLaunch_ptsz)(exec, streams[atoi(words[0])])
                                               : CU(cuGraphLaunch)(exec, streams[atoi(words[0])]);
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
    const int result = strcmp(verb, "update") == 0
                           ? CU(cuGraphExecUpdate_v2)(exec, graph, &info)
                           : CU(cuGraphExecUpdate)(exec, graph, verb[6] == '0' ? NULL : &info.node, &info.result);
    printf("update result %d, node %d, from %d\n", info.result, node_number(info.node), node_number(info.from));
    return result;
}

static int set_child(const char *verb) {
    AnyNodeParams any;
    memset(&any, 0, sizeof any);
    any.type = 4;
    memcpy(&any.of, &graphs[atoi(words[1])], sizeof(void *));
    return strcmp(verb, "execchild") == 0
               ? CU(cuGraphExecChildGraphNodeSetParams)(exec, nodes[atoi(words[0])], graphs[atoi(words[1])])
               : CU(cuGraphExecNodeSetParams)(exec, nodes[atoi(words[0])], &any);
}

static int exec_flags(void) {
    uint64_t flags = 99;
    const int result = CU(cuGraphExecGetFlags)(exec, &flags);
    printf("flags %llu\n", (unsigned long long)flags);
    return result;
}

static int make_many(void) {
    void *made;
    int result = 0;
    for (int i = 0; i < atoi(words[0]) && result == 0; i++)
        if ((result = CU(cuGraphInstantiateWithFlags)(&made, graph, 0)) == 0)
            result = CU(cuGraphExecDestroy)(made);
    return result;
}

static int exchange_execs(void) {
    void *const current = exec;
    exec = other_exec;
    other_exec = current;
    return 0;
}

/* False: the word is not about graphs. */
static int graph_word(const char *verb, int *result) {
    if (strcmp(verb, "begin") == 0)
        *result = CU(cuStreamBeginCapture_v2)(streams[atoi(words[0])], word_count > 1 ? atoi(words[1]) : 0);
    else if (strcmp(verb, "end") == 0)
        *result = end_capture();
    else if (strcmp(verb, "graph") == 0)
        *result = add_graph(CU(cuGraphCreate)(&graph, 0));
    else if (strcmp(verb, "clone") == 0)
        *result = add_graph(CU(cuGraphClone)(&graph, graph));
    else if (strcmp(verb, "use") == 0)
        graph = graphs[atoi(words[0])], *result = 0;
    else if (strcmp(verb, "child") == 0)
        *result = CU(cuGraphAddChildGraphNode)(&nodes[node_count++], graph, NULL, 0, graphs[atoi(words[0])]);
    else if (strncmp(verb, "setnode", 7) == 0 || strcmp(verb, "setany") == 0 || strncmp(verb, "execn", 5) == 0 ||
             strcmp(verb, "execany") == 0)
        *result = set_node(verb);
    else if (strncmp(verb, "node", 4) == 0 || strncmp(verb, "any", 3) == 0)
        *result = add_node(verb);
    else if (strncmp(verb, "getnode", 7) == 0 || strcmp(verb, "again_node") == 0)
        *result = get_node(verb);
    else if (strcmp(verb, "nattr") == 0 || strcmp(verb, "nget") == 0 || strcmp(verb, "ncopy") == 0)
        *result = node_attribute(verb);
    else if (strcmp(verb, "make") == 0)
        *result = make_exec();
    else if (strncmp(verb, "update", 6) == 0)
        *result = update_exec(verb);
    else if (strncmp(verb, "execchild", 9) == 0)
        *result = set_child(verb);
    else if (strcmp(verb, "eflags") == 0)
        *result = exec_flags();
    else if (strcmp(verb, "edestroy") == 0)
        *result = CU(cuGraphExecDestroy)(exec);
    else if (strcmp(verb, "eother") == 0)
        *result = exchange_execs();
    else if (strcmp(verb, "emany") == 0)
        *result = make_many();
    else if (strcmp(verb, "gdestroy") == 0)
        *result = CU(cuGraphDestroy)(graph);
    else if (strncmp(verb, "run", 3) == 0 || strcmp(verb, "go") == 0)
        *result = launch_graph(verb);
    else
        return 0;
    return 1;
}
