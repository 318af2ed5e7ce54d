/* Kernels by handle. A CUfunction and a CUkernel look alike to a launch. Only the call that returned the handle tells which one it
 * is, and only the matching functions of the driver accept it. Handles are entries of an open-addressed, lock-free hash table. An
 * entry is never moved or freed; it becomes a tombstone when its module is unloaded.
 */
#include <string.h>

#include "../../core/core.h"
#include "../../text.h"
#include "device.h"
#include "facts.h"
#include "handle.h"
#include "launch_slow.h"
#include "resolve.h"
#include "state.h"
#include "vendor_ops.h"

enum { PROBES = 64, NAME_LIMIT = 4096 };

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static uint32_t used;      /* high-water mark of the list `live` */
static uint32_t free_from; /* no entry of `live` below this index is free, unless one was freed just now */
static uint64_t names_used;
static uint32_t births; /* the last number given to handle->born */

static enum vendor vendor_of(uint32_t kind) {
    return kind >= HANDLE_HIP_FUNCTION ? VENDOR_HIP : VENDOR_CUDA;
}

static struct handle *slot_at(uint64_t value, uint64_t probe) {
    return &state->handles.slots[(overlap_spread(value >> 4, HANDLE_SLOT_BITS) + probe) & (HANDLE_SLOTS - 1)];
}

static struct handle *slot_of(uint64_t value) {
    if (!state)
        return NULL;
    for (uint64_t probe = 0; probe < PROBES; probe++) {
        struct handle *slot = slot_at(value, probe);
        uint64_t owner = __atomic_load_n(&slot->value, __ATOMIC_ACQUIRE);
        if (owner == value)
            return slot;
        if (owner == 0)
            return NULL;
    }
    return NULL;
}

/* Claims the slot for the caller to fill, if it is free or a tombstone: kind 0 becomes HANDLE_CLAIMED. */
static bool claim(struct handle *slot) {
    uint32_t none = 0;
    return __atomic_compare_exchange_n(&slot->kind, &none, (uint32_t)HANDLE_CLAIMED, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Adds a handle to the list `live`, so that an unload visits neither all slots nor all that were ever used. */
static void enlist(struct handle *handle) {
    uint32_t slot = LOAD(free_from), none = 0;
    const uint32_t from = slot, number = (uint32_t)(handle - state->handles.slots) + 1;
    for (; !__atomic_compare_exchange_n(&state->handles.live[slot], &none, number, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED);
         none = 0)
        slot = (slot + 1) & (HANDLE_SLOTS - 1);
    handle->live_slot = slot + 1;
    none = from;
    __atomic_compare_exchange_n(&free_from, &none, slot + 1 < HANDLE_SLOTS ? slot + 1 : 0, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    uint32_t before = LOAD(used);
    while (before <= slot &&
           !__atomic_compare_exchange_n(&used, &before, slot + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static void strike(struct handle *handle) {
    const uint32_t slot = handle->live_slot - 1;
    handle->live_slot = 0;
    __atomic_store_n(&state->handles.live[slot], 0, __ATOMIC_RELEASE);
    uint32_t before = LOAD(free_from);
    while (before > slot &&
           !__atomic_compare_exchange_n(&free_from, &before, slot, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Claims a slot for a value that has none: the first tombstone or free slot, because contexts and modules come and go. NULL: none
 * within the probe limit, or other threads were faster; the kernel then stays unknown and is left alone. */
static struct handle *slot_new(uint64_t value) {
    for (uint64_t probe = 0; probe < PROBES; probe++) {
        struct handle *slot = slot_at(value, probe);
        if (!claim(slot))
            continue;
        __atomic_store_n(&slot->value, value, __ATOMIC_RELEASE);
        return slot;
    }
    return NULL;
}

/* Returns a permanent copy of the name. NULL: the arena is full, and the name stays unknown. */
static const char *keep_name(const char *name) {
    const size_t length = overlap_length(name, NAME_LIMIT);
    const uint64_t key = overlap_fnv(OVERLAP_FNV, name, length);
    uint64_t at = state_get(STATE_NAMES, key);
    char *copy = state->handles.names + at;
    if (at && strncmp(copy, name, length) == 0 && copy[length] == 0)
        return copy;
    at = __atomic_load_n(&names_used, __ATOMIC_RELAXED);
    do
        if (at + length + 2 > HANDLE_NAME_ARENA) /* no name is at 0 */
            return NULL;
    while (!__atomic_compare_exchange_n(&names_used, &at, at + length + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    copy = state->handles.names + ++at;
    memcpy(copy, name, length);
    copy[length] = 0;
    state_put(STATE_NAMES, key, at);
    return copy;
}

/* Claims the slot for the caller to refill or to free: kind becomes HANDLE_CLAIMED. Drops what the cache and the vendor keep for
 * the kernel in it. False: another thread has claimed the slot, or the kernel was recorded after the number `born`. */
static bool take(struct handle *handle, uint32_t born) {
    uint32_t kind = LOAD(handle->kind);
    if (kind == HANDLE_CLAIMED || !__atomic_compare_exchange_n(&handle->kind, &kind, (uint32_t)HANDLE_CLAIMED, false,
                                                               __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    if (kind && (int32_t)(LOAD(handle->born) - born) > 0) {
        __atomic_store_n(&handle->kind, kind, __ATOMIC_RELEASE);
        return false;
    }
    overlap_cache_forget(&launch_cache, handle->value);
    if (kind)
        OPERATION_OF(vendor_of(kind), forget)(handle);
    return true;
}

/* Is this the kernel that the entry already describes? A function may be obtained from its CUkernel and from its library's module;
 * and a function of a module is the same whichever context is current. */
static bool is_known(struct handle *handle, enum handle_kind kind, const void *owner, const char *name,
                     const void *kernel, uint64_t context) {
    const bool same_owner = LOAD(handle->owner) == (uint64_t)(uintptr_t)owner ||
                            (kernel && LOAD(handle->kernel) == (uint64_t)(uintptr_t)kernel);
    if (LOAD(handle->kind) != (uint32_t)kind || !same_owner || (!owner && LOAD(handle->context) != context))
        return false;
    if (handle_is_ending(handle)) /* the driver may have reused its address and that of its module */
        return false;
    const char *known = name ? handle_name(handle) : NULL; /* a call that enumerates functions gives no name */
    return !name || (known && strncmp(known, name, NAME_LIMIT) == 0);
}

/* A module belongs to one context, and so do its functions. */
static bool is_of_context(uint32_t kind) {
    return kind == HANDLE_FUNCTION || kind == HANDLE_MODULE || kind == HANDLE_HIP_FUNCTION;
}

void handle_settle(struct handle *handle) {
    const enum vendor vendor = handle_vendor(handle);
    if (LOAD(handle->context) || !is_of_context(LOAD(handle->kind)) || !driver_ready(vendor))
        return;
    __atomic_store_n(&handle->device, OPERATION_OF(vendor, device)(), __ATOMIC_RELAXED);
    __atomic_store_n(&handle->context, OPERATION_OF(vendor, context)(), __ATOMIC_RELAXED);
}

static void fill(struct handle *handle, void *owner, const char *name, void *kernel, uint64_t context, int device) {
    __atomic_store_n(&handle->born, __atomic_add_fetch(&births, 1, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    __atomic_store_n(&handle->owner, (uint64_t)(uintptr_t)owner, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->context, context, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->kernel, (uint64_t)(uintptr_t)kernel, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->device, device, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->marks, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->registers, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->cluster, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_ours, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_closed, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_small, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_asked, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->older_bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->name, name ? keep_name(name) : NULL, __ATOMIC_RELEASE);
}

void handle_learn(void *value, enum handle_kind kind, void *owner, const char *name, void *kernel) {
    const enum vendor vendor = vendor_of(kind);
    uint64_t context = 0;
    int device = NO_DEVICE;
    if (!value || !state)
        return;
    if (is_of_context(kind) && driver_ready(vendor)) {
        const struct handle *module = handle_find(owner);
        const bool of_module = module && handle_is(module, HANDLE_MODULE);
        context = of_module ? LOAD(module->context) : OPERATION_OF(vendor, context)();
        device = of_module ? LOAD(module->device) : OPERATION_OF(vendor, device)();
    }
    struct handle *handle = slot_of((uint64_t)(uintptr_t)value);
    if (handle && is_known(handle, kind, owner, name, kernel, context)) {
        handle_settle(handle);
        return; /* the program has obtained it again */
    }
    /* Otherwise the address belonged to another kernel, or another thread is recording this one. */
    if (handle ? !take(handle, LOAD(births)) : !(handle = slot_new((uint64_t)(uintptr_t)value)))
        return;
    fill(handle, owner, name, kernel, context, device);
    if (!handle->live_slot)
        enlist(handle);
    __atomic_store_n(&handle->kind, (uint32_t)kind, __ATOMIC_RELEASE);
}

struct handle *handle_find(const void *value) {
    struct handle *handle = value ? slot_of((uint64_t)(uintptr_t)value) : NULL;
    uint32_t kind = handle ? __atomic_load_n(&handle->kind, __ATOMIC_ACQUIRE) : 0;
    return kind && kind != HANDLE_CLAIMED ? handle : NULL;
}

/* Returns the handle at index i of the list `live`, or NULL. */
static struct handle *learned(uint32_t i) {
    const uint32_t index = __atomic_load_n(&state->handles.live[i], __ATOMIC_ACQUIRE);
    struct handle *handle = index ? &state->handles.slots[index - 1] : NULL;
    const uint32_t kind = handle ? LOAD(handle->kind) : 0;
    return kind && kind != HANDLE_CLAIMED ? handle : NULL;
}

static bool belongs(const struct handle *handle, const struct handle_scope *scope) {
    const uint32_t kind = LOAD(handle->kind);
    const struct handle *origin;
    switch (scope->of) {
    case HANDLES_OF_OWNER:
        return LOAD(handle->owner) == scope->value;
    case HANDLES_OF_CONTEXT:
        return kind == HANDLE_KERNEL || kind == HANDLE_HIP_SYMBOL || LOAD(handle->context) == scope->value;
    case HANDLES_OF_DEVICE:
        return kind == HANDLE_KERNEL || kind == HANDLE_HIP_SYMBOL || LOAD(handle->device) == (int)scope->value;
    default:
        origin = handle_origin(handle);
        return kind == (uint32_t)scope->value && LOAD(handle->owner) == 0 && !(origin && !handle_is_ending(origin));
    }
}

/* A kernel of every device outlives contexts, but the attributes that we have set may end with them. */
static bool stays(const struct handle *handle, const struct handle_scope *scope) {
    return handle_is_everywhere(handle) && (scope->of == HANDLES_OF_CONTEXT || scope->of == HANDLES_OF_DEVICE);
}

static void each(const struct handle_scope *scope,
                 void (*act)(struct handle *handle, const struct handle_scope *scope)) {
    const uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        struct handle *handle = learned(i);
        const uint32_t kind = handle ? LOAD(handle->kind) : 0;
        if (!handle || !belongs(handle, scope))
            continue;
        struct handle_scope inside = {HANDLES_OF_OWNER, handle->value, scope->born};
        act(handle, scope);
        if (kind == HANDLE_CONTEXT)
            inside.of = HANDLES_OF_CONTEXT;
        if (kind == HANDLE_MODULE || kind == HANDLE_CONTEXT) /* one level suffices: a module owns functions only */
            each(&inside, act);
    }
}

static void begin(struct handle *handle, const struct handle_scope *scope) {
    if (!stays(handle, scope))
        __atomic_fetch_or(&handle->marks, (uint32_t)HANDLE_ENDING, __ATOMIC_SEQ_CST);
}

static void withdraw(struct handle *handle, const struct handle_scope *scope) {
    (void)scope;
    overlap_cache_forget(&launch_cache, handle->value);
}

static void keep(struct handle *handle, const struct handle_scope *scope) {
    if (!stays(handle, scope))
        __atomic_fetch_and(&handle->marks, ~(uint32_t)HANDLE_ENDING, __ATOMIC_RELEASE);
}

static void forget(struct handle *handle, const struct handle_scope *scope) {
    if (stays(handle, scope))
        withdraw(handle, scope);
    else if (take(handle, scope->born)) {
        strike(handle);
        __atomic_store_n(&handle->kind, 0, __ATOMIC_RELEASE);
    }
}

/* Marks first, so that later decisions are not cached (facts.c); then removes the earlier ones from the cache. */
struct handle_scope handle_ends(enum handle_scope_of of, uint64_t value) {
    const struct handle_scope scope = {of, value, LOAD(births)};
    each(&scope, begin);
    invalidate_decisions();
    each(&scope, withdraw);
    return scope;
}

void handle_ended(const struct handle_scope *scope, bool gone) {
    each(scope, gone ? forget : keep);
}

void handle_each(void (*act)(struct handle *handle)) {
    const uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        struct handle *handle = learned(i);
        if (handle)
            act(handle);
    }
}

const char *handle_name(struct handle *handle) {
    const char *known = __atomic_load_n(&handle->name, __ATOMIC_ACQUIRE);
    const enum vendor vendor = handle_vendor(handle);
    if (known || !driver_ready(vendor))
        return known;
    const int mode = OPERATION_OF(vendor, relax)();
    const char *answer = OPERATION_OF(vendor, kernel_name)(handle);
    OPERATION_OF(vendor, restore)(mode);
    if (!answer)
        return NULL;
    known = keep_name(answer);
    __atomic_store_n(&handle->name, known, __ATOMIC_RELEASE);
    return known;
}

struct handle *handle_origin(const struct handle *handle) {
    uint64_t kernel = LOAD(handle->kernel);
    return kernel ? handle_find((const void *)(uintptr_t)kernel) : NULL;
}

bool handle_is_marked(const struct handle *handle, enum handle_mark mark) {
    const struct handle *origin = handle_origin(handle);
    return (LOAD(handle->marks) | (origin ? LOAD(origin->marks) : 0)) & (uint32_t)mark;
}

void handle_mark(struct handle *handle, enum handle_mark mark) {
    struct handle *origin = handle_origin(handle);
    __atomic_fetch_or(&handle->marks, (uint32_t)mark, __ATOMIC_RELAXED);
    if (origin)
        __atomic_fetch_or(&origin->marks, (uint32_t)mark, __ATOMIC_RELAXED);
    handle_invalidate(handle);
}

void handle_each_form(struct handle *handle, void (*act)(struct handle *form)) {
    const uint64_t kernel = handle_is_everywhere(handle) ? handle->value : LOAD(handle->kernel);
    const uint32_t count = kernel ? __atomic_load_n(&used, __ATOMIC_ACQUIRE) : 0;
    act(handle);
    for (uint32_t i = 0; i < count; i++) {
        struct handle *form = learned(i);
        if (form && form != handle && (form->value == kernel || LOAD(form->kernel) == kernel))
            act(form);
    }
}

static void withdraw_form(struct handle *form) {
    overlap_cache_forget(&launch_cache, form->value);
}

/* All forms of a kernel share their attributes, so decisions about all of them depend on one change. */
void handle_invalidate(struct handle *handle) {
    invalidate_decisions();
    handle_each_form(handle, withdraw_form);
}
