/* Handles of kernels, modules and contexts: kind, owner, name, and what was learned about the kernel. */
#pragma once

#include "../../core/core.h"
#include "hook.h"

#pragma GCC visibility push(hidden)

enum handle_kind {
    HANDLE_FUNCTION = 1,     /* CUfunction: of one context */
    HANDLE_KERNEL = 2,       /* CUkernel: of every device */
    HANDLE_MODULE = 3,       /* of a library, which is its owner */
    HANDLE_CONTEXT = 4,      /* of a green context, which is its owner */
    HANDLE_CLAIMED = 5,      /* a thread is filling or freeing it */
    HANDLE_HIP_FUNCTION = 6, /* hipFunction_t: of one device */
    HANDLE_HIP_SYMBOL = 7    /* a host function that stands for a kernel: of every device */
};

enum handle_mark {
    HANDLE_REFUSED = 1,         /* a changed launch was refused */
    HANDLE_OCCUPANCY_ASKED = 2, /* the program has queried the occupancy */
    HANDLE_ENDING = 4,          /* a call that may end it is in progress; not shared by its other forms */
    HANDLE_COMMUNICATES = 16,   /* launches of it are communication */
    HANDLE_COOPERATES = 32,     /* it was launched cooperatively */
    HANDLE_PROGRAMS_OWN = 64    /* launched by a call whose size we cannot change: left alone */
};

struct handle {
    uint64_t value;           /* the address that the program has */
    uint64_t owner;           /* module or library */
    uint64_t context;         /* of a function... */
    uint64_t kernel;          /* ...and the kernel that it came from, or 0 */
    int32_t device;           /* of a function */
    uint32_t kind;            /* enum handle_kind; 0: free */
    uint32_t marks;           /* enum handle_mark */
    uint64_t cluster;         /* cluster_of() + 1 of the cluster launches that were checked; 0: none yet */
    uint32_t carveout_ours;   /* bit set of devices where we have set the carve-out; a function has bit 0 only */
    uint32_t carveout_closed; /* ...where we no longer set it */
    uint32_t carveout_small;  /* ...where the program's own is not the largest */
    int32_t carveout_asked;   /* the program's own carve-out, as set last */
    uint32_t older_bytes;     /* dynamic bytes of launches by cuLaunch and similar old calls */
    uint32_t born;            /* handle_born() */
    uint32_t next_free;       /* of a free entry (handle.c) */
    const char *name;         /* as given by the program or the driver; NULL: unknown */
};

/* Records a handle that a call of the program has returned. A function belongs to the current context. kernel: the
 * CUkernel that a function was obtained from, or NULL. name: may be NULL. */
void handle_learn(void *value, enum handle_kind kind, void *owner, const char *name, void *kernel);
struct handle *handle_find(const void *value);

/* Assigns a function that was obtained without a current context to the context of its first launch. */
void handle_settle(struct handle *handle);

/* Called before and after a call that may end handles: those of a module, a library or a green context; of a context;
 * of the primary context of a device; or all of a kind whose owner is unknown, except those obtained from a kernel that
 * still exists.
 *
 * The driver may reuse addresses before the call returns, and it may refuse the call. So from handle_ends() on no
 * decision about these handles is served from the cache, and their launches are left alone. handle_ended() is told
 * whether the driver has destroyed them (gone). Handles that were recorded in between stay. */
struct handle_scope {
    enum handle_scope_of { HANDLES_OF_OWNER, HANDLES_OF_CONTEXT, HANDLES_OF_DEVICE, HANDLES_UNOWNED } of;
    uint64_t value; /* address, ordinal or enum handle_kind */
    uint32_t born;
};
struct handle_scope handle_ends(enum handle_scope_of of, uint64_t value);
void handle_ended(const struct handle_scope *scope, bool gone);
static inline bool handle_is_ending(const struct handle *handle) {
    return __atomic_load_n(&handle->marks, __ATOMIC_SEQ_CST) & HANDLE_ENDING;
}

/* Calls act for every live handle. */
void handle_each(void (*act)(struct handle *handle));

/* Returns the name; queries the driver once if the program has not given one. NULL: unknown. */
const char *handle_name(struct handle *handle);

static inline bool handle_is(const struct handle *handle, enum handle_kind kind) {
    return OVERLAP_RELAXED(handle->kind) == (uint32_t)kind;
}
static inline enum vendor handle_kind_vendor(uint32_t kind) {
    return kind >= HANDLE_HIP_FUNCTION ? VENDOR_HIP : VENDOR_CUDA;
}
static inline enum vendor handle_vendor(const struct handle *handle) {
    return handle_kind_vendor(OVERLAP_RELAXED(handle->kind));
}
/* Number of the call that learned it: if an address is used again, the new handle has another number. */
static inline uint32_t handle_born(const struct handle *handle) {
    return OVERLAP_RELAXED(handle->born);
}
/* Device of a function. NO_DEVICE: unknown until it is launched (handle_settle). */
static inline int handle_device(const struct handle *handle) {
    return OVERLAP_RELAXED(handle->device);
}
/* Is the handle valid on every device? */
static inline bool handle_is_everywhere(const struct handle *handle) {
    return handle_is(handle, HANDLE_KERNEL) || handle_is(handle, HANDLE_HIP_SYMBOL);
}

/* Calls act for every form of a kernel: the handle, the kernel that it was obtained from, and all functions of that
 * kernel. */
void handle_each_form(struct handle *handle, void (*act)(struct handle *form));

/* Invalidates the cached decisions about all forms of a kernel. */
void handle_invalidate(struct handle *handle);

/* An atomic load, because another thread may be reusing the slot. */
static inline uint32_t handle_kind(const struct handle *handle) {
    return OVERLAP_RELAXED(handle->kind);
}

/* Marks all forms of a kernel permanently, and invalidates the decisions about them. */
void handle_mark(struct handle *handle, enum handle_mark mark);
bool handle_is_marked(const struct handle *handle, enum handle_mark mark);

/* Returns the kernel that a function was obtained from, or NULL. */
struct handle *handle_origin(const struct handle *handle);

#pragma GCC visibility pop
