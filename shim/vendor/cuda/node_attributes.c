/* Attributes and dependencies of kernel nodes: which of them forbid shaping, and what the program may still set on a
 * node that has our size (common/node.h). */
#include <string.h>

#include "../common/capture.h"
#include "../common/device.h"
#include "../common/handle.h"
#include "../common/node.h"
#include "../common/size.h"
#include "cuda.h"

/* A node that already has our size may become cooperative or a cluster later. */
static bool forbids_shaping(int attribute) {
    return attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
           attribute == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION ||
           attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
           attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
           attribute == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
}

/* ---- Flags of a node ---- */

/* Flags of a node to be added: with a programmatic edge it may begin before its dependencies end. */
uint32_t graph_flags_of_edges(const CUgraphEdgeData *edges, size_t count) {
    for (size_t i = 0; edges && i < count; i++)
        if (edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
            return OVERLAP_LAUNCH_PROGRAMMATIC;
    return 0;
}

/* The same for an existing node. Too many dependencies to inspect count as programmatic. */
static uint32_t flags_of_dependencies(CUgraphNode node) {
    enum { MOST = 32 };
    CUgraphNode from[MOST];
    CUgraphEdgeData edges[MOST];
    size_t count = MOST;
    if (!driver.cuGraphNodeGetDependencies_v2) /* before CUDA 12.3 no node began early */
        return 0;
    if (driver.cuGraphNodeGetDependencies_v2(node, from, edges, &count) != CUDA_SUCCESS || count >= MOST)
        return OVERLAP_LAUNCH_PROGRAMMATIC;
    return graph_flags_of_edges(edges, count);
}

/* True if a node prefers another carve-out than the largest. (Older drivers lack the attribute, and tools that watch
 * for errors would report our query.) */
static bool prefers_cache(CUgraphNode node) {
    CUlaunchAttributeValue value;
    int version = 0;
    memset(&value, 0, sizeof value);
    return driver.cuDriverGetVersion && driver.cuDriverGetVersion(&version) == CUDA_SUCCESS && version >= 12050 &&
           driver.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &value) ==
               CUDA_SUCCESS &&
           value.carveout < CU_SHAREDMEM_CARVEOUT_MAX_SHARED;
}

uint32_t graph_flags_of_node(CUgraphNode node) {
    CUlaunchAttributeValue value;
    uint32_t flags = 0;
    memset(&value, 0, sizeof value);
    if (!node || !armed_and_ready(VENDOR_CUDA) || !driver.cuGraphKernelNodeGetAttribute)
        return 0;
    if (driver.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS &&
        value.cooperative)
        flags |= OVERLAP_LAUNCH_COOPERATIVE;
    if (prefers_cache(node))
        flags |= OVERLAP_LAUNCH_SMALL_CARVEOUT;
    const struct device *device = device_current(VENDOR_CUDA);
    static const int clusters[] = {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION};
    /* Older GPUs have no preferred clusters, and tools that watch for errors would report our query. */
    const size_t kinds = device && device->gpu.major >= 10 ? 2 : 1;
    for (size_t i = 0; i < kinds; i++) {
        memset(&value, 0, sizeof value);
        if (driver.cuGraphKernelNodeGetAttribute(node, clusters[i], &value) == CUDA_SUCCESS &&
            (value.cluster.x > 1 || value.cluster.y > 1 || value.cluster.z > 1))
            flags |= OVERLAP_LAUNCH_CLUSTER;
    }
    return flags | flags_of_dependencies(node);
}

/* ---- Setting attributes ---- */

/* True if the node asks for more bytes than the program now allows its kernel. Driver 580 then refuses every
 * attribute; but with the limit that we raised it would accept. */
static bool is_beyond(CUgraphNode node) {
    uint32_t shown = 0, asked = 0;
    const struct device *device = armed_and_ready(VENDOR_CUDA) ? device_current(VENDOR_CUDA) : NULL;
    const struct handle *handle = device ? cuda_node_kernel(node, &shown) : NULL;
    if (!handle)
        return false;
    if (!size_asked(handle, shown, &asked)) {
        if (size_is_ours(handle, shown)) /* from several asked sizes, one of which may be within the limit */
            return false;
        asked = shown;
    }
    return limit_own((const void *)(uintptr_t)handle->value, device->ordinal) < asked;
}

/* Repeat a call in which the driver refused our size because the limit is the program's again (legacy.c): with the
 * asked size, or, if that is unknown, with a limit that allows ours. */
#define TRY_NODE_AGAIN(node, result, call)                                                                             \
    do {                                                                                                               \
        int before_;                                                                                                   \
        if (node_try_node_again(VENDOR_CUDA, node, result))                                                            \
            result = (call);                                                                                           \
        struct handle *lent_ = cuda_is_refusal(result) ? lend_limit(node, &before_) : NULL;                            \
        if (lent_) {                                                                                                   \
            result = (call);                                                                                           \
            limit_take_back(lent_, before_);                                                                           \
        }                                                                                                              \
    } while (0)

static struct handle *lend_limit(CUgraphNode node, int *before) {
    uint32_t shown = 0;
    const struct handle *shows = armed_and_ready(VENDOR_CUDA) ? cuda_node_kernel(node, &shown) : NULL;
    struct handle *handle =
        shows && size_is_ours(shows, shown) ? handle_find((const void *)(uintptr_t)shows->value) : NULL;
    return handle && limit_lend(handle, shown, before) ? handle : NULL;
}

CUresult graph_set_attribute_body(ENTRY, CUgraphNode node, int attribute, const CUlaunchAttributeValue *value) {
    REAL_OR_RETURN(cuGraphKernelNodeSetAttribute);
    if (forbids_shaping(attribute) && armed_and_ready(VENDOR_CUDA))
        node_set_back(VENDOR_CUDA, node);
    if (is_beyond(node))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = real(node, attribute, value);
    TRY_NODE_AGAIN(node, result, real(node, attribute, value));
    if (result == CUDA_SUCCESS && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY && value)
        graph_keep_own(node, value->priority);
    return result;
}

CUresult graph_copy_attributes_body(ENTRY, CUgraphNode to, CUgraphNode from) {
    REAL_OR_RETURN(cuGraphKernelNodeCopyAttributes);
    struct node_priority found;
    if (!armed_and_ready(VENDOR_CUDA))
        return real(to, from);
    if (graph_flags_of_node(from))
        node_set_back(VENDOR_CUDA, to);
    if (is_beyond(to))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = real(to, from);
    TRY_NODE_AGAIN(to, result, real(to, from));
    if (result == CUDA_SUCCESS && graph_priority_of(from, &found)) {
        graph_keep_own(to, found.own);
        if (found.raised)
            graph_lower_others(to, found.own);
    }
    return result;
}

CUresult graph_add_dependencies_body(ENTRY, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                     const CUgraphEdgeData *edges, size_t count) {
    REAL_OR_RETURN(cuGraphAddDependencies_v2);
    capture_dependencies_added();
    CUresult result = real(graph, from, to, edges, count);
    for (size_t i = 0; result == CUDA_SUCCESS && to && armed_and_ready(VENDOR_CUDA) && i < count; i++)
        if (edges && graph_flags_of_edges(&edges[i], 1))
            node_set_back(VENDOR_CUDA, to[i]);
    return result;
}
