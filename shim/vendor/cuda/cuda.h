/* Shared by the files of vendor/cuda. The files:
 *   entry.c   thunks: one for each entry point and route, generated from driver.def
 *   lookup.c  what cuGetProcAddress returns
 *   cuda_ops.c what the shared part needs from NVIDIA's driver
 *   launch.h  the hot path; in assembler for x86-64 (launch_x86_64.S)
 *   launch.c  make launches: as asked, with another size, at a priority
 *   cluster.c cluster launches
 *   legacy.c  launches that are only counted
 *   graph.c   kernel nodes of graphs that the program builds explicitly
 *   node_attributes.c  attributes and dependencies of such nodes
 *   instantiate.c  graph instantiation: the flag for node priorities, and retries without our sizes
 *   node_priority.c  which node priorities are ours
 *   feeders.c kernels that only a graph's communication waits for are raised with it
 *   update.c  updates of executable graphs from other graphs
 *   module.c  calls that create and destroy kernels
 *   context.c  contexts: created, current, destroyed
 *   copy.c    copies and fills, and what they tell the host is finished (copy.def)
 *   attribute.c  attributes that the program sets and reads, where we have changed some
 *   limit.c   a kernel's limit of dynamic shared memory: the program's own, and the one we need
 *   carveout.c  the preferred shared-memory carve-out of kernels
 *   query.c   occupancy queries of the program
 *   stream.c  streams whose priority is set after their creation
 *   waits.c   waits that only NVIDIA has
 *   runtime.c NVIDIA's runtime (runtime.def): records which library launches
 */
#pragma once

#include "../common/resolve.h"
#include "../common/vendor_ops.h"
#include "cuda_abi.h"

#pragma GCC visibility push(hidden)

/* Types of the entry points: type_cuInit and so on. */
#define DRIVER(name, body, parameters, ...) typedef CUresult type_##name parameters;
#include "driver.def"
#undef DRIVER

/* Bodies; several rows may share one. */
#define PARAMETERS_OF(...) __VA_ARGS__
#define DRIVER(name, body, parameters, ...) CUresult body(ENTRY, PARAMETERS_OF parameters);
#define DRIVER_VOID(name, body) CUresult body(ENTRY);
#define DRIVER_LAUNCH(name, body, parameters, ...)
#include "driver.def"
#undef DRIVER

/* The operations that the shared part calls, one row each. */
#define OPERATION(name, result, parameters, cuda, hip) result cuda parameters;
#include "../common/vendor_ops.def"
#undef OPERATION

/* In a body: the driver's function; REAL_OR_RETURN fails if there is none. */
#define REAL(name) ((type_##name *)real_function(route, hook, site))
#define REAL_OR_RETURN(name)                                                                                           \
    type_##name *real = REAL(name);                                                                                    \
    if (!real)                                                                                                         \
    return CUDA_ERROR_NOT_INITIALIZED

/* Functions that we call ourselves. Valid once driver_ready(VENDOR_CUDA) has returned true. */
struct driver_calls {
#define CALL(name, parameters) CUresult(*name) parameters;
#include "api.def"
#undef CALL
};
extern struct driver_calls driver;

/* ---- cuda_ops.c ---- */

/* Read or set an attribute with the API that fits the handle. device: for kernels. */
CUresult handle_get(const struct handle *handle, int attribute, int device, int *value);
CUresult handle_set(const struct handle *handle, int attribute, int device, int value);

/* The function of a CUkernel in the current context, or NULL. */
struct handle *cuda_function_of(const struct handle *kernel);

/* ---- carveout.c ---- */

/* Restore the program's carve-out for good in all forms that affect a launch of this handle. True: it was still
 * ours. */
bool carveout_withdraw(struct handle *handle);
/* The program has set its context's cache preference. */
void carveout_of_context(void);
/* carveout_is_programs(): the program has set its own carve-out. carveout_answer(): replace the driver's answer by
 * the program's value. */
void carveout_is_programs(const void *value, int device, int set);
void carveout_answer(const void *value, int device, int *answer);

/* ---- limit.c: the program's view of the limit of dynamic shared memory. device: for kernels ---- */

/* Make sure that a launch on the current device may use so many bytes; false: the driver refuses. */
bool limit_raise(struct handle *handle, uint32_t dynamic);

/* Raise the driver's limit to so many bytes until limit_take_back(handle, *before). False: it is high enough
 * already, or the driver refuses. */
bool limit_lend(struct handle *handle, uint32_t bytes, int *before);
void limit_take_back(struct handle *handle, int before);

/* The program sets an attribute. limit_for_driver(): the value to pass to the driver. limit_program_sets(): the driver
 * has accepted it, so the program reads it back from now on. */
int limit_for_driver(const void *value, int device, int attribute, int asked);
void limit_program_sets(const void *value, int device, int attribute, int set);

/* The program has read an attribute: replace the driver's answer by the value that the program set. */
void limit_answer(const void *value, int device, int attribute, int *answer);

/* The program's own limit if we have raised it, else UINT32_MAX. */
uint32_t limit_own(const void *value, int device);

/* Restore the program's own limit of this form of a kernel on every device. */
void limit_give_back(struct handle *form);

/* The kernel with this handle_born() is gone. */
void limit_forget(uint32_t born);

/* ---- launch.c, cluster.c ---- */

/* Launch communication at the priority of its word. The launch is not traced. */
CUresult launch_raised(struct request *request, uint64_t word);

/* The cluster dimensions of a launch, required and preferred; 0: no such attribute. */
uint64_t cluster_of(const CUlaunchConfig *config);

/* ---- graph.c ---- */

/* The handle that a kernel node launches. second: params have the second form, with kern. */
const void *graph_kernel_of(const CUDA_KERNEL_NODE_PARAMS *params, bool second);

/* The handle that a kernel node launches, or NULL; *threads: its number of threads. */
struct handle *graph_node_threads(CUgraphNode node, uint64_t *threads);

/* ---- node_attributes.c ---- */

/* Launch flags of an existing node, and those that the edges to a new node imply. */
uint32_t graph_flags_of_node(CUgraphNode node);
uint32_t graph_flags_of_edges(const CUgraphEdgeData *edges, size_t count);

/* ---- feeders.c ---- */

/* Raise the nodes that only communication of the graph waits for, if the policy says so and they are a minor part. */
void graph_raise_feeders(CUgraph graph);

/* ---- node_priority.c ---- */

/* Bits of the priorities to which communication was raised in this process; 0: no graph holds a raised node. */
extern uint32_t graph_may_be_raised;

static inline uint32_t graph_raised_bit(int priority) {
    return 1U << (-priority & 31);
}

static inline void graph_raises(int priority) {
    const uint32_t bit = graph_raised_bit(priority);
    if (__builtin_expect(!(OVERLAP_RELAXED(graph_may_be_raised) & bit), 0))
        __atomic_fetch_or(&graph_may_be_raised, bit, __ATOMIC_RELAXED);
}

/* Read the priority of a kernel node. False: unknown. */
bool graph_node_priority(CUgraphNode node, int *priority);
bool graph_set_priority(CUgraphNode node, int priority);

/* Priority of a kernel node. now: the one it shows. own: the one it would have without us, which may exceed the
 * range that is shown. sure: `own` is recorded, not assumed. False: unknown. */
struct node_priority {
    int now, own;
    bool raised, sure;
};
bool graph_priority_of(CUgraphNode node, struct node_priority *found);
/* True if the node has its priority from us. */
bool graph_is_raised(CUgraphNode node, int *own);

/* Record the priority that the node would have without us. */
void graph_keep_own(CUgraphNode node, int own);
/* The same for the node of a communication launch, if its stream captures. */
void graph_keep_captured(CUstream stream, enum default_stream null_stream, int own);

/* Restore the priority of a node that no longer holds communication. */
void graph_lower_others(CUgraphNode node, int own);

/* ---- update.c ---- */

/* The program sets the child graph of a node of an executable graph, by either of two calls. */
struct child_call {
    void *real;
    CUgraphExec exec;
    CUgraphNode node;
    CUgraphNodeParams *params; /* of the newer call, else NULL */
    CUgraph child;
};
CUresult graph_set_child(const struct child_call *call);

/* ---- stream.c ---- */

/* 1: the legacy default stream may have a priority other than 0. */
extern uint32_t stream_legacy_changed;

#pragma GCC visibility pop
