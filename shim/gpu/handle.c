/* See handle.h. */
#include <string.h>

#include "../sys/sys.h"
#include "../text.h"
#include "launch.h"
#include "device.h"
#include "handle.h"
#include "table.h"
#include "resolve.h"
#include "streams.h"
#include "vendor_ops.h"

static struct pool handles = POOL_OF(handle, 1 << 17), decisions = POOL_OF(decision, 1 << 18);
static struct map numbers; /* address -> number of its record */
static uint32_t births;    /* the last number given to handle->born */
/* A change of the tables could not be made, because the lock was not to be had: kernels that have ended are still in
 * them. They are not used any more. */
static bool distrusted;

static struct handle *at(uint32_t number) {
    return number ? pool_at(&handles, number) : NULL;
}

struct handle *handle_find(const void *value) {
    struct handle *const found = at((uint32_t)map_get(&numbers, (uint64_t)(uintptr_t)value));
    return found && OVERLAP_RELAXED(found->value) == (uint64_t)(uintptr_t)value && handle_kind(found) &&
                   !__atomic_load_n(&distrusted, __ATOMIC_RELAXED)
               ? found
               : NULL;
}

struct handle *handle_origin(const struct handle *handle) {
    const uint64_t kernel = OVERLAP_RELAXED(handle->kernel);
    return kernel ? handle_find((const void *)(uintptr_t)kernel) : NULL;
}

static void distrust(void) {
    __atomic_store_n(&distrusted, true, __ATOMIC_RELAXED);
    invalidate_decisions();
}

void handles_prepare(void) {
    pool_prepare(&handles);
    pool_prepare(&decisions);
    map_prepare(&numbers);
    names_prepare();
}

/* ---- Names ---- */

const char *handle_name(struct handle *handle) {
    const char *const known = __atomic_load_n(&handle->name, __ATOMIC_ACQUIRE);
    const enum vendor vendor = handle_vendor(handle);
    const uint32_t born = OVERLAP_RELAXED(handle->born);
    if (known || !driver_ready(vendor))
        return known;
    const int mode = OPERATION_OF(vendor, relax)();
    const char *const answer = OPERATION_OF(vendor, kernel_name)(handle);
    OPERATION_OF(vendor, restore)(mode);
    if (!answer || !lock_take())
        return NULL;
    const char *const kept = name_keep(answer);
    if (handle->born == born)
        __atomic_store_n(&handle->name, kept, __ATOMIC_RELEASE);
    lock_leave();
    return kept;
}

/* ---- Decisions; the lock is held ---- */

static struct decision *decision_at(uint32_t number) {
    return number ? pool_at(&decisions, number) : NULL;
}

/* A kernel may have thousands of decisions: one for each size with which it is launched. */
enum { BUCKET_BITS = 14 };
static uint32_t *bucket_of(const struct handle *handle, uint64_t key) {
    static uint32_t buckets[1 << BUCKET_BITS];
    return &buckets[overlap_spread((uint64_t)(uintptr_t)handle ^ key, BUCKET_BITS)];
}

static void forget_decisions(struct handle *handle) {
    while (handle->decisions) {
        const uint32_t first = handle->decisions;
        uint32_t *at = bucket_of(handle, decision_at(first)->key);
        while (*at && *at != first) /* 0: a fork or a jump has interrupted a change */
            at = &decision_at(*at)->beside;
        if (*at)
            *at = decision_at(first)->beside;
        __atomic_store_n(&handle->decisions, decision_at(first)->next, __ATOMIC_RELAXED); /* decision_find() looks */
        pool_give(&decisions, first);
    }
}

/* Its own version and that of the kernel that it comes from: a change of that one concerns it, too. */
static uint32_t version_of(const struct handle *handle) {
    const struct handle *const origin = handle_origin(handle);
    return OVERLAP_LOAD(handle->version) + (origin ? OVERLAP_LOAD(origin->version) : 0); /* written without the lock */
}

static struct decision *find_decision(const struct handle *handle, const struct decision *asked) {
    for (uint32_t number = *bucket_of(handle, asked->key); number; number = decision_at(number)->beside) {
        struct decision *const found = decision_at(number);
        if (found->kernel == handle && found->key == asked->key && found->flags == asked->flags &&
            found->device == asked->device && found->least <= asked->least && asked->least <= found->most)
            return found;
    }
    return NULL;
}

bool decision_find(const struct handle *handle, const struct decision *asked, struct decision *found) {
    if (!OVERLAP_RELAXED(handle->decisions) || !lock_take())
        return false;
    const struct decision *const decision = find_decision(handle, asked);
    const bool holds = decision && decision->version == version_of(handle) && !handle_is_ending(handle);
    if (holds)
        *found = *decision;
    lock_leave();
    return holds;
}

void decision_keep(struct handle *handle, const struct decision *made, uint32_t epoch) {
    if (!lock_take())
        return;
    if (epoch == OVERLAP_LOAD(launch_epoch) && !handle_is_ending(handle)) {
        const uint32_t version = version_of(handle);
        if (handle->decisions && decision_at(handle->decisions)->version != version)
            forget_decisions(handle);
        const uint32_t number = pool_take(&decisions);
        struct decision *const kept = decision_at(number);
        if (kept) {
            *kept = *made;
            kept->version = version;
            kept->kernel = handle;
            uint32_t *const bucket = bucket_of(handle, kept->key);
            kept->beside = *bucket;
            *bucket = number;
            kept->next = handle->decisions;
            __atomic_store_n(&handle->decisions, number, __ATOMIC_RELAXED);
        }
    }
    const bool full = decisions.used == decisions.most && !decisions.free;
    lock_leave();
    if (full)
        decisions_forget();
}

void decision_is_proven(struct handle *handle, const struct decision *decision) {
    if (!lock_take())
        return;
    struct decision *const known = find_decision(handle, decision);
    if (known && known->size == decision->size)
        known->proven = 1;
    lock_leave();
}

void decisions_forget(void) {
    if (!lock_take())
        return;
    for (uint32_t number = 1; number <= handles.used; number++)
        forget_decisions(at(number));
    lock_leave();
    invalidate_decisions();
}

void handle_doubt(struct handle *handle) {
    struct handle *const origin = handle_origin(handle);
    __atomic_fetch_add(&handle->version, 1, __ATOMIC_RELEASE);
    if (origin)
        __atomic_fetch_add(&origin->version, 1, __ATOMIC_RELEASE);
}

void handle_invalidate(struct handle *handle) {
    handle_doubt(handle);
    invalidate_decisions();
}

/* ---- Marks ---- */

bool handle_is_marked(const struct handle *handle, enum handle_mark mark) {
    const struct handle *const origin = handle_origin(handle);
    return (OVERLAP_RELAXED(handle->marks) | (origin ? OVERLAP_RELAXED(origin->marks) : 0)) & (uint32_t)mark;
}

void handle_mark(struct handle *handle, enum handle_mark mark) {
    struct handle *const origin = handle_origin(handle);
    if (handle_is_marked(handle, mark))
        return;
    __atomic_fetch_or(&(origin ? origin : handle)->marks, (uint32_t)mark, __ATOMIC_RELAXED);
    handle_invalidate(handle);
}

/* ---- Learning ---- */

/* A module belongs to one context, and so do its functions. */
static bool is_of_context(uint32_t kind) {
    return kind == HANDLE_FUNCTION || kind == HANDLE_MODULE || kind == HANDLE_HIP_FUNCTION;
}

void handle_settle(struct handle *handle) {
    const enum vendor vendor = handle_vendor(handle);
    if (OVERLAP_RELAXED(handle->context) || !is_of_context(handle_kind(handle)) || !driver_ready(vendor))
        return;
    __atomic_store_n(&handle->device, device_here(vendor), __ATOMIC_RELAXED);
    __atomic_store_n(&handle->context, context_here(vendor), __ATOMIC_RELAXED);
}

void handle_unsettle(struct handle *handle) {
    const struct handle *const module = handle_find((void *)(uintptr_t)handle->owner);
    if (!is_of_context(handle_kind(handle)) || handle_origin(handle) || (module && handle_is(module, HANDLE_MODULE)))
        return; /* its context is known: a CUkernel's function is of the current one */
    __atomic_store_n(&handle->context, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->device, NO_DEVICE, __ATOMIC_RELAXED);
    handle_invalidate(handle);
}

/* Is this the kernel that the record already describes? A function may be obtained from its CUkernel and from its
 * library's module; and a function of a module is the same whichever context is current. If it is ending, the driver may
 * have reused its address and that of its module. */
static bool is_known(const struct handle *handle, const struct handle *learned) {
    const bool same_owner = handle->owner == learned->owner || (learned->kernel && handle->kernel == learned->kernel);
    return handle->kind == learned->kind && same_owner && (learned->owner || handle->context == learned->context) &&
           !handle_is_ending(handle) &&
           (!learned->name || (handle->name && strncmp(handle->name, learned->name, NAME_LIMIT) == 0));
}

static void fill(struct handle *handle, const struct handle *learned) {
    const uint32_t next = handle->next, version = handle->version + 1;
    const char *const name = learned->name ? name_keep(learned->name) : NULL;
    struct handle fresh = *learned;
    fresh.next = next;
    fresh.version = version;
    fresh.born = ++births;
    fresh.name = name;
    /* Threads without the lock may look at the record: in whole words, and at its kind last. */
    __atomic_store_n(&handle->kind, 0, __ATOMIC_RELAXED);
    for (size_t i = 1; i < sizeof fresh / sizeof(uint64_t); i++)
        __atomic_store_n((uint64_t *)handle + i, ((const uint64_t *)&fresh)[i], __ATOMIC_RELAXED);
    __atomic_store_n(&handle->kind, fresh.kind, __ATOMIC_RELEASE);
}
_Static_assert(sizeof(struct handle) % sizeof(uint64_t) == 0 && offsetof(struct handle, value) == 8, "fill()");

void handle_learn(void *value, enum handle_kind kind, void *owner, const char *name, void *kernel) {
    const enum vendor vendor = handle_kind_vendor(kind);
    struct handle learned = {.value = (uint64_t)(uintptr_t)value,
                             .kind = kind,
                             .owner = (uint64_t)(uintptr_t)owner,
                             .kernel = (uint64_t)(uintptr_t)kernel,
                             .device = NO_DEVICE,
                             .name = name};
    if (!value || !driver_ready(vendor))
        return;
    const struct handle *const module = handle_find(owner);
    if (module && handle_is(module, HANDLE_MODULE)) { /* the current context may be another one */
        learned.context = OVERLAP_RELAXED(module->context);
        learned.device = handle_device(module);
    } else if (is_of_context(kind)) {
        learned.context = context_here(vendor);
        learned.device = device_here(vendor);
    }
    struct handle *known = handle_find(value);
    if (known && name)
        handle_name(known); /* a call that enumerates functions gives no name; asks the driver, so without the lock */
    if (!lock_take()) {     /* a signal handler: the kernel stays unknown */
        if (known && !is_known(known, &learned))
            distrust();
        return;
    }
    uint32_t number = (uint32_t)map_get(&numbers, learned.value);
    known = at(number);
    const bool same = known && is_known(known, &learned);
    if (known && !same)
        forget_decisions(known); /* another kernel had the address */
    if (!known)
        number = pool_take(&handles);
    const bool placed = known || (number && map_put(&numbers, learned.value, number));
    if (placed && !same)
        fill(at(number), &learned);
    else if (!placed && number)
        pool_give(&handles, number);
    lock_leave();
    if (same)
        handle_settle(known);
    if (known && !same)
        invalidate_decisions();
}

/* ---- Ends ---- */

static bool belongs(const struct handle *handle, const struct handle_scope *scope) {
    const struct handle *origin;
    if (handle->kind == HANDLE_UNKNOWN)
        return true;
    switch (scope->of) {
    case HANDLES_OF_OWNER:
        return handle->owner == scope->value;
    case HANDLES_OF_CONTEXT:
        return handle_is_everywhere(handle) || handle->context == scope->value;
    case HANDLES_OF_DEVICE:
        return handle_is_everywhere(handle) || handle->device == (int)scope->value;
    default:
        origin = handle_origin(handle);
        return handle->kind == (uint32_t)scope->value && handle->owner == 0 && !(origin && !handle_is_ending(origin));
    }
}

/* A kernel of every device outlives contexts, but the attributes that we have set may end with them. */
static bool stays(const struct handle *handle, const struct handle_scope *scope) {
    return handle_is_everywhere(handle) && (scope->of == HANDLES_OF_CONTEXT || scope->of == HANDLES_OF_DEVICE);
}

/* Calls act for what belongs to the scope, and was learned before it; the lock is held. One level of what is inside
 * suffices: a module owns functions only. */
static void each(const struct handle_scope *scope,
                 void (*act)(struct handle *handle, const struct handle_scope *scope)) {
    for (uint32_t number = 1; number <= handles.used; number++) {
        struct handle *const handle = at(number);
        const uint32_t kind = handle->kind;
        if (!kind || !belongs(handle, scope) || (int32_t)(handle->born - scope->born) > 0)
            continue;
        const struct handle_scope inside = {HANDLES_OF_OWNER, handle->value, scope->born};
        act(handle, scope);
        if (kind == HANDLE_MODULE)
            each(&inside, act);
    }
}

static void begin(struct handle *handle, const struct handle_scope *scope) {
    forget_decisions(handle);
    if (!stays(handle, scope))
        __atomic_fetch_or(&handle->marks, (uint32_t)HANDLE_ENDING, __ATOMIC_RELEASE);
}

static void keep(struct handle *handle, const struct handle_scope *scope) {
    (void)scope;
    __atomic_fetch_and(&handle->marks, ~(uint32_t)HANDLE_ENDING, __ATOMIC_RELEASE);
}

static void forget(struct handle *handle, const struct handle_scope *scope) {
    const uint32_t number = (uint32_t)map_get(&numbers, handle->value);
    forget_decisions(handle);
    if (stays(handle, scope))
        return;
    map_put(&numbers, handle->value, 0);
    __atomic_store_n(&handle->kind, 0, __ATOMIC_RELEASE);
    pool_give(&handles, number);
}

struct handle_scope handle_ends(enum handle_scope_of of, uint64_t value) {
    struct handle_scope scope = {of, value, 0};
    if (!OVERLAP_RELAXED(handles.used))
        return scope;
    if (!lock_take()) {
        distrust();
    } else {
        scope.born = births;
        each(&scope, begin);
        lock_leave();
        invalidate_decisions();
    }
    return scope;
}

void handle_ended(const struct handle_scope *scope, bool gone) {
    if (!scope->born)
        return;
    if (!lock_take()) {
        distrust();
        return;
    }
    each(scope, gone ? forget : keep);
    lock_leave();
    invalidate_decisions();
}
