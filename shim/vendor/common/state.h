/* The large tables of a process that uses a driver: one mapping, made when a driver is first met (state.c). Most processes of a
 * job never use one and must not pay for them: mlockall(2) locks whatever is mapped, and counts it against a limit. */
#pragma once

#include "vendor.h"

#pragma GCC visibility push(hidden)

#define HANDLE_SLOT_BITS 18
#define HANDLE_SLOTS (1U << HANDLE_SLOT_BITS)
#define HANDLE_NAME_SLOTS (1U << 15)
#define HANDLE_NAME_ARENA (8U << 20)
#define SIZE_BITS 16
#define LIMIT_BITS 16
#define EXEC_SLOTS (1U << 14)

/* handle.c */
struct handle_table {
    struct handle slots[HANDLE_SLOTS];
    uint32_t order[HANDLE_SLOTS]; /* slots of handles that live, + 1; 0: free */
    uint32_t
        kept[HANDLE_NAME_SLOTS]; /* offsets of names + 1, by their hash: contexts made again bring the same names */
    char names[HANDLE_NAME_ARENA];
};

/* size.c */
struct size_entry {
    uint64_t handle;   /* 0: free */
    uint64_t launched; /* KNOWN | bytes */
    uint64_t asked;    /* KNOWN | when the handle was learned << 32 | bytes, or NOT_ONE; 0: not written yet */
};

/* cuda/limit.c */
struct limit_entry {
    uint64_t key;    /* handle, and for a CUkernel its device above; 0: free */
    uint64_t limits; /* believed << 32 | KNOWN | needed (0: not raised); 0: never set, by the program or by us */
};

/* exec.c */
struct exec_entry {
    uint64_t exec; /* 0: free; of a place that was given up it stays, with no flags */
    uint32_t flags;
};

#define NODE_BITS 14 /* cuda/node_priority.c */

/* critical.c: code that makes streams */
enum { SITES = 64 };
struct site {
    uintptr_t site; /* 0: free */
    uint32_t alive, shared, busy;
    const struct overlap_context *context; /* of the stream that is gone... */
    struct overlap_part last;              /* ...and what was learnt of it */
};

struct state {
    struct real_tables real;
    struct overlap_cache_memory cache;
    struct device devices[VENDORS][OVERLAP_DEVICES]; /* device.c */
    struct handle_table handles;
    struct size_entry sizes[1U << SIZE_BITS];
    struct limit_entry limits[1U << LIMIT_BITS];
    struct exec_entry execs[EXEC_SLOTS];
    uint64_t nodes[1U << NODE_BITS];
    struct site sites[SITES];
};

/* NULL until state_make() has succeeded: before that no handle is known, so nothing can be looked up in any table. */
extern struct state *state;

/* Maps the tables, once; false: the system has no memory for them, and this process launches as if it were not armed. */
bool state_make(void);

/* Decisions are kept in new memory, if there is no room left for them: a process that loads modules for ever has filled it with
 * decisions about kernels that ended. */
void state_renew_cache(void);

#pragma GCC visibility pop
