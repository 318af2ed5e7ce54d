/* Updates of executable graphs from other graphs. If an executable graph honours node priorities, none may change in an
 * update (error 910, with the offending node: measured on driver 580). That includes priorities that we raised, or
 * raise in one of the two graphs only. So a failed update is repeated with the new graph's nodes at the priorities that
 * the executable graph may have, until the driver reports what it would report without us; then the nodes get their
 * priorities back. An executable graph keeps its priorities: a kernel that replaces raised communication runs at the
 * priority of communication.
 *
 * A failed update changes nothing (cuda.h at CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: it "was not performed"; measured on
 * driver 580).
 */
#include "../../core/core.h"
#include "../../sys/sys.h"
#include "../common/graph_exec.h"
#include "../common/handle.h"
#include "../common/node.h"
#include "cuda.h"

/* ---- Kernel nodes of a graph and their priorities ---- */

struct kernel {
    CUgraphNode node;
    int was, now;
    int own;        /* its priority without us */
    uint32_t tried; /* priorities tried, by bit */
    bool sure;      /* `own` is recorded, not assumed */
    bool fixed;     /* `own` exceeds the range that a node shows, and updates compare it (driver 580) */
    bool raisable;  /* communication that we raise */
};

struct kernels {
    struct kernel *all;
    size_t count, room;
};

static uint32_t gather(enum vendor vendor, CUgraphNode node, int type, void *of) {
    struct kernels *kernels = of;
    (void)vendor;
    if (type != CU_GRAPH_NODE_TYPE_KERNEL)
        return 0;
    if (kernels->count < kernels->room) {
        struct kernel *kernel = &kernels->all[kernels->count];
        uint32_t shown;
        const struct handle *handle = cuda_node_kernel(node, &shown);
        struct node_priority found;
        if (!graph_priority_of(node, &found))
            return 0;
        kernel->node = node;
        kernel->now = found.now;
        kernel->own = found.own;
        kernel->sure = found.sure;
        kernel->fixed = !found.raised && found.own != found.now;
        kernel->was = kernel->fixed ? found.own : found.now;
        kernel->raisable = handle && handle_is_marked(handle, HANDLE_RAISED);
    }
    kernels->count++;
    return 0;
}

/* False: no kernel nodes, or no memory. */
static bool kernels_of(CUgraph graph, struct kernels *kernels) {
    *kernels = (struct kernels){0};
    node_each(VENDOR_CUDA, graph, gather, kernels);
    const size_t room = kernels->count;
    kernels->count = 0;
    if (!room || !(kernels->all = overlap_map(room * sizeof *kernels->all)))
        return false;
    kernels->room = room;
    node_each(VENDOR_CUDA, graph, gather, kernels);
    return true;
}

static bool put(struct kernel *kernel, int priority) {
    if (priority != kernel->now && !graph_set_priority(kernel->node, priority))
        return false;
    kernel->now = priority;
    return true;
}

static void restore(const struct kernels *kernels) {
    for (size_t i = 0; i < kernels->count; i++)
        put(&kernels->all[i], kernels->all[i].was);
}

static void release(struct kernels *kernels) {
    if (!kernels->all)
        return;
    restore(kernels);
    overlap_unmap(kernels->all, kernels->room * sizeof *kernels->all);
}

/* ---- Which priority does the node have in the executable graph? ---- */

static uint32_t bit_of(int priority) {
    return priority <= 0 && priority >= -EXEC_PRIORITIES ? 1U << -priority : 0;
}

static int lowest(uint32_t bits) {
    return -__builtin_ctz(bits);
}

static uint32_t raised_in(uint32_t flags) {
    return flags >> EXEC_RAISED_TO_SHIFT & ((2U << EXEC_PRIORITIES) - 1);
}

static uint32_t others_in(uint32_t flags) {
    return flags >> EXEC_OTHERS_AT_SHIFT & ((2U << EXEC_PRIORITIES) - 1);
}

static uint32_t all(void) {
    int least, greatest;
    return cuda_priorities(&least, &greatest) ? 2 * EXEC_BIT(greatest) - 1 : 1;
}

/* The priorities that this node may have in the executable graph. If the program asked for node priorities, the
 * counterpart has the node's own priority without us: so it has that one, or the one to which we raised such
 * communication. Otherwise any. */
static uint32_t candidates(const struct kernel *kernel, uint32_t flags) {
    if (!(flags & EXEC_PROGRAMS) || !kernel->sure)
        return all();
    return (flags & EXEC_OTHERS_AT(kernel->own) ? bit_of(kernel->own) : 0) |
           (flags & EXEC_RAISED_FROM(kernel->own) ? raised_in(flags) : 0);
}

/* With the program's flag the driver compares the program's own priorities. A priority that no node of the
 * executable graph has without us must match none. */
static void begin(struct kernels *kernels, uint32_t flags) {
    const uint32_t none = all() & ~raised_in(flags) & ~others_in(flags);
    for (size_t i = 0; i < kernels->count; i++) {
        const uint32_t may = candidates(&kernels->all[i], flags);
        if (kernels->all[i].fixed)
            continue;
        put(&kernels->all[i],
            may & bit_of(kernels->all[i].own) || !(may | none) ? kernels->all[i].own : lowest(may ? may : none));
    }
}

/* Give the next candidate to the node at which the update failed, and to all other communication at the same
 * priority: it was raised together or not at all. False: no candidate is left. */
static bool try_next(const struct kernels *kernels, struct kernel *kernel, uint32_t flags) {
    const int now = kernel->now;
    kernel->tried |= bit_of(now);
    const uint32_t left = candidates(kernel, flags) & ~kernel->tried;
    if (!left || (kernel->fixed && flags & EXEC_PROGRAMS))
        return false;
    const int next = lowest(left & raised_in(flags) ? left & raised_in(flags) : left);
    if (!put(kernel, next))
        return false;
    for (size_t i = 0; i < kernels->count && kernel->raisable; i++) {
        struct kernel *other = &kernels->all[i];
        const bool exact = flags & EXEC_PROGRAMS && other->sure;
        if (!exact && other->raisable && other->now == now && other->own == kernel->own && !other->tried)
            put(other, next);
    }
    return true;
}

static struct kernel *find(const struct kernels *kernels, CUgraphNode node) {
    for (size_t i = 0; i < kernels->count; i++)
        if (kernels->all[i].node == node)
            return &kernels->all[i];
    return NULL;
}

/* ---- Whole graphs ---- */

/* The program's call, by either of two forms. */
struct update {
    type_cuGraphExecUpdate *first;
    type_cuGraphExecUpdate_v2 *second;
    CUgraphExec exec;
    CUgraph graph;
    CUgraphExecUpdateResultInfo *info; /* our own for the first form */
};

static CUresult try_update(const struct update *update) {
    return update->second ? update->second(update->exec, update->graph, update->info)
                          : update->first(update->exec, update->graph, &update->info->errorNode, &update->info->result);
}

/* Repeat the update while a node's priority may differ from that in the executable graph. */
static CUresult with_priorities(const struct update *update, uint32_t flags, struct kernels *kernels) {
    CUresult result = try_update(update);
    while (result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE &&
           update->info->result == CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED &&
           OVERLAP_RELAXED(graph_may_be_raised) && (kernels->all || kernels_of(update->graph, kernels))) {
        struct kernel *kernel = find(kernels, update->info->errorNode);
        if (!kernel || !try_next(kernels, kernel, flags))
            break;
        result = try_update(update);
    }
    return result;
}

/* True if a size of ours may be the reason. */
static bool doubts_sizes(const struct update *update, CUresult result) {
    return cuda_is_refusal(result) || (result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE &&
                                       (update->info->result == CU_GRAPH_EXEC_UPDATE_ERROR ||
                                        update->info->result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED ||
                                        update->info->result == CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED));
}

static CUresult updated(const struct update *update) {
    if (!armed_and_ready(VENDOR_CUDA))
        return try_update(update);
    const uint32_t flags = exec_flags(update->exec);
    struct kernels kernels = {0};
    if (flags & EXEC_PROGRAMS && OVERLAP_RELAXED(graph_may_be_raised) && kernels_of(update->graph, &kernels))
        begin(&kernels, flags);
    CUresult result = with_priorities(update, flags, &kernels);
    if (doubts_sizes(update, result) && node_set_all_back(VENDOR_CUDA, update->graph))
        result = with_priorities(update, flags, &kernels);
    release(&kernels);
    if (result == CUDA_SUCCESS)
        exec_updated(VENDOR_CUDA, update->exec, update->graph);
    return result;
}

CUresult graph_update_body(ENTRY, CUgraphExec exec, CUgraph graph, CUgraphNode *node, int *outcome) {
    REAL_OR_RETURN(cuGraphExecUpdate);
    CUgraphExecUpdateResultInfo info = {outcome ? *outcome : 0, node ? *node : NULL, NULL};
    const CUresult result = updated(&(struct update){.first = real, .exec = exec, .graph = graph, .info = &info});
    if (node)
        *node = info.errorNode;
    if (outcome)
        *outcome = info.result;
    return result;
}

CUresult graph_update_v2_body(ENTRY, CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
    REAL_OR_RETURN(cuGraphExecUpdate_v2);
    return info ? updated(&(struct update){.second = real, .exec = exec, .graph = graph, .info = info})
                : real(exec, graph, info);
}

/* ---- Child graphs of nodes: the driver does not report the node at which it fails ---- */

static CUresult try_child(const struct child_call *call) {
    return call->params ? ((type_cuGraphExecNodeSetParams *)call->real)(call->exec, call->node, call->params)
                        : ((type_cuGraphExecChildGraphNodeSetParams *)call->real)(call->exec, call->node, call->child);
}

static bool is_child_refused(CUresult result) {
    return result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE || cuda_is_refusal(result);
}

/* The priority for a node if its counterpart in the executable graph was made from `before`. */
static int as_before(const struct kernel *kernel, const struct kernel *before, uint32_t flags) {
    if (!(flags & EXEC_FLAGGED))
        return kernel->own == before->own ? before->was : kernel->own;
    return bit_of(before->was) & raised_in(flags) ? before->was : 0;
}

/* Give the nodes the priorities of the child graph from which the executable graph was made. */
static bool like_the_first(const struct kernels *kernels, CUgraphNode node, uint32_t flags) {
    struct kernels before = {0};
    CUgraph graph = NULL;
    bool done =
        cuda_node_inside(node, &graph) == CUDA_SUCCESS && kernels_of(graph, &before) && before.count == kernels->count;
    for (size_t i = 0; done && i < kernels->count; i++)
        done = put(&kernels->all[i], as_before(&kernels->all[i], &before.all[i], flags));
    release(&before);
    return done;
}

/* Give all communication the priority to which communication was raised in the executable graph, or none. With our
 * flag everything else gets 0; with the program's flag it keeps what the program set. */
static bool like_each_other(const struct kernels *kernels, uint32_t flags) {
    const int raised = raised_in(flags) ? lowest(raised_in(flags)) : 0;
    bool done = true;
    for (size_t i = 0; i < kernels->count; i++) {
        struct kernel *kernel = &kernels->all[i];
        const int own = flags & EXEC_FLAGGED ? 0 : kernel->own;
        done &= put(kernel, kernel->raisable && flags & (EXEC_FLAGGED | EXEC_RAISED_FROM(own)) ? raised : own);
    }
    return done;
}

CUresult graph_set_child(const struct child_call *call) {
    CUresult result = try_child(call);
    struct kernels kernels = {0};
    if (!is_child_refused(result) || !armed_and_ready(VENDOR_CUDA) || !OVERLAP_RELAXED(graph_may_be_raised) ||
        !kernels_of(call->child, &kernels))
        return result;
    const uint32_t flags = exec_flags(call->exec);
    if (like_the_first(&kernels, call->node, flags))
        result = try_child(call);
    if (is_child_refused(result) && like_each_other(&kernels, flags))
        result = try_child(call);
    release(&kernels);
    return is_child_refused(result) ? try_child(call) : result;
}

CUresult graph_exec_set_child_body(ENTRY, CUgraphExec exec, CUgraphNode node, CUgraph child) {
    REAL_OR_RETURN(cuGraphExecChildGraphNodeSetParams);
    return graph_set_child(&(struct child_call){(void *)(uintptr_t)real, exec, node, NULL, child});
}
