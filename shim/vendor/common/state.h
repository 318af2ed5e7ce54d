/* The large tables of a process that uses a driver: one mapping, made when a driver is first met (state.c). Most
 * processes of a job never use one and must not pay for them: mlockall(2) locks whatever is mapped, and counts it
 * against a limit. */
#pragma once

#include "../../core/core.h"
#include "../../core/slots.h"
#include "device.h"
#include "handle.h"
#include "resolve.h"
#include "streams.h"

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

/* Tables of slots.h. */
enum state_table {
    STATE_NAMES,   /* handle.c: hash of a name -> its offset, because new contexts bring the same names */
    STATE_STREAMS, /* streams.c: stream_key() -> number of its record */
    STATE_EVENTS,  /* wait_calls.c: event -> the stream that recorded it */
    STATE_TABLES
};
#define STATE_TABLE_BITS 16

struct state {
    struct overlap_cache_memory cache; /* in front: its alignment is the largest */
    struct real_tables real;
    struct device devices[VENDORS][OVERLAP_DEVICES]; /* device.c */
    struct handle_table handles;
    struct overlap_slot tables[STATE_TABLES][1U << STATE_TABLE_BITS];
    struct stream streams[STREAMS]; /* streams.c; under the lock, like the next three */
    uint32_t streams_used, streams_free;
    struct overlap_judged *judged[STREAMS];    /* raise.c */
    struct launcher launchers[OVERLAP_SHARDS]; /* by index of the thread's shard */
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
