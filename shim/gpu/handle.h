/* Kernels and the modules that they come from, by the handles that the program has; and the decisions about launches of
 * each kernel. A CUfunction and a CUkernel look alike to a launch: only the call that returned the handle tells which one
 * it is, and only the matching functions of the driver accept it.
 *
 * Records are found without the lock, and written under it (table.h). A record that has ended is used again, so what was
 * found may be of another kernel by now: whoever keeps an answer checks the epoch (launch.h), which changes with that. */
#pragma once

#include "../core/core.h"
#include "hook.h"

#pragma GCC visibility push(hidden)

enum handle_kind {
    HANDLE_UNKNOWN = 1,      /* was launched, but no call that returned it was seen */
    HANDLE_FUNCTION = 2,     /* CUfunction: of one context */
    HANDLE_KERNEL = 3,       /* CUkernel: of every device */
    HANDLE_MODULE = 4,       /* of a library, which is its owner, or HANDLE_OWNER_PROGRAM */
    HANDLE_HIP_FUNCTION = 6, /* hipFunction_t: of one device */
    HANDLE_HIP_SYMBOL = 7    /* a host function that stands for a kernel: of every device */
};

#define HANDLE_OWNER_PROGRAM UINT64_C(1) /* no address: the program itself has loaded the module */

enum handle_mark {
    HANDLE_REFUSED = 1,         /* a changed launch was refused */
    HANDLE_OCCUPANCY_ASKED = 2, /* the program has queried the occupancy */
    HANDLE_ENDING = 4,          /* a call that may end it is in progress; not shared by its other forms */
    HANDLE_COMMUNICATES = 8     /* it was captured as communication: graphs do not tell who launched */
};

/* NVIDIA: an attribute of a kernel that we change (cuda/attribute.c). Under the lock. A CUkernel has a value for each
 * device, which is a bit here; a function has one, bit 0. */
struct setting {
    uint32_t has_own; /* the program's value is `own`... */
    uint32_t ours;    /* the driver has our value, or is about to get it; also read without the lock */
    uint32_t fixed;   /* of the limit: bytes of static shared memory + 1; 0: not asked; written without the lock */
    uint32_t reserved;
    int32_t own[OVERLAP_DEVICES]; /* ...by the number of the bit */
};

struct handle {
    uint32_t next;      /* in the list of free records (table.h) */
    uint32_t kind;      /* enum handle_kind; 0: free */
    uint64_t value;     /* the address that the program has */
    uint64_t owner;     /* module or library; 0: unknown */
    uint64_t context;   /* of a function... */
    uint64_t kernel;    /* ...and the kernel that it came from, or 0 */
    int32_t device;     /* of a function; NO_DEVICE: unknown until it is launched (handle_assign_context) */
    uint32_t marks;     /* enum handle_mark */
    uint32_t born;      /* number of the call that learned it: a later kernel at the address has another one */
    uint32_t version;   /* incremented when decisions about the kernel may be stale */
    uint32_t decisions; /* the first one; 0: none */
    uint32_t decided;   /* a decision was made: threads may have answers about it */
    uint32_t number;    /* of this record */
    uint32_t name;      /* as given by the program or the driver (names.h); 0: unknown */
    uint64_t name_hash;
    uint32_t sibling, before; /* numbers of the next and the previous record of the owner; 0: none */
    uint32_t matched; /* number of the policy that `matches` is about, + 2 (1: OVERLAP_NO_POLICY); 0: none yet */
    uint32_t reserved;
    struct setting limit; /* of dynamic shared memory */
    struct setting carveout;
    struct overlap_matches matches;
};

/* Records a handle that a call of the program has returned. A function belongs to the current context. kernel: the
 * CUkernel that a function was obtained from, or NULL. name: may be NULL. */
void handle_learn(void *value, enum handle_kind kind, void *owner, const char *name, void *kernel);
/* Returns the record of a handle, or NULL. */
struct handle *handle_find(const void *value);
/* The record of a number; how many numbers are used; the last number that was given to handle->born. */
struct handle *handle_at(uint32_t number);
uint32_t handles_used(void);
uint32_t handles_born(void);

/* Assigns a function that was obtained without a current context to the context and the device of its first launch. */
void handle_assign_context(struct handle *handle, uint64_t context, int device);
/* A launch has failed for another reason than its size. So the function may be of another context than the current one, in
 * which it was obtained: it is assigned anew at its next launch. */
void handle_unassign_context(struct handle *handle);

/* Called before and after a call that may end handles: those of a module or a library; of a context;
 * of the primary context of a device; or all of a kind whose owner is unknown, except those obtained from a kernel that
 * still exists.
 *
 * The driver may reuse addresses before the call returns, and it may refuse the call. So from handle_ends() on these
 * kernels are left alone. handle_ended() is told whether the driver has destroyed them (gone). Handles that were
 * recorded in between stay. */
struct handle_scope {
    enum handle_scope_of { HANDLES_AT, HANDLES_OF_OWNER, HANDLES_OF_CONTEXT, HANDLES_OF_DEVICE, HANDLES_UNOWNED } of;
    uint64_t value;    /* address, ordinal or enum handle_kind */
    uint32_t born;     /* the last one that was learned before; 0: nothing is known that could end */
    uint32_t unmarked; /* 1: the lock was not to be had, so that nothing is looked up until handle_ended() */
};
struct handle_scope handle_ends(enum handle_scope_of of, uint64_t value);
void handle_ended(const struct handle_scope *scope, bool gone);

/* ---- The table (handles.c): for handle.c, decisions.c and ends.c ---- */

/* Returns the living record of an address without a look at changes that could not be made; or NULL. */
struct handle *handle_look(uint64_t value);
/* Under the lock: the record at an address, or NULL; the first one of an owner's list (0: of the list without an owner; needs
 * no lock); a new record, if there is room; the end of one whose decisions are forgotten; the end of one (ends.c). */
struct handle *handle_at_address(uint64_t value);
uint32_t handle_first_of(uint64_t owner);
void handle_make(const struct handle *learned, const char *name);
void handle_free(struct handle *handle);
void handle_drop(struct handle *handle);

/* Changes that could not be made, because the lock was not to be had: are there any? How many kernels' ends are not marked?
 * handles_miss(): one more change; handles_mend(): make them. False: the tables are not to be used yet. */
extern uint32_t handles_missed, handles_unmarked;
void handles_miss(const struct handle_scope *scope, bool gone);
bool handles_mend(void);

static inline bool handle_is_ending(const struct handle *handle) {
    return OVERLAP_LOAD(handle->marks) & HANDLE_ENDING;
}

/* Copies what the patterns of a policy (index or OVERLAP_NO_POLICY) say of the kernel's name. Queries the driver for the
 * name once if the program has not given one. False: it is unknown. */
bool handle_match(struct handle *handle, uint32_t policy, struct overlap_matches *matches);
/* Claims the page's row that counts launches of the kernel (NULL: unknown) with this decision. library: "" if unknown. */
uint32_t handle_row(const struct handle *handle, const struct overlap_row *row, const char *library, uint32_t reason);
/* The row for launches that differ from those of `row` in their reason only. */
uint32_t row_of_reason(uint32_t row, uint32_t reason);
/* In a forked child, whose page is empty. */
void rows_forked(void);

/* A record that a thread has found may be filled again meanwhile, by a thread that learned the same handle. */
static inline void *handle_value(const struct handle *handle) {
    return (void *)(uintptr_t)OVERLAP_RELAXED(handle->value);
}
static inline uint32_t handle_kind(const struct handle *handle) {
    return OVERLAP_RELAXED(handle->kind);
}
static inline bool handle_is(const struct handle *handle, enum handle_kind kind) {
    return handle_kind(handle) == (uint32_t)kind;
}
static inline enum vendor handle_kind_vendor(uint32_t kind) {
    return kind >= HANDLE_HIP_FUNCTION ? VENDOR_HIP : VENDOR_CUDA;
}
static inline enum vendor handle_vendor(const struct handle *handle) {
    return handle_kind_vendor(handle_kind(handle));
}
static inline int handle_device(const struct handle *handle) {
    return OVERLAP_RELAXED(handle->device);
}
/* Is the handle valid on every device? */
static inline bool handle_is_everywhere(const struct handle *handle) {
    return handle_is(handle, HANDLE_KERNEL) || handle_is(handle, HANDLE_HIP_SYMBOL);
}

/* Returns the kernel that a function was obtained from, or NULL. Both are forms of one kernel, which share their marks
 * and attributes. */
struct handle *handle_origin(const struct handle *handle);

/* Marks all forms of a kernel permanently; decisions that change its launches no longer hold. */
void handle_mark(struct handle *handle, enum handle_mark mark);
bool handle_is_marked(const struct handle *handle, enum handle_mark mark);

/* Decisions about all forms of a kernel may be stale: a fact about it has changed. */
void handle_invalidate(struct handle *handle);

/* ---- Decisions about launches of a kernel ---- */

struct decision {
    uint32_t next;    /* of the kernel */
    uint32_t version; /* of the kernel */
    uint64_t key;     /* launch_key() in launch.h */
    uint32_t flags;   /* of the call: enum overlap_launch_flag */
    int32_t device;
    uint32_t least, most; /* blocks of the grid for which it holds */
    uint32_t size;        /* dynamic bytes to launch with */
    uint32_t block_work;  /* of each block (core/judge.h) */
    uint16_t row, reason; /* row of the page; index into reason.def */
    uint8_t communicates;
    uint8_t changes;  /* `size` is not what the program asks for */
    uint8_t windowed; /* ...but only inside overlap windows */
    uint8_t proven;   /* the driver has accepted the change */
    uint32_t beside;  /* next of its bucket (handle.c) */
    const struct handle *kernel;
};

/* Copies the decision about a launch. asked: key, flags, device, and as `least` the blocks of the grid. False: there is
 * none. */
bool decision_find(const struct handle *handle, const struct decision *asked, struct decision *found);
/* Keeps a decision. False: the epoch has changed meanwhile, so that threads must not keep it either. */
bool decision_keep(struct handle *handle, const struct decision *made, uint32_t epoch);
/* The driver has accepted a change. */
void decision_is_proven(struct handle *handle, const struct decision *decision);
/* Forgets all decisions, of every kernel, or of one; the lock is held for that. */
void decisions_forget(void);
void decisions_forget_of(struct handle *handle);

#pragma GCC visibility pop
