/* Records of kernels and modules: see handle.h. */
#include <string.h>

#include "../sys/sys.h"
#include "../text.h"
#include "launch.h"
#include "device.h"
#include "handle.h"
#include "names.h"
#include "page.h"
#include "table.h"
#include "resolve.h"
#include "streams.h"
#include "vendor_ops.h"

struct handle *handle_find(const void *value) {
    const bool doubtful = OVERLAP_LOAD(handles_missed) | OVERLAP_LOAD(handles_unmarked);
    return __builtin_expect(doubtful, 0) && !handles_mend() ? NULL : handle_look((uint64_t)(uintptr_t)value);
}

/* ---- Names ---- */

/* The record whose name counts: a function's own, or that of the kernel that it came from. */
static struct handle *named(struct handle *handle) {
    struct handle *const origin = OVERLAP_RELAXED(handle->name_hash) ? NULL : handle_origin(handle);
    return origin ? origin : handle;
}

/* Queries the driver for the name, unless it is known. False: it stays unknown. */
static bool learn_name(struct handle *handle) {
    const enum vendor vendor = handle_vendor(handle);
    const uint32_t born = OVERLAP_RELAXED(handle->born);
    if (OVERLAP_RELAXED(handle->name_hash))
        return true;
    if (!driver_ready(vendor))
        return false;
    const int mode = OPERATION_OF(vendor, relax)();
    const char *const answer = OPERATION_OF(vendor, kernel_name)(handle);
    OPERATION_OF(vendor, restore)(mode);
    if (!answer || !lock_take())
        return false;
    if (handle->born == born && !handle->name) {
        handle->name = name_keep(answer);
        if (handle->name)
            __atomic_store_n(&handle->name_hash, name_hash(answer), __ATOMIC_RELAXED);
    }
    lock_leave();
    return OVERLAP_RELAXED(handle->name_hash);
}

bool handle_match(struct handle *handle, uint32_t policy, struct overlap_matches *matches) {
    handle = named(handle);
    if (!learn_name(handle) || !lock_take())
        return false;
    if (handle->matched != policy + 2) {
        const struct overlap_view view = overlap_table_view(overlap_armed()->table);
        overlap_match_kernel(&view, policy, name_text(handle->name), &handle->matches);
        handle->matched = policy + 2;
    }
    *matches = handle->matches;
    lock_leave();
    return true;
}

static struct overlap_row_index rows; /* under the lock */

uint32_t handle_row(const struct handle *handle, const struct overlap_row *row, const char *library, uint32_t reason) {
    handle = handle ? named((struct handle *)(uintptr_t)handle) : NULL;
    if (!lock_take())
        return reason;
    const uint32_t claimed = overlap_row_claim(&rows, overlap_current_page, row, handle ? handle->name_hash : 0,
                                               name_text(handle ? handle->name : 0), library, reason);
    lock_leave();
    return claimed;
}

uint32_t row_of_reason(uint32_t row, uint32_t reason) {
    if (!lock_take())
        return reason;
    const uint32_t claimed = overlap_row_of_reason(&rows, overlap_current_page, row, reason);
    lock_leave();
    return claimed;
}

void rows_forked(void) {
    rows.page = NULL;
}

/* ---- Decisions ---- */

void handle_invalidate(struct handle *handle) {
    struct handle *const origin = handle_origin(handle);
    __atomic_fetch_add(&handle->version, 1, __ATOMIC_RELEASE);
    if (origin)
        __atomic_fetch_add(&origin->version, 1, __ATOMIC_RELEASE);
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

void handle_assign_context(struct handle *handle, uint64_t context, int device) {
    if (OVERLAP_RELAXED(handle->context) || !is_of_context(handle_kind(handle)))
        return;
    __atomic_store_n(&handle->device, device, __ATOMIC_RELAXED);
    __atomic_store_n(&handle->context, context, __ATOMIC_RELAXED);
}

void handle_unassign_context(struct handle *handle) {
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
           !handle_is_ending(handle) && (!learned->name_hash || handle->name_hash == learned->name_hash);
}

void handle_learn(void *value, enum handle_kind kind, void *owner, const char *name, void *kernel) {
    const enum vendor vendor = handle_kind_vendor(kind);
    struct handle learned = {.value = (uint64_t)(uintptr_t)value,
                             .kind = kind,
                             .owner = (uint64_t)(uintptr_t)owner,
                             .kernel = (uint64_t)(uintptr_t)kernel,
                             .device = NO_DEVICE,
                             .name_hash = name ? name_hash(name) : 0};
    if (!value || !driver_ready(vendor))
        return;
    const struct handle *const module = handle_find(owner);
    if (module && handle_is(module, HANDLE_MODULE)) { /* the current context may be another one */
        learned.context = OVERLAP_RELAXED(module->context);
        learned.device = handle_device(module);
    } else if (is_of_context(kind)) {
        learned.context = current_context(vendor);
        learned.device = current_ordinal(vendor);
    }
    struct handle *known = handle_find(value);
    if (known && name)
        learn_name(known); /* a call that enumerates functions gives no name; asks the driver, so without the lock */
    if (!lock_take()) {    /* a signal handler: the kernel stays unknown */
        const struct handle_scope scope = {HANDLES_AT, learned.value, handles_born(), 0};
        if (known && !is_known(known, &learned))
            handles_miss(&scope, true);
        return;
    }
    known = handle_at_address(learned.value);
    const bool same = known && (kind == HANDLE_UNKNOWN || is_known(known, &learned));
    const bool replaced = known && !same;
    if (replaced) /* another kernel had the address */
        handle_drop(known);
    if (!same)
        handle_make(&learned, name);
    lock_leave();
    if (same)
        handle_assign_context(known, learned.context, learned.device);
    if (replaced)
        invalidate_decisions();
}
