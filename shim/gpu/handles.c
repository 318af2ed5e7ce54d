/* The table of kernels and modules: see handle.h. */
#include "../sys/sys.h"
#include "handle.h"
#include "names.h"
#include "table.h"

static struct pool handles = POOL_OF(handle, 1 << 17);
static struct map numbers; /* address -> number of its record */
static struct map owners;  /* module or library -> number of the first record of the list that it owns */
static uint32_t unowned;   /* the first record of the list without an owner */
static uint32_t births;    /* the last number given to handle->born */

struct handle *handle_at(uint32_t number) {
    return number ? pool_at(&handles, number) : NULL;
}

uint32_t handles_used(void) {
    return OVERLAP_RELAXED(handles.used);
}

uint32_t handles_born(void) {
    return OVERLAP_RELAXED(births);
}

struct handle *handle_at_address(uint64_t value) {
    return handle_at((uint32_t)map_get(&numbers, value));
}

struct handle *handle_look(uint64_t value) {
    struct handle *const found = handle_at_address(value);
    return found && OVERLAP_RELAXED(found->value) == value && handle_kind(found) ? found : NULL;
}

struct handle *handle_origin(const struct handle *handle) {
    const uint64_t kernel = OVERLAP_RELAXED(handle->kernel);
    return kernel ? handle_look(kernel) : NULL;
}

/* ---- Changes; the lock is held ---- */

uint32_t handle_first_of(uint64_t owner) {
    return owner ? (uint32_t)map_get(&owners, owner) : OVERLAP_RELAXED(unowned);
}

static bool set_first(uint64_t owner, uint32_t number) {
    if (owner)
        return map_put(&owners, owner, number);
    __atomic_store_n(&unowned, number, __ATOMIC_RELAXED);
    return true;
}

/* False: there is no room for another owner. */
static bool list(struct handle *handle) {
    const uint32_t first = handle_first_of(handle->owner);
    if (!set_first(handle->owner, handle->number))
        return false;
    handle->before = 0;
    handle->sibling = first;
    if (first)
        handle_at(first)->before = handle->number;
    return true;
}

static void unlist(struct handle *handle) {
    if (handle->before)
        handle_at(handle->before)->sibling = handle->sibling;
    else
        set_first(handle->owner, handle->sibling);
    if (handle->sibling)
        handle_at(handle->sibling)->before = handle->before;
}

void handle_make(const struct handle *learned, const char *name) {
    const uint32_t number = pool_take(&handles);
    if (!number)
        return;
    struct handle *const handle = handle_at(number);
    struct handle fresh = *learned;
    fresh.next = handle->next;
    fresh.version = handle->version + 1;
    fresh.born = births + 1;
    fresh.number = number;
    fresh.name = name ? name_keep(name) : 0;
    fresh.name_hash = fresh.name ? learned->name_hash : 0;
    __atomic_store_n(&births, fresh.born, __ATOMIC_RELAXED);
    /* Threads without the lock may look at the record: in whole words, and at its kind last. */
    for (size_t i = 1; i < sizeof fresh / sizeof(uint64_t); i++)
        __atomic_store_n((uint64_t *)handle + i, ((const uint64_t *)&fresh)[i], __ATOMIC_RELAXED);
    if (list(handle) && map_put(&numbers, learned->value, number)) {
        __atomic_store_n(&handle->kind, learned->kind, __ATOMIC_RELEASE);
        return;
    }
    if (handle_first_of(handle->owner) == number)
        unlist(handle);
    name_give(handle->name);
    handle->name = 0;
    pool_give(&handles, number);
}

_Static_assert(sizeof(struct handle) % sizeof(uint64_t) == 0 && offsetof(struct handle, value) == 8, "handle_make()");

void handle_free(struct handle *handle) {
    unlist(handle);
    name_give(handle->name);
    handle->name = 0;
    map_put(&numbers, handle->value, 0);
    __atomic_store_n(&handle->kind, 0, __ATOMIC_RELEASE);
    pool_give(&handles, handle->number);
}
