/* Kernel nodes of graphs that the program builds explicitly. They get the same decisions as launches. A frontend reads
 * its vendor's parameters and makes the call.
 *
 * A node that the driver refuses with our size is made again as asked, at once. A size is changed only if size.c can
 * recover the asked one from it, so the program reads back what it set.
 */
#pragma once

#include "request.h"
#include "traced.h"

#pragma GCC visibility push(hidden)

struct handle;

struct node {
    struct request request;
    uint64_t word, cache_handle;
    uint32_t reason;
    uint32_t dynamic; /* bytes the node is made with */
    bool changed;     /* ...differ from those asked for */
    struct trace_facts facts;
};

/* Decide for a node. The request has hook, site, flags, function and config. elsewhere: the node is known to belong
 * to another context than the current one; device: that context's, or NO_DEVICE. False: no decision is made here. */
bool node_plan(struct node *node, bool elsewhere, int device);

/* node_is_refused(): true if the driver has refused our size; then make the node as asked. node_taken_as_asked(): if
 * that succeeded, our change was at fault, so leave the kernel alone. */
bool node_is_refused(struct node *node, vendor_result result);
void node_taken_as_asked(struct node *node, vendor_result result);

/* Evaluates `ours` if the node is changed, else `asked`; and `asked` again if the driver refuses ours. */
#define NODE_MAKE(node, result, ours, asked)                                                                           \
    do {                                                                                                               \
        result = (node).changed ? (ours) : (asked);                                                                    \
        if (node_is_refused(&(node), result))                                                                          \
            node_taken_as_asked(&(node), result = (asked));                                                            \
    } while (0)

/* Count a node that was added. raised: it got a priority. */
void node_count(struct node *node, bool raised);

/* A node of another type was added or changed. Those that record events or wait matter to overlap windows. */
void node_is_other(enum vendor vendor, int type, vendor_event event);

/* *asked: the size that the program set, for a node of this kernel that shows `shown` bytes. False: the same, as far
 * as known. */
bool node_asked(const struct handle *handle, uint32_t shown, uint32_t *asked);

/* Restore the program's own size in a kernel node; true if the node had ours. */
bool node_set_back(enum vendor vendor, vendor_node node);

/* Call act for every node of a graph and of its child graphs, always in the same order. Returns the OR of all
 * results. */
typedef uint32_t node_act(enum vendor vendor, vendor_node node, int type, void *of);
uint32_t node_each(enum vendor vendor, vendor_graph graph, node_act *act, void *of);

/* The flags of enum exec_flag that hold for a graph. */
uint32_t node_graph_holds(enum vendor vendor, vendor_graph graph);

/* After a failed instantiation or update: restore the program's own sizes in all nodes of the graph. True if a retry
 * may succeed. */
bool node_set_all_back(enum vendor vendor, vendor_graph graph);
/* The same for an instantiation, given its result. */
bool node_try_again(enum vendor vendor, vendor_graph graph, vendor_result result);
/* The same for a call that changes one node. */
bool node_try_node_again(enum vendor vendor, vendor_node node, vendor_result result);

/* Record an instantiation if it succeeded; returns `result`. ours: the priority flags of the executable graph. */
vendor_result node_instantiated(enum vendor vendor, const vendor_exec *exec, vendor_graph graph, uint32_t ours,
                                vendor_result result);

#pragma GCC visibility pop
