/* Kernels by handle. A CUfunction and a CUkernel look alike to a launch, but only the call that made one tells which it
 * is, and only the matching functions may be asked about it. Entries are found by an open-addressed table without
 * locks; an entry is never moved or freed, only declared dead when its module goes.
 *
 * handle->life says which kernel has the slot, and changes by compare-and-swap. A thread that forgets a kernel may be stopped anywhere,
 * while another one learns the next kernel at that address. So it never claims the slot; and what it drops is kept by the number of the
 * kernel that ended, or may be dropped at any time (decisions).
 */
#include <string.h>

#include "../../text.h"
#include "state.h"

enum { PROBES = 64, NAME_LIMIT = 4096, TRIES = 1000 };

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static uint32_t used;      /* places of `order`, at most at a time */
static uint32_t free_from; /* none of them is free before this one, or one was freed this instant */
static uint64_t names_used;
static uint32_t births; /* of handles: see handle->born */

static enum vendor vendor_of(uint32_t kind) {
    return kind >= HANDLE_HIP_FUNCTION ? VENDOR_HIP : VENDOR_CUDA;
}

static uint32_t kind_of(uint64_t life) {
    return (uint8_t)life;
}
static uint32_t born_of(uint64_t life) {
    return (uint32_t)(life >> HANDLE_BORN_SHIFT);
}
static uint64_t life_of(uint32_t kind, uint32_t born) {
    return (uint64_t)born << HANDLE_BORN_SHIFT | kind;
}
static uint64_t life_now(const struct handle *handle) {
    return __atomic_load_n(&handle->life, __ATOMIC_ACQUIRE);
}
static bool lives(uint64_t life) {
    return kind_of(life) && kind_of(life) != HANDLE_CLAIMED;
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

/* Replaces the life of the kernel that the caller has seen in the slot. False: another kernel has it by now, or it is dead. */
static bool replace_life(struct handle *slot, uint64_t *seen, uint64_t after) {
    const uint64_t kernel = *seen & ~HANDLE_ENDING;
    while ((*seen & ~HANDLE_ENDING) == kernel)
        if (__atomic_compare_exchange_n(&slot->life, seen, after, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
            return true;
    return false;
}

/* Makes the slot the caller's to fill: kind becomes HANDLE_CLAIMED. *seen: what was replaced; the kernel may have died meanwhile. False:
 * another thread fills the slot, or has filled it. */
static bool claim(struct handle *slot, uint64_t *seen) {
    const uint32_t born = born_of(*seen);
    while (born_of(*seen) == born && kind_of(*seen) != HANDLE_CLAIMED)
        if (replace_life(slot, seen, life_of(HANDLE_CLAIMED, born)))
            return true;
    return false;
}

/* Handles that live are in `order`, so that an unload need not look at all slots, or at all that were ever used. */
static void enlist(struct handle *handle) {
    uint32_t place = LOAD(free_from), none = 0;
    const uint32_t from = place, number = (uint32_t)(handle - state->handles.slots) + 1;
    for (; !__atomic_compare_exchange_n(&state->handles.order[place], &none, number, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED);
         none = 0)
        place = (place + 1) & (HANDLE_SLOTS - 1);
    __atomic_store_n(&handle->place, place + 1, __ATOMIC_RELAXED);
    none = from;
    __atomic_compare_exchange_n(&free_from, &none, place + 1 < HANDLE_SLOTS ? place + 1 : 0, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    uint32_t before = LOAD(used);
    while (before <= place &&
           !__atomic_compare_exchange_n(&used, &before, place + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static void strike(uint32_t place) {
    __atomic_store_n(&state->handles.order[place], 0, __ATOMIC_RELEASE);
    uint32_t before = LOAD(free_from);
    while (before > place &&
           !__atomic_compare_exchange_n(&free_from, &before, place, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* A slot for a value that has none: the first dead or free one. Contexts and modules come and go, so their slots are used
 * again. NULL: there is none near; then the kernel stays unknown and is left alone. */
static struct handle *slot_new(uint64_t value) {
    for (uint64_t probe = 0; probe < PROBES; probe++) {
        struct handle *slot = slot_at(value, probe);
        uint64_t life = life_now(slot);
        if (kind_of(life) || !claim(slot, &life))
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

/* Is it the kernel that we know already? A function may be got from its CUkernel and from its library's module; and one of a
 * module is the same in whatever context the program asks for it, also where none is current. */
static bool is_known(struct handle *handle, enum handle_kind kind, const void *owner, const char *name,
                     const void *kernel, uint64_t context) {
    const bool same_owner = LOAD(handle->owner) == (uint64_t)(uintptr_t)owner ||
                            (kernel && LOAD(handle->kernel) == (uint64_t)(uintptr_t)kernel);
    if (!handle_is(handle, kind) || !same_owner || (!owner && LOAD(handle->context) != context))
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
    if (LOAD(handle->context) || !is_of_context(handle_kind(handle)) || !real_ready(vendor))
        return;
    __atomic_store_n(&handle->device, OPERATION_OF(vendor, device)(), __ATOMIC_RELAXED);
    __atomic_store_n(&handle->context, OPERATION_OF(vendor, context)(), __ATOMIC_RELAXED);
}

static void fill(struct handle *handle, void *owner, const char *name, void *kernel, uint64_t context, int device) {
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

static void publish(struct handle *handle, enum handle_kind kind) {
    const uint64_t life = life_of(kind, __atomic_add_fetch(&births, 1, __ATOMIC_RELAXED));
    __atomic_store_n(&handle->life, life, __ATOMIC_RELEASE);
    facts_changed();
    overlap_cache_forget(&launch_cache, handle->value); /* decided for another kernel, or while nobody knew this one */
}

void handle_learn(void *value, enum handle_kind kind, void *owner, const char *name, void *kernel) {
    const enum vendor vendor = vendor_of(kind);
    uint64_t context = 0;
    int device = NO_DEVICE;
    if (!value || !state)
        return;
    if (is_of_context(kind) && real_ready(vendor)) {
        const struct handle *module = handle_find(owner);
        const bool of_module = module && handle_is(module, HANDLE_MODULE);
        context = of_module ? LOAD(module->context) : OPERATION_OF(vendor, context)();
        device = of_module ? LOAD(module->device) : OPERATION_OF(vendor, device)();
    }
    for (int tries = 0; tries < TRIES; tries++, overlap_pause()) {
        struct handle *handle = slot_of((uint64_t)(uintptr_t)value);
        uint64_t before = handle ? life_now(handle) : 0;
        if (handle && is_known(handle, kind, owner, name, kernel, context)) {
            handle_settle(handle);
            return; /* asked for again */
        }
        if (handle && (LOAD(handle->value) != (uint64_t)(uintptr_t)value || !claim(handle, &before)))
            continue; /* another thread is about it */
        if (!handle && !(handle = slot_new((uint64_t)(uintptr_t)value)))
            return;
        if (kind_of(before)) /* another kernel had the address */
            OPERATION_OF(vendor_of(kind_of(before)), forget)(born_of(before));
        fill(handle, owner, name, kernel, context, device);
        if (!kind_of(before))
            enlist(handle);
        publish(handle, kind);
        return;
    }
}

struct handle *handle_find(const void *value) {
    struct handle *handle = value ? slot_of((uint64_t)(uintptr_t)value) : NULL;
    return handle && lives(life_now(handle)) ? handle : NULL;
}

/* The handle at the i-th place, and its life; or NULL. */
static struct handle *learned(uint32_t i, uint64_t *life) {
    const uint32_t index = __atomic_load_n(&state->handles.order[i], __ATOMIC_ACQUIRE);
    struct handle *handle = index ? &state->handles.slots[index - 1] : NULL;
    *life = handle ? life_now(handle) : 0;
    return lives(*life) ? handle : NULL;
}

static bool belongs(const struct handle *handle, uint32_t kind, const struct handle_scope *scope) {
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
                 void (*act)(struct handle *handle, uint64_t life, const struct handle_scope *scope)) {
    const uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t life;
        struct handle *handle = learned(i, &life);
        const uint32_t kind = kind_of(life);
        if (!handle || !belongs(handle, kind, scope))
            continue;
        struct handle_scope inside = {HANDLES_OF_OWNER, handle->value, scope->born};
        act(handle, life, scope);
        if (kind == HANDLE_CONTEXT)
            inside.of = HANDLES_OF_CONTEXT;
        if (kind == HANDLE_MODULE || kind == HANDLE_CONTEXT) /* deeper goes no owner: a module's are functions */
            each(&inside, act);
    }
}

static void begin(struct handle *handle, uint64_t life, const struct handle_scope *scope) {
    if (!stays(handle, scope))
        replace_life(handle, &life, life | HANDLE_ENDING);
}

static void withdraw(struct handle *handle, uint64_t life, const struct handle_scope *scope) {
    (void)life, (void)scope;
    overlap_cache_forget(&launch_cache, handle->value);
}

static void keep(struct handle *handle, uint64_t life, const struct handle_scope *scope) {
    if (!stays(handle, scope))
        replace_life(handle, &life, life & ~HANDLE_ENDING);
}

static void forget(struct handle *handle, uint64_t life, const struct handle_scope *scope) {
    const uint64_t value = LOAD(handle->value);
    const uint32_t place = LOAD(handle->place), kind = kind_of(life), born = born_of(life);
    if (stays(handle, scope))
        withdraw(handle, life, scope);
    else if ((int32_t)(born - scope->born) <= 0 && replace_life(handle, &life, life_of(0, born))) {
        strike(place - 1);
        overlap_cache_forget(&launch_cache, value);
        OPERATION_OF(vendor_of(kind), forget)(born);
    }
}

/* The marks come first: what is decided from here on is not kept (facts.c), and what was decided before is withdrawn. */
struct handle_scope handle_ends(enum handle_scope_of of, uint64_t value) {
    const struct handle_scope scope = {of, value, LOAD(births)};
    each(&scope, begin);
    facts_changed();
    each(&scope, withdraw);
    return scope;
}

void handle_ended(const struct handle_scope *scope, bool gone) {
    each(scope, gone ? forget : keep);
}

void handle_each(void (*act)(struct handle *handle)) {
    const uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t life;
        struct handle *handle = learned(i, &life);
        if (handle)
            act(handle);
    }
}

const char *handle_name(struct handle *handle) {
    const char *known = __atomic_load_n(&handle->name, __ATOMIC_ACQUIRE);
    const enum vendor vendor = handle_vendor(handle);
    if (known || !real_ready(vendor))
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
    handle_doubted(handle);
}

void handle_each_form(struct handle *handle, void (*act)(struct handle *form)) {
    const uint64_t kernel = handle_is_everywhere(handle) ? handle->value : LOAD(handle->kernel);
    const uint32_t count = kernel ? __atomic_load_n(&used, __ATOMIC_ACQUIRE) : 0;
    act(handle);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t life;
        struct handle *form = learned(i, &life);
        if (form && form != handle && (form->value == kernel || LOAD(form->kernel) == kernel))
            act(form);
    }
}

static void withdraw_form(struct handle *form) {
    overlap_cache_forget(&launch_cache, form->value);
}

/* All forms of a kernel share their attributes. */
void handle_doubted(struct handle *handle) {
    facts_changed();
    handle_each_form(handle, withdraw_form);
}
