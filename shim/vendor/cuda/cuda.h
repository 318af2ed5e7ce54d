/* What the files of vendor/cuda share, besides what both vendors' do (common/vendor.h). Which file does what:
 *   entry.c   the doors: one thunk per entry point and way in, made from driver.def
 *   lookup.c  what cuGetProcAddress hands out
 *   answers.c what the shared half asks about NVIDIA's driver
 *   launch.h  the hot path; for x86-64 in assembler (launch_x86_64.S)
 *   launch.c  making launches: as asked, with another size, at a priority
 *   cluster.c launches in clusters
 *   legacy.c  launches that are only counted
 *   graph.c   nodes of graphs that the program builds itself
 *   instantiate.c  graphs become executable: the flag for priorities of nodes, and sizes that are taken back
 *   node_priority.c  which priorities of nodes are ours
 *   feeders.c what communication of a graph waits for, raised with it
 *   update.c  executable graphs are updated by other graphs
 *   module.c  calls that make and end kernels
 *   context.c  contexts: made, current, ended
 *   copy.c    copies and fills, and what the host waits for in them (copy.def)
 *   attribute.c  attributes that the program sets and asks for, where we have changed some
 *   limit.c   how much dynamic shared memory a kernel may ask for: what the program believes, and what we need
 *   carveout.c  the shared-memory carve-out that kernels prefer
 *   query.c   what the program asks about occupancy
 *   stream.c  streams whose priority is set after they were made
 *   waits.c   waits that only NVIDIA has
 *   runtime.c the names of NVIDIA's runtime (runtime.def), which say where a launch comes from
 */
#pragma once

#include "../common/vendor.h"
#include "cuda_abi.h"

#pragma GCC visibility push(hidden)

/* Types of the entry points: type_cuInit and so on. */
#define DRIVER(name, body, parameters, ...) typedef CUresult type_##name parameters;
#include "driver.def"
#undef DRIVER

/* Bodies, one per row, or several rows' one. */
#define PARAMETERS_OF(...) __VA_ARGS__
#define DRIVER(name, body, parameters, ...)                                                                            \
    CUresult body(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters);
#define DRIVER_VOID(name, body) CUresult body(enum overlap_way way, enum hook hook, uintptr_t site);
#define DRIVER_LAUNCH(name, body, parameters, ...)
#include "driver.def"
#undef DRIVER

/* In a body: the driver's function, or out. */
#define REAL(name) ((type_##name *)real_function(way, hook, site))
#define REAL_OR_RETURN(name)                                                                                           \
    type_##name *real = REAL(name);                                                                                    \
    if (!real)                                                                                                         \
    return CUDA_ERROR_NOT_INITIALIZED

/* Our own calls. Valid after real_ready(VENDOR_CUDA) said true. */
struct driver_calls {
#define CALL(name, parameters) CUresult(*name) parameters;
#include "api.def"
#undef CALL
};
extern struct driver_calls driver;

/* ---- answers.c ---- */

/* Attributes by the API that fits the handle. device: for kernels. */
CUresult handle_get(const struct handle *handle, int attribute, int device, int *value);
CUresult handle_set(const struct handle *handle, int attribute, int device, int value);

/* The function of a CUkernel in the current context, or NULL. */
struct handle *cuda_function_of(const struct handle *kernel);

/* ---- carveout.c ---- */

/* Takes ours back for good, from all that a launch of this handle has it from. True: it was not yet. */
bool carveout_withdraw(struct handle *handle);
/* The program has said what its context prefers. */
void carveout_of_context(void);
/* The program has set one; the program asks for it and the driver has answered. */
void carveout_is_programs(const void *value, int device, int set);
void carveout_answer(const void *value, int device, int *answer);

/* ---- limit.c: what the program may think of the limit of dynamic shared memory. device: for kernels ---- */

/* Makes sure that a launch on the current device may ask for so many bytes; false: the driver will not have it. */
bool limit_raise(struct handle *handle, uint32_t dynamic);

/* Makes the driver allow so many bytes, until the limit before is taken back; false: it allows them already, or will not. */
bool limit_lend(struct handle *handle, uint32_t bytes, int *before);
void limit_take_back(struct handle *handle, int before);

/* The program sets an attribute: what to hand to the driver; and, once the driver has taken it, what the program
 * believes from then on. */
int limit_for_driver(const void *value, int device, int attribute, int asked);
void limit_believe(const void *value, int device, int attribute, int set);

/* The program asks for an attribute and the driver has answered: what the program has set, not what we have raised. */
void limit_answer(const void *value, int device, int attribute, int *answer);

/* The program's own limit where we have raised it, else UINT32_MAX. */
uint32_t limit_own(const void *value, int device);

/* The driver has the program's own limit of this form of a kernel again, on every device. */
void limit_give_back(struct handle *form);

/* The handle means another kernel from now on. */
void limit_forget(uint64_t value);

/* ---- launch.c, cluster.c ---- */

/* Communication that gets a priority, whose word is known, and that nobody traces. */
CUresult launch_raised(struct request *request, uint64_t word);

/* The dimensions of the clusters of a launch, required and preferred ones; 0: by no attribute. */
uint64_t cluster_of(const CUlaunchConfig *config);

/* ---- graph.c ---- */

/* The handle that a kernel node launches. second: of the second form, which has kern. */
const void *graph_kernel_of(const CUDA_KERNEL_NODE_PARAMS *params, bool second);

/* The handle that a kernel node launches, or NULL; how many threads. */
struct handle *graph_node_threads(CUgraphNode node, uint64_t *threads);

/* ---- feeders.c ---- */

/* Raises the nodes that only communication of the graph waits for, where the policy says so and they are few. */
void graph_raise_feeders(CUgraph graph);

/* ---- node_priority.c ---- */

/* Not 0: communication was raised in this process, to priorities of these bits, so a graph may hold a raised node. */
extern uint32_t graph_may_be_raised;

static inline uint32_t graph_raised_bit(int priority) {
    return 1U << (-priority & 31);
}

static inline void graph_raises(int priority) {
    const uint32_t bit = graph_raised_bit(priority);
    if (__builtin_expect(!(__atomic_load_n(&graph_may_be_raised, __ATOMIC_RELAXED) & bit), 0))
        __atomic_fetch_or(&graph_may_be_raised, bit, __ATOMIC_RELAXED);
}

/* The priority of a kernel node. False: not known. */
bool graph_node_priority(CUgraphNode node, int *priority);
bool graph_set_priority(CUgraphNode node, int priority);

/* The priority that a kernel node shows, and what was asked for without us, which may be beyond the range that is shown; sure: it is
 * not merely assumed. False: not told. */
struct node_priority {
    int now, own;
    bool raised, sure;
};
bool graph_priority_of(CUgraphNode node, struct node_priority *found);
/* Does it have its priority from us? */
bool graph_is_raised(CUgraphNode node, int *own);

/* Without us the node would have this priority. */
void graph_keep_own(CUgraphNode node, int own);
/* The same for the node of a launch of communication, if its stream captures. */
void graph_keep_captured(CUstream stream, enum default_stream whose, int own);

/* Takes our priority back from a node that holds no communication any more. */
void graph_lower_others(CUgraphNode node, int own);

/* ---- update.c ---- */

/* The program sets the child graph of a node of an executable graph, by one of two calls. */
struct child_call {
    void *real;
    CUgraphExec exec;
    CUgraphNode node;
    CUgraphNodeParams *params; /* of the newer call, or NULL */
    CUgraph child;
};
CUresult graph_set_child(const struct child_call *call);

/* ---- stream.c ---- */

/* 1: somebody may have given the legacy default stream a priority, which else is 0. */
extern uint32_t stream_legacy_changed;

#pragma GCC visibility pop
