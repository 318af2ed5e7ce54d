/* Kernel nodes of graphs that the program builds itself get the same answers as launches do. Here is what becomes of one; a
 * frontend reads its vendor's parameters, and makes the call.
 *
 * A node that the driver refuses with our size is made again as asked, at once. Only sizes are changed of which size.c
 * can tell what was asked for, so a program reads back what it has set.
 */
#pragma once

#include "windows.h"

#pragma GCC visibility push(hidden)

struct node {
    struct request request;
    uint64_t word, place;
    uint32_t reason;
    uint32_t dynamic; /* with which it is made */
    bool changed;     /* ...which is not what was asked for */
    struct trace_facts facts;
};

/* Decides. The request has hook, site, flags, function and config. elsewhere: it is known to be of another context than the current
 * one; device: of that one, or NO_DEVICE. False: nobody decides. */
bool node_plan(struct node *node, bool elsewhere, int device);

/* Has the driver refused our size? Then the node is to be made as asked. And if it has taken that: it was our doing. */
bool node_is_refused(struct node *node, vendor_result result);
void node_taken_as_asked(struct node *node, vendor_result result);

/* Makes a node with our parameters, with the program's where nothing is changed or the driver refuses. */
#define NODE_MAKE(node, result, ours, asked)                                                                           \
    do {                                                                                                               \
        result = (node).changed ? (ours) : (asked);                                                                    \
        if (node_is_refused(&(node), result))                                                                          \
            node_taken_as_asked(&(node), result = (asked));                                                            \
    } while (0)

/* A node that was added is counted. raised: it got a priority. */
void node_count(struct node *node, bool raised);

/* One of another kind was added or changed: those that record or wait matter to overlap windows. */
void node_is_other(enum vendor vendor, int type, vendor_event event);

/* What the program asked for, where a node of this kernel shows so many bytes. False: that, as far as we know. */
bool node_asked(const struct handle *handle, uint32_t shown, uint32_t *asked);

/* Gives a kernel node the program's own size back; true if it had ours. */
bool node_set_back(enum vendor vendor, vendor_node node);

/* Calls act for every node of a graph and of those inside it, always in the same order; all bits that any call returned. */
typedef uint32_t node_act(enum vendor vendor, vendor_node node, int type, void *of);
uint32_t node_each(enum vendor vendor, vendor_graph graph, node_act *act, void *of);

/* Which enum exec_flag hold for a graph. */
uint32_t node_graph_holds(enum vendor vendor, vendor_graph graph);

/* A graph did not instantiate, or an executable one was not updated by it. Gives all of its nodes the program's own sizes back;
 * true if that is worth another try. */
bool node_set_all_back(enum vendor vendor, vendor_graph graph);
/* The same for a call that instantiates, by its result. */
bool node_try_again(enum vendor vendor, vendor_graph graph, vendor_result result);
/* The same for one that changes a node. */
bool node_try_node_again(enum vendor vendor, vendor_node node, vendor_result result);

/* It was instantiated, if the call has succeeded. Returns its result. ours: its flags about priorities. */
vendor_result node_instantiated(enum vendor vendor, const vendor_exec *exec, vendor_graph graph, uint32_t ours,
                                vendor_result result);

#pragma GCC visibility pop
