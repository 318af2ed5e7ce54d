/* The large tables of a process that uses a driver: one mapping, made when a driver is first met (state.c). Most
 * processes of a job never use one and must not pay for them: mlockall(2) locks whatever is mapped, and counts it
 * against a limit. */
#pragma once

#include "../../core/core.h"
#include "../../core/part.h"
#include "../../core/slots.h"
#include "critical_streams.h"
#include "device.h"
#include "handle.h"
#include "pace.h"
#include "resolve.h"

#pragma GCC visibility push(hidden)

#define HANDLE_SLOTS (1U << 18)
#define HANDLE_INDEX_BITS 19 /* half full at most: see slots.h */
#define HANDLE_NAME_ARENA (8U << 20)

/* handle.c */
struct handle_table {
    struct handle slots[HANDLE_SLOTS];
    struct overlap_slot index[1U << HANDLE_INDEX_BITS]; /* address -> number of its entry, from 1 */
    char names[HANDLE_NAME_ARENA];
};

#define NODE_BITS 14 /* cuda/node_priority.c */

/* critical_streams.c: code that creates streams */
enum { SITES = 64 };
struct site {
    uintptr_t site; /* 0: free */
    uint32_t alive, shared, busy;
    const struct overlap_context *context; /* of its last destroyed stream... */
    struct overlap_part last;              /* ...and what was learned about that stream */
};

/* arms.c */
enum { CAPTURES = 64 }; /* at a time */
struct trial {
    enum vendor vendor;
    enum overlap_trial_mark counted;
    uint32_t arms;                        /* with the reference; 0: there is no trial */
    uint32_t policies[OVERLAP_PAGE_ARMS]; /* of the arms, in the table */
    struct overlap_trial trial;
    struct overlap_trial_turn turn; /* the present one */
    uint32_t block;                 /* its number, or PACE_NO_BLOCK */
    uint64_t since;                 /* when it began, by the host's clock */
    uint64_t marks;                 /* of the trial, up to the turn's end */
    uint64_t context;               /* whose communication is counted */
    uint32_t captured;              /* turns with a capture, one after the other */
    uint64_t captures[CAPTURES];    /* stream_key() of where they began; 0: free */
    struct pace pace;
};

/* Tables of slots.h. */
enum state_table {
    STATE_NAMES,   /* handle.c: hash of a name -> its offset, because new contexts bring the same names */
    STATE_SIZES,   /* size.c */
    STATE_LIMITS,  /* cuda/limit.c */
    STATE_EXECS,   /* graph_exec.c: executable graph -> enum exec_flag */
    STATE_STREAMS, /* comm_streams.c: stream -> 1, if it got its priority from us */
    STATE_TABLES
};
#define STATE_TABLE_BITS 16

struct state {
    struct overlap_cache_memory cache; /* in front: its alignment is the largest */
    struct real_tables real;
    struct device devices[VENDORS][OVERLAP_DEVICES]; /* device.c */
    struct handle_table handles;
    struct overlap_slot tables[STATE_TABLES][1U << STATE_TABLE_BITS];
    uint64_t nodes[1U << NODE_BITS];
    struct site sites[SITES];
    struct critical_stream raised[CRITICAL_STREAMS]; /* raised.c */
    struct trial trial;
};

/* NULL until state_make() has succeeded. Before that no handle is recorded, so no table is searched. */
extern struct state *state;

/* Maps the tables, once. False: the system has no memory for them, and the library does nothing in this process. */
bool state_make(void);

/* The functions of slots.h for one of these tables. */
uint64_t state_get(enum state_table table, uint64_t key);
bool state_swap(enum state_table table, uint64_t key, uint64_t *before, uint64_t after);
uint64_t state_put(enum state_table table, uint64_t key, uint64_t after);

/* Replaces the memory of the decision cache if it is full: a process that keeps loading modules fills it with decisions
 * about kernels that no longer exist. */
void state_renew_cache(void);

#pragma GCC visibility pop
