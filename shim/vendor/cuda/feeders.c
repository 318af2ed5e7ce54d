/* Graphs that hold communication: raise, with the communication, the kernels that only communication waits for, if they
 * are a minor part of the graph's computation. A program may capture its first iteration, before its streams are
 * classified; but the graph shows the dependencies.
 */
#include "../../sys/sys.h"
#include "../common/device.h"
#include "../common/handle.h"
#include "cuda.h"

enum { MOST = 1 << 16, PASSES = 64 };

struct item {
    CUgraphNode node;
    uint64_t threads; /* of a computation kernel */
    uint32_t others;  /* dependents that are neither communication nor waited for by communication alone */
    bool kernel, good;
};

struct nodes {
    CUgraphNode *all, *from, *to;
    CUgraphEdgeData *edges;
    struct item *items;
    uint32_t *buckets; /* by hash of the node: index + 1 */
    size_t count, edge_count, mask;
    void *memory;
    size_t size;
};

static uint32_t *bucket(const struct nodes *nodes, CUgraphNode node) {
    size_t at = overlap_spread((uint64_t)(uintptr_t)node, 32);
    while (nodes->buckets[at & nodes->mask] && nodes->items[nodes->buckets[at & nodes->mask] - 1].node != node)
        at++;
    return &nodes->buckets[at & nodes->mask];
}

static struct item *item_of(const struct nodes *nodes, CUgraphNode node) {
    const uint32_t number = *bucket(nodes, node);
    return number ? &nodes->items[number - 1] : NULL;
}

static bool gather(CUgraph graph, struct nodes *nodes) {
    *nodes = (struct nodes){0};
    if (!driver.cuGraphGetNodes || !driver.cuGraphGetEdges_v2 ||
        driver.cuGraphGetNodes(graph, NULL, &nodes->count) != CUDA_SUCCESS ||
        driver.cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &nodes->edge_count) != CUDA_SUCCESS || !nodes->count ||
        nodes->count > MOST || nodes->edge_count > 4 * (size_t)MOST)
        return false;
    for (nodes->mask = 1; nodes->mask < 2 * nodes->count; nodes->mask *= 2)
        ;
    nodes->size = nodes->count * (sizeof *nodes->all + sizeof *nodes->items) + nodes->mask * sizeof *nodes->buckets +
                  nodes->edge_count * (2 * sizeof *nodes->from + sizeof *nodes->edges);
    char *at = nodes->memory = overlap_map(nodes->size);
    if (!at)
        return false;
    nodes->items = (struct item *)(void *)at;
    nodes->all = (CUgraphNode *)(nodes->items + nodes->count);
    nodes->from = nodes->all + nodes->count;
    nodes->to = nodes->from + nodes->edge_count;
    nodes->edges = (CUgraphEdgeData *)(nodes->to + nodes->edge_count);
    nodes->buckets = (uint32_t *)(void *)(nodes->edges + nodes->edge_count);
    nodes->mask--;
    const size_t count = nodes->count, edge_count = nodes->edge_count;
    return driver.cuGraphGetNodes(graph, nodes->all, &nodes->count) == CUDA_SUCCESS &&
           driver.cuGraphGetEdges_v2(graph, nodes->from, nodes->to, nodes->edges, &nodes->edge_count) == CUDA_SUCCESS &&
           nodes->count == count && nodes->edge_count == edge_count;
}

/* Classify all nodes. False: the work of some node is unknown. *communicates: some node communicates. */
static bool look(struct nodes *nodes, bool *communicates) {
    for (size_t i = 0; i < nodes->count; i++) {
        struct item *const item = &nodes->items[i];
        int type = -1;
        item->node = nodes->all[i];
        *bucket(nodes, item->node) = (uint32_t)i + 1;
        if (!driver.cuGraphNodeGetType || driver.cuGraphNodeGetType(item->node, &type) != CUDA_SUCCESS ||
            type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            return false;
        if (type != CU_GRAPH_NODE_TYPE_KERNEL)
            continue;
        const struct handle *const handle = graph_node_threads(item->node, &item->threads);
        if (handle && handle_is_marked(handle, HANDLE_COMMUNICATES)) {
            *communicates = item->good = true;
            item->threads = 0;
        }
        item->kernel = !item->good;
    }
    for (size_t i = 0; i < nodes->edge_count; i++) {
        struct item *const from = item_of(nodes, nodes->from[i]);
        if (!from || !item_of(nodes, nodes->to[i]))
            return false;
        from->others++;
    }
    return true;
}

/* A node is good once all its dependents are. Edges are unordered, so this takes as many passes as a path has nodes. */
static void spread(struct nodes *nodes) {
    bool more = true;
    for (int pass = 0; more && pass < PASSES; pass++) {
        more = false;
        for (size_t i = 0; i < nodes->edge_count; i++) {
            struct item *const from = nodes->from[i] ? item_of(nodes, nodes->from[i]) : NULL;
            if (!from || !item_of(nodes, nodes->to[i])->good)
                continue;
            nodes->from[i] = NULL; /* edge counted */
            if (--from->others == 0 && !from->good)
                more = from->good = true;
        }
    }
}

static bool is_minor(const struct nodes *nodes, uint32_t share) {
    uint64_t own = 0, all = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        all += nodes->items[i].threads;
        own += nodes->items[i].good ? nodes->items[i].threads : 0;
    }
    return own && own <= all / 100 * share + all % 100 * share / 100;
}

static void raise(const struct nodes *nodes, int priority) {
    for (size_t i = 0; i < nodes->count; i++) {
        uint64_t threads;
        int now;
        struct handle *const handle =
            nodes->items[i].kernel && nodes->items[i].good ? graph_node_threads(nodes->items[i].node, &threads) : NULL;
        if (!handle || !graph_node_priority(nodes->items[i].node, &now) || now != 0 ||
            !graph_set_priority(nodes->items[i].node, priority))
            continue;
        __atomic_fetch_or(&handle->marks, (uint32_t)HANDLE_RAISED, __ATOMIC_RELAXED);
        graph_keep_own(nodes->items[i].node, 0);
        graph_raises(priority);
    }
}

void graph_raise_feeders(CUgraph graph) {
    const struct overlap_policy *policy = device_policy(device_current(VENDOR_CUDA));
    struct nodes nodes;
    bool communicates = false;
    int priority;
    if (!policy || !(policy->critical & OVERLAP_CRITICAL_COMMUNICATION) ||
        !device_priority(VENDOR_CUDA, OVERLAP_PRIORITY_HIGHEST, 0, &priority))
        return;
    if (gather(graph, &nodes) && look(&nodes, &communicates) && communicates) {
        spread(&nodes);
        if (is_minor(&nodes, policy->critical_share))
            raise(&nodes, priority);
    }
    if (nodes.memory)
        overlap_unmap(nodes.memory, nodes.size);
}
