/* The priority that a kernel node would have without us. It matters only if a communication node has a priority that we
 * raise to. It is recorded by node when the node is added, captured, or changed by the program. The table is lossy, and
 * copies of graphs have no entries: such a node is assumed to have the default priority, 0, and an update tries both.
 */
#include <string.h>

#include "../common/handle.h"
#include "../common/state.h"
#include "cuda.h"

uint32_t graph_may_be_raised;

bool graph_node_priority(CUgraphNode node, int *priority) {
    CUlaunchAttributeValue value;
    memset(&value, 0, sizeof value);
    const bool known = driver.cuGraphKernelNodeGetAttribute &&
                       driver.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS;
    *priority = value.priority;
    return known;
}

bool graph_set_priority(CUgraphNode node, int priority) {
    type_cuGraphKernelNodeSetAttribute *set = real_own(HOOK_cuGraphKernelNodeSetAttribute);
    CUlaunchAttributeValue value;
    uint32_t shown = 0;
    int before;
    memset(&value, 0, sizeof value);
    value.priority = priority;
    if (!set || set(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS)
        return set;
    /* The driver checks the size as well, and the program may have lowered the limit since. */
    const struct handle *shows = cuda_node_kernel(node, &shown);
    struct handle *handle = shows ? handle_find((const void *)(uintptr_t)shows->value) : NULL;
    if (!handle || !limit_lend(handle, shown, &before))
        return false;
    const bool done = set(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS;
    limit_take_back(handle, before);
    return done;
}

static bool is_raisable(CUgraphNode node) {
    uint32_t shown;
    const struct handle *handle = cuda_node_kernel(node, &shown);
    return handle && handle_is_marked(handle, HANDLE_RAISED);
}

/* ---- The table ---- */

/* An entry: the node's address in the lower 48 bits, the priority in the upper 16. */
enum { ADDRESS_BITS = 48 };
#define ADDRESS_MASK ((UINT64_C(1) << ADDRESS_BITS) - 1)

static uint64_t *slot_of(CUgraphNode node) {
    return &state->nodes[overlap_spread((uint64_t)(uintptr_t)node, NODE_BITS)];
}

static bool kept_of(CUgraphNode node, int *own) {
    const uint64_t entry = state ? __atomic_load_n(slot_of(node), __ATOMIC_RELAXED) : 0;
    if (!entry || (entry & ADDRESS_MASK) != (uint64_t)(uintptr_t)node)
        return false;
    *own = (int16_t)(entry >> ADDRESS_BITS);
    return true;
}

void graph_keep_own(CUgraphNode node, int own) {
    const uint64_t priority = (uint16_t)(own > INT16_MAX ? INT16_MAX : own < INT16_MIN ? INT16_MIN : own);
    if (state)
        __atomic_store_n(slot_of(node), priority << ADDRESS_BITS | (uint64_t)(uintptr_t)node, __ATOMIC_RELAXED);
}

/* A captured launch becomes the node that the stream's next node will depend on. */
__attribute__((cold, noinline)) void graph_keep_captured(CUstream stream, enum default_stream null_stream, int own) {
    CUresult (*const ask)(CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **, size_t *) =
        default_is_thread(null_stream) ? driver.cuStreamGetCaptureInfo_v2_ptsz : driver.cuStreamGetCaptureInfo_v2;
    const CUgraphNode *last = NULL;
    uint64_t id;
    CUgraph graph;
    size_t count = 0;
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (ask && ask(stream, &status, &id, &graph, &last, &count) == CUDA_SUCCESS &&
        status != CU_STREAM_CAPTURE_STATUS_NONE && count == 1 && last)
        graph_keep_own(last[0], own);
}

/* ---- Priorities of a node ---- */

static bool is_out_of_range(int priority) {
    int least, greatest;
    return priority > 0 || (priority < 0 && cuda_priorities(&least, &greatest) && priority < greatest);
}

bool graph_priority_of(CUgraphNode node, struct node_priority *found) {
    const uint32_t raised = OVERLAP_RELAXED(graph_may_be_raised);
    int kept;
    if (!graph_node_priority(node, &found->now))
        return false;
    const bool known = kept_of(node, &kept);
    const bool perhaps = raised & graph_raised_bit(found->now) && is_raisable(node);
    found->sure = !perhaps || known;
    if (perhaps)
        found->own = known ? kept : 0;
    else
        found->own = known && is_out_of_range(kept) ? kept : found->now;
    found->raised = perhaps && found->own != found->now;
    return true;
}

bool graph_is_raised(CUgraphNode node, int *own) {
    struct node_priority found;
    if (!OVERLAP_RELAXED(graph_may_be_raised) || !graph_priority_of(node, &found))
        return false;
    *own = found.own;
    return found.raised;
}

void graph_lower_others(CUgraphNode node, int own) {
    if (!is_raisable(node))
        graph_set_priority(node, own);
}
