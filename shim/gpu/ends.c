/* Ends of kernels, with a module, a library, a context: see handle.h. */
#include "../sys/sys.h"
#include "launch.h"
#include "handle.h"
#include "point.h"
#include "table.h"

static bool belongs(const struct handle *handle, const struct handle_scope *scope) {
    const struct handle *origin;
    if (handle->kind == HANDLE_UNKNOWN)
        return true;
    switch (scope->of) {
    case HANDLES_AT:
        return true;
    case HANDLES_OF_OWNER:
        return handle->owner == scope->value;
    case HANDLES_OF_CONTEXT:
        return handle_is_everywhere(handle) || handle->context == scope->value;
    case HANDLES_OF_DEVICE:
        return handle_is_everywhere(handle) ||
               (handle->device == (int)scope->value && !context_is_made(handle->context));
    default:
        origin = handle_origin(handle);
        return handle->kind == (uint32_t)scope->value && handle->owner == 0 && !(origin && !handle_is_ending(origin));
    }
}

/* A kernel of every device outlives contexts, but the attributes that we have set may end with them. */
static bool stays(const struct handle *handle, const struct handle_scope *scope) {
    return handle_is_everywhere(handle) && (scope->of == HANDLES_OF_CONTEXT || scope->of == HANDLES_OF_DEVICE);
}

/* Acts for every record of a list that is in the scope, and was learned before it. Returns whether a decision was made about
 * one of them. One level of what is inside suffices: a module owns functions only. */
typedef void action(struct handle *handle, const struct handle_scope *scope);

static bool act_on(struct handle *handle, const struct handle_scope *scope, action *act);

static bool act_on_list(uint32_t first, const struct handle_scope *scope, action *act) {
    bool decided = false;
    for (uint32_t number = first, next; number; number = next) {
        next = handle_at(number)->sibling;
        decided |= act_on(handle_at(number), scope, act);
    }
    return decided;
}

static bool act_on(struct handle *handle, const struct handle_scope *scope, action *act) {
    const uint32_t kind = handle->kind;
    const struct handle_scope inside = {HANDLES_OF_OWNER, handle->value, scope->born, 0};
    if (!kind || !belongs(handle, scope) || (int32_t)(handle->born - scope->born) > 0)
        return false;
    bool decided = handle->decided;
    act(handle, scope);
    if (kind == HANDLE_MODULE)
        decided |= act_on_list(handle_first_of(inside.value), &inside, act);
    return decided;
}

static bool each(const struct handle_scope *scope, action *act) {
    bool decided = false;
    if (scope->of == HANDLES_AT) {
        struct handle *const handle = handle_at_address(scope->value);
        return handle && act_on(handle, scope, act);
    }
    if (scope->of == HANDLES_OF_OWNER && scope->value) {
        struct handle *const owner = handle_at_address(scope->value);
        decided = act_on_list(handle_first_of(scope->value), scope, act);
        if (owner && owner->kind == HANDLE_MODULE && (int32_t)(owner->born - scope->born) <= 0)
            act(owner, scope);
    }
    if (scope->of == HANDLES_OF_OWNER || scope->of == HANDLES_UNOWNED) /* also those that may belong to any owner */
        return act_on_list(handle_first_of(0), scope, act) || decided;
    for (uint32_t number = 1; number <= handles_used(); number++)
        decided |= act_on(handle_at(number), scope, act);
    return decided;
}

void handle_drop(struct handle *handle) {
    decisions_forget_of(handle);
    handle_free(handle);
}

static void begin(struct handle *handle, const struct handle_scope *scope) {
    decisions_forget_of(handle);
    if (!stays(handle, scope))
        __atomic_fetch_or(&handle->marks, (uint32_t)HANDLE_ENDING, __ATOMIC_RELEASE);
}

static void keep(struct handle *handle, const struct handle_scope *scope) {
    (void)scope;
    __atomic_fetch_and(&handle->marks, ~(uint32_t)HANDLE_ENDING, __ATOMIC_RELEASE);
}

static void forget(struct handle *handle, const struct handle_scope *scope) {
    decisions_forget_of(handle);
    if (!stays(handle, scope))
        handle_free(handle);
}

/* ---- Changes that could not be made, because the lock was not to be had ----
 *
 * Kernels that have ended are then still in the tables. So nothing is looked up until these changes are made, by the next
 * thread that asks and gets the lock. */

enum { MISSES = 64 }; /* on a full machine a handler that unloads may come some ten times in one critical section */
static struct miss {
    uint32_t state; /* 0: free, 1: being written, 2: to be made */
    bool gone;
    struct handle_scope scope;
} misses[MISSES];
static uint32_t missed_all; /* 1: there were more: every kernel is forgotten */
uint32_t handles_missed, handles_unmarked;

void handles_miss(const struct handle_scope *scope, bool gone) {
    uint32_t i = 0, free = 0;
    while (i < MISSES &&
           !__atomic_compare_exchange_n(&misses[i].state, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        free = 0, i++;
    if (i < MISSES) {
        misses[i].scope = *scope;
        misses[i].gone = gone;
        __atomic_store_n(&misses[i].state, 2, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&missed_all, 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&handles_missed, 1, __ATOMIC_RELEASE);
    invalidate_decisions();
}

bool handles_mend(void) {
    static uint32_t said;
    if (OVERLAP_LOAD(handles_unmarked) || !lock_take())
        return false;
    __atomic_store_n(&handles_missed, 0, __ATOMIC_RELAXED); /* set again by a change that is being written now */
    for (uint32_t i = 0; i < MISSES; i++)
        if (__atomic_load_n(&misses[i].state, __ATOMIC_ACQUIRE) == 2) {
            each(&misses[i].scope, misses[i].gone ? forget : keep);
            __atomic_store_n(&misses[i].state, 0, __ATOMIC_RELEASE);
        }
    if (__atomic_exchange_n(&missed_all, 0, __ATOMIC_RELAXED))
        for (uint32_t number = 1; number <= handles_used(); number++)
            if (handle_at(number)->kind)
                handle_drop(handle_at(number));
    lock_leave();
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        overlap_say("the library's lock was not to be had for a second: kernels were left alone meanwhile", NULL, NULL);
    return true;
}

/* ---- Calls ---- */

struct handle_scope handle_ends(enum handle_scope_of of, uint64_t value) {
    struct handle_scope scope = {of, value, 0, 0};
    if (!handles_born() ||
        (of == HANDLES_OF_OWNER && !handle_first_of(value) && !handle_first_of(0) && !handle_at_address(value)))
        return scope;
    bool decided = true;
    if (lock_take()) {
        scope.born = handles_born();
        decided = each(&scope, begin);
        lock_leave();
    } else {
        scope.born = handles_born();
        scope.unmarked = 1;
        __atomic_add_fetch(&handles_unmarked, 1, __ATOMIC_RELEASE);
    }
    if (decided)
        invalidate_decisions();
    POINT(handle_ending);
    return scope;
}

void handle_ended(const struct handle_scope *scope, bool gone) {
    if (!scope->born)
        return;
    if (lock_take()) {
        each(scope, gone ? forget : keep);
        lock_leave();
    } else {
        handles_miss(scope, gone);
    }
    if (scope->unmarked)
        __atomic_sub_fetch(&handles_unmarked, 1, __ATOMIC_RELEASE);
}
