/* Whose is the priority of a kernel node? Communication that has the one that we raise to has it from us, and the program left
 * the default, 0; unless the program has set it (cuGraphKernelNodeSetAttribute), which is kept by node. The table is lossy: of a node
 * whose entry was overwritten it is taken for ours.
 */
#include <string.h>

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
    memset(&value, 0, sizeof value);
    value.priority = priority;
    return set && set(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS;
}

static bool is_raisable(CUgraphNode node) {
    uint32_t shown;
    const struct handle *handle = cuda_node_kernel(node, &shown);
    return handle && handle_is_marked(handle, HANDLE_RAISED);
}

/* ---- What the program has set ---- */

/* Of a node: its address, which leaves the upper 16 bits free. */
static uint64_t *slot_of(CUgraphNode node) {
    return &state->set_nodes[(uint64_t)(uintptr_t)node * UINT64_C(0x9E3779B97F4A7C15) >> (64 - SET_NODE_BITS)];
}

static bool is_set(CUgraphNode node) {
    return state && __atomic_load_n(slot_of(node), __ATOMIC_RELAXED) == (uint64_t)(uintptr_t)node;
}

void graph_priority_is_programs(CUgraphNode node, bool set) {
    if (state && set)
        __atomic_store_n(slot_of(node), (uint64_t)(uintptr_t)node, __ATOMIC_RELAXED);
    else if (is_set(node))
        __atomic_store_n(slot_of(node), 0, __ATOMIC_RELAXED);
}

bool graph_priority_is_ours(CUgraphNode node) {
    const uint32_t raised = __atomic_load_n(&graph_may_be_raised, __ATOMIC_RELAXED);
    int priority;
    return raised && !is_set(node) && graph_node_priority(node, &priority) && raised & graph_raised_bit(priority) &&
           is_raisable(node);
}

void graph_lower_others(CUgraphNode node) {
    if (!is_raisable(node))
        graph_set_priority(node, 0);
}
