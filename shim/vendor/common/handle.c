/* Kernels by handle. A CUfunction and a CUkernel look alike to a launch. Only the call that returned the handle tells
 * which one it is, and only the matching functions of the driver accept it.
 *
 * Handles are entries of an array. `index` (slots.h) maps the address that the program has to the number of its entry.
 * An entry is filled before the index names it, and its kind is stored last, so no thread reads a half-filled one. A
 * freed entry is reused for another address, so every lookup compares the address.
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

enum { NAME_LIMIT = 4096, TRIES = 8 };

static uint32_t used; /* high-water mark of the array */
/* Bits 0 to 31: number of the first free entry, 0: none. The bits above count changes, against ABA. */
static uint64_t free_list;
static uint64_t names_used;
static uint32_t births; /* the last number given to handle->born */

/* The number of the entry of an address (from 1), or 0. */
static uint64_t index_get(uint64_t value) {
    return overlap_slots_get(state->handles.index, HANDLE_INDEX_BITS, value);
}
static bool index_swap(uint64_t value, uint64_t *before, uint64_t after) {
    return overlap_slots_swap(state->handles.index, HANDLE_INDEX_BITS, value, before, after);
}
static uint64_t number_of(const struct handle *handle) {
    return ((uintptr_t)handle - (uintptr_t)state->handles.slots) / sizeof *handle + 1;
}

static bool is_alive(uint32_t kind) {
    return kind && kind != HANDLE_CLAIMED;
}

/* The entry of this number, if it is alive and still of this address. */
static struct handle *handle_at(uint64_t number, uint64_t value) {
    struct handle *const handle = number ? &state->handles.slots[number - 1] : NULL;
    return handle && is_alive(__atomic_load_n(&handle->kind, __ATOMIC_ACQUIRE)) &&
                   OVERLAP_RELAXED(handle->value) == value
               ? handle
               : NULL;
}

/* Returns a free entry, HANDLE_CLAIMED for the caller to fill. NULL: all are in use, so the kernel stays unknown and is
 * left alone. */
static struct handle *take_free(void) {
    uint64_t head = __atomic_load_n(&free_list, __ATOMIC_ACQUIRE);
    uint32_t count = OVERLAP_RELAXED(used);
    struct handle *handle = NULL;
    while ((uint32_t)head) {
        handle = &state->handles.slots[(uint32_t)head - 1];
        const uint64_t next = ((head >> 32) + 1) << 32 | OVERLAP_RELAXED(handle->next_free);
        if (__atomic_compare_exchange_n(&free_list, &head, next, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
            break;
        handle = NULL;
    }
    while (!handle && count < HANDLE_SLOTS)
        if (__atomic_compare_exchange_n(&used, &count, count + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            handle = &state->handles.slots[count];
    if (handle)
        __atomic_store_n(&handle->kind, (uint32_t)HANDLE_CLAIMED, __ATOMIC_RELAXED);
    return handle;
}

/* Frees an entry that the caller has claimed. */
static void give_back(struct handle *handle) {
    uint64_t head = OVERLAP_RELAXED(free_list);
    __atomic_store_n(&handle->kind, 0, __ATOMIC_RELAXED);
    do
        __atomic_store_n(&handle->next_free, (uint32_t)head, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&free_list, &head, ((head >> 32) + 1) << 32 | number_of(handle), false,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* Returns a permanent copy of the name. NULL: the arena is full, and the name stays unknown. */
static const char *keep_name(const char *name) {
    const size_t length = overlap_length(name, NAME_LIMIT);
    const uint64_t key = overlap_fnv(OVERLAP_FNV, name, length);
    uint64_t at = state_get(STATE_NAMES, key);
    char *copy = state->handles.names + at;
    if (at && strncmp(copy, name, length) == 0 && copy[length] == 0)
        return copy;
    at = OVERLAP_RELAXED(names_used);
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

/* Claims an entry that is alive, for the caller to free. False: another thread has claimed it, or its kernel was
 * learned after the number `born`. */
static bool claim(struct handle *handle, uint32_t born) {
    uint32_t kind = OVERLAP_RELAXED(handle->kind);
    if (!is_alive(kind) || (int32_t)(OVERLAP_RELAXED(handle->born) - born) > 0 ||
        !__atomic_compare_exchange_n(&handle->kind, &kind, (uint32_t)HANDLE_CLAIMED, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    if ((int32_t)(OVERLAP_RELAXED(handle->born) - born) <= 0) /* still */
        return true;
    __atomic_store_n(&handle->kind, kind, __ATOMIC_RELEASE);
    return false;
}

/* Claims an entry and forgets its kernel. Another thread may learn the next kernel at this address meanwhile:
 * decisions, which are kept by address, may be dropped at any time, and everything else is kept by handle_born(). */
static bool retire(struct handle *handle, uint32_t born) {
    const enum vendor vendor = handle_vendor(handle);
    if (!claim(handle, born))
        return false;
    overlap_cache_forget(&launch_cache, handle->value);
    OPERATION_OF(vendor, forget)(handle_born(handle));
    return true;
}

/* Is this the kernel that the entry already describes? A function may be obtained from its CUkernel and from its
 * library's module; and a function of a module is the same whichever context is current. */
static bool is_known(struct handle *handle, enum handle_kind kind, const void *owner, const char *name,
                     const void *kernel, uint64_t context) {
    const bool same_owner = OVERLAP_RELAXED(handle->owner) == (uint64_t)(uintptr_t)owner ||
                            (kernel && OVERLAP_RELAXED(handle->kernel) == (uint64_t)(uintptr_t)kernel);
    if (OVERLAP_RELAXED(handle->kind) != (uint32_t)kind || !same_owner ||
        (!owner && OVERLAP_RELAXED(handle->context) != context))
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
    if (OVERLAP_RELAXED(handle->context) || !is_of_context(OVERLAP_RELAXED(handle->kind)) || !driver_ready(vendor))
        return;
    __atomic_store_n(&handle->device, OPERATION_OF(vendor, device)(), __ATOMIC_RELAXED);
    __atomic_store_n(&handle->context, OPERATION_OF(vendor, context)(), __ATOMIC_RELAXED);
}

static void fill(struct handle *handle, uint64_t value, void *owner, const char *name, void *kernel, uint64_t context,
                 int device) {
    __atomic_store_n(&handle->value, value, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->born, __atomic_add_fetch(&births, 1, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    __atomic_store_n(&handle->owner, (uint64_t)(uintptr_t)owner, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->context, context, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->kernel, (uint64_t)(uintptr_t)kernel, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->device, device, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->marks, 0, __ATOMIC_RELEASE); /* behind born: begin() */
    __atomic_store_n(&handle->cluster, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_ours, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_closed, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_small, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->carveout_asked, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->older_bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->name, name ? keep_name(name) : NULL, __ATOMIC_RELEASE);
}

void handle_learn(void *value, enum handle_kind kind, void *owner, const char *name, void *kernel) {
    const enum vendor vendor = handle_kind_vendor(kind);
    uint64_t context = 0;
    int device = NO_DEVICE;
    if (!value || !state)
        return;
    if (is_of_context(kind) && driver_ready(vendor)) {
        const struct handle *module = handle_find(owner);
        const bool of_module = module && handle_is(module, HANDLE_MODULE);
        context = of_module ? OVERLAP_RELAXED(module->context) : OPERATION_OF(vendor, context)();
        device = of_module ? handle_device(module) : OPERATION_OF(vendor, device)();
    }
    struct handle *fresh = NULL;
    for (int tries = 0; tries < TRIES; tries++) { /* further ones where other threads learn the same address */
        uint64_t number = index_get((uint64_t)(uintptr_t)value);
        /* First the number of its learning: if the entry is reused from here on, handle_at() or claim() says so. */
        const uint32_t born = number ? __atomic_load_n(&state->handles.slots[number - 1].born, __ATOMIC_ACQUIRE) : 0;
        struct handle *const known = handle_at(number, (uint64_t)(uintptr_t)value);
        if (known && is_known(known, kind, owner, name, kernel, context)) { /* asked for again */
            handle_settle(known);
            break;
        }
        if (!fresh && !(fresh = take_free())) {
            if (!known || !retire(known, born))
                return;
            index_swap((uint64_t)(uintptr_t)value, &number, 0); /* the kernel that had the address makes room */
            give_back(known);
            continue;
        }
        fill(fresh, (uint64_t)(uintptr_t)value, owner, name, kernel, context, device);
        const bool replaced = known && retire(known, born); /* another kernel had the address */
        __atomic_store_n(&fresh->kind, (uint32_t)kind, __ATOMIC_RELEASE);
        const bool named = index_swap((uint64_t)(uintptr_t)value, &number, number_of(fresh));
        if (replaced)
            give_back(known);
        if (named) { /* decisions for another kernel, or from before this one was known, are stale */
            invalidate_decisions();
            overlap_cache_forget(&launch_cache, (uint64_t)(uintptr_t)value);
            return;
        }
        if (!claim(fresh, OVERLAP_RELAXED(births))) /* another thread ends its owner, and frees it */
            return;
        if (number == OVERLAP_SLOTS_FULL)
            break;
    }
    if (fresh)
        give_back(fresh);
}

struct handle *handle_find(const void *value) {
    return state ? handle_at(index_get((uint64_t)(uintptr_t)value), (uint64_t)(uintptr_t)value) : NULL;
}

/* The i-th entry if it is alive, or NULL. */
static struct handle *learned(uint32_t i) {
    struct handle *const handle = &state->handles.slots[i];
    return is_alive(__atomic_load_n(&handle->kind, __ATOMIC_ACQUIRE)) ? handle : NULL;
}

static bool belongs(const struct handle *handle, const struct handle_scope *scope) {
    const uint32_t kind = OVERLAP_RELAXED(handle->kind);
    const struct handle *origin;
    switch (scope->of) {
    case HANDLES_OF_OWNER:
        return OVERLAP_RELAXED(handle->owner) == scope->value;
    case HANDLES_OF_CONTEXT:
        return kind == HANDLE_KERNEL || kind == HANDLE_HIP_SYMBOL || OVERLAP_RELAXED(handle->context) == scope->value;
    case HANDLES_OF_DEVICE:
        return kind == HANDLE_KERNEL || kind == HANDLE_HIP_SYMBOL || handle_device(handle) == (int)scope->value;
    default:
        origin = handle_origin(handle);
        return kind == (uint32_t)scope->value && OVERLAP_RELAXED(handle->owner) == 0 &&
               !(origin && !handle_is_ending(origin));
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
        const uint32_t kind = handle ? OVERLAP_RELAXED(handle->kind) : 0;
        if (!handle || !belongs(handle, scope))
            continue;
        struct handle_scope inside = {HANDLES_OF_OWNER, OVERLAP_RELAXED(handle->value), scope->born};
        act(handle, scope);
        if (kind == HANDLE_CONTEXT)
            inside.of = HANDLES_OF_CONTEXT;
        if (kind == HANDLE_MODULE || kind == HANDLE_CONTEXT) /* one level suffices: a module owns functions only */
            each(&inside, act);
    }
}

static void withdraw(struct handle *handle, const struct handle_scope *scope) {
    (void)scope;
    overlap_cache_forget(&launch_cache, OVERLAP_RELAXED(handle->value));
}

static void keep(struct handle *handle, const struct handle_scope *scope) {
    if (!stays(handle, scope) && (int32_t)(handle_born(handle) - scope->born) <= 0)
        __atomic_fetch_and(&handle->marks, ~(uint32_t)HANDLE_ENDING, __ATOMIC_RELEASE);
}

static void begin(struct handle *handle, const struct handle_scope *scope) {
    if (stays(handle, scope))
        return;
    __atomic_fetch_or(&handle->marks, (uint32_t)HANDLE_ENDING, __ATOMIC_SEQ_CST);
    if ((int32_t)(handle_born(handle) - scope->born) > 0) /* it was freed, and is another kernel's by now */
        __atomic_fetch_and(&handle->marks, ~(uint32_t)HANDLE_ENDING, __ATOMIC_RELEASE);
}

static void forget(struct handle *handle, const struct handle_scope *scope) {
    if (stays(handle, scope))
        withdraw(handle, scope);
    else if (retire(handle, scope->born)) {
        uint64_t number = number_of(handle);
        index_swap(handle->value, &number, 0);
        give_back(handle);
    }
}

/* Marks first, so that later decisions are not cached (facts.c); then removes the earlier ones from the cache. */
struct handle_scope handle_ends(enum handle_scope_of of, uint64_t value) {
    const struct handle_scope scope = {of, value, OVERLAP_RELAXED(births)};
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
    uint64_t kernel = OVERLAP_RELAXED(handle->kernel);
    return kernel ? handle_find((const void *)(uintptr_t)kernel) : NULL;
}

bool handle_is_marked(const struct handle *handle, enum handle_mark mark) {
    const struct handle *origin = handle_origin(handle);
    return (OVERLAP_RELAXED(handle->marks) | (origin ? OVERLAP_RELAXED(origin->marks) : 0)) & (uint32_t)mark;
}

void handle_mark(struct handle *handle, enum handle_mark mark) {
    struct handle *origin = handle_origin(handle);
    __atomic_fetch_or(&handle->marks, (uint32_t)mark, __ATOMIC_RELAXED);
    if (origin)
        __atomic_fetch_or(&origin->marks, (uint32_t)mark, __ATOMIC_RELAXED);
    handle_invalidate(handle);
}

void handle_each_form(struct handle *handle, void (*act)(struct handle *form)) {
    const uint64_t kernel = handle_is_everywhere(handle) ? handle->value : OVERLAP_RELAXED(handle->kernel);
    const uint32_t count = kernel ? __atomic_load_n(&used, __ATOMIC_ACQUIRE) : 0;
    act(handle);
    for (uint32_t i = 0; i < count; i++) {
        struct handle *form = learned(i);
        if (form && form != handle && (form->value == kernel || OVERLAP_RELAXED(form->kernel) == kernel))
            act(form);
    }
}

static void withdraw_form(struct handle *form) {
    overlap_cache_forget(&launch_cache, OVERLAP_RELAXED(form->value));
}

/* All forms of a kernel share their attributes, so decisions about all of them depend on one change. */
void handle_invalidate(struct handle *handle) {
    invalidate_decisions();
    handle_each_form(handle, withdraw_form);
}
