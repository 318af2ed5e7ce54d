/* Kernels by handle. A CUfunction and a CUkernel look alike to a launch, but only the call that made one tells which it
 * is, and only the matching functions may be asked about it. Entries are found by an open-addressed table without
 * locks; an entry is never moved or freed, only declared dead when its module goes.
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

static uint32_t used;      /* places of `order`, at most at a time */
static uint32_t free_from; /* none of them is free before this one, or one was freed this instant */
static uint64_t names_used;
static uint32_t births; /* of handles: see handle->born */

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

/* Makes the slot the caller's to fill, if nobody lives in it and nobody fills it: kind 0 becomes HANDLE_CLAIMED. */
static bool claim(struct handle *slot) {
    uint32_t none = 0;
    return __atomic_compare_exchange_n(&slot->kind, &none, (uint32_t)HANDLE_CLAIMED, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Handles that live are in `order`, so that an unload need not look at all slots, or at all that were ever used. */
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

/* A slot for a value that has none: the first dead or free one. Contexts and modules come and go, so their slots are used
 * again. NULL: there is none near, or another thread was quicker; then the kernel stays unknown and is left alone. */
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

/* A copy that stays, or NULL where there is no more room: then nobody knows the name. */
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

/* Makes the slot the caller's to fill or to free: kind becomes HANDLE_CLAIMED. What was known of a kernel there is
 * forgotten, under its own handle and by its own vendor. False: another thread has the slot, or the kernel in it was learned
 * after the number `born`. */
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

/* Is it the kernel that we know already? A function may be got from its CUkernel and from its library's module; and one of a
 * module is the same in whatever context the program asks for it, also where none is current. */
static bool is_known(struct handle *handle, enum handle_kind kind, const void *owner, const char *name,
                     const void *kernel, uint64_t context) {
    const bool same_owner = LOAD(handle->owner) == (uint64_t)(uintptr_t)owner ||
                            (kernel && LOAD(handle->kernel) == (uint64_t)(uintptr_t)kernel);
    if (LOAD(handle->kind) != (uint32_t)kind || !same_owner || (!owner && LOAD(handle->context) != context))
        return false;
    if (handle_is_ending(handle)) /* its address, and that of its module, may have been given out again */
        return false;
    const char *known = name ? handle_name(handle) : NULL; /* who has enumerated it did not name it */
    return !name || (known && strncmp(known, name, NAME_LIMIT) == 0);
}

/* A module is of one context, and so are its functions. */
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
        return; /* asked for again */
    }
    /* Else another thread is about it, or another kernel had the address. */
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

/* The handle at the i-th place, or NULL. */
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

/* A kernel of every device outlives contexts, but what the driver was told about it may end with them. */
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
        if (kind == HANDLE_MODULE || kind == HANDLE_CONTEXT) /* deeper goes no owner: a module's are functions */
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

/* The marks come first: what is decided from here on is not kept (facts.c), and what was decided before is withdrawn. */
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

/* All forms of a kernel share their attributes. */
void handle_invalidate(struct handle *handle) {
    invalidate_decisions();
    handle_each_form(handle, withdraw_form);
}
