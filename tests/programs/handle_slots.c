/* The table of handles from inside: what two threads do between two statements, one after the other, and
 * what is left of a kernel whose handle and address are used again. Nothing of what is tested is stubbed out. */
#include "../../shim/vendor/common/handle.c"

#include <stdio.h>

static struct overlap_cache_line *no_line;
struct overlap_cache launch_cache = OVERLAP_CACHE_EMPTY(&no_line);
static struct state tables;
static uint32_t forgotten[2]; /* the number of the last kernel that each vendor was told about */
static uint64_t meanwhile;    /* what another thread learns while a kernel is being forgotten; 0: nothing */
bool driver_ready(enum vendor vendor) {
    (void)vendor;
    return false;
}
#define ANSWER(vendor, index)                                                                                          \
    static uint64_t vendor##_context(void) {                                                                           \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int vendor##_device(void) {                                                                                 \
        return NO_DEVICE;                                                                                              \
    }                                                                                                                  \
    static int vendor##_relax(void) {                                                                                  \
        return -1;                                                                                                     \
    }                                                                                                                  \
    static void vendor##_restore(int mode) {                                                                           \
        (void)mode;                                                                                                    \
    }                                                                                                                  \
    static const char *vendor##_kernel_name(const struct handle *handle) {                                             \
        (void)handle;                                                                                                  \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    static void vendor##_forget(uint32_t born) {                                                                       \
        const uint64_t value = meanwhile;                                                                              \
        forgotten[index] = born;                                                                                       \
        meanwhile = 0;                                                                                                 \
        handle_learn((void *)value, HANDLE_FUNCTION, (void *)10, "next", NULL);                                        \
    }
ANSWER(cuda, 0)
ANSWER(hip, 1)

/* As preload/vendors.c, but for what handle.c does not call. */
#define OPERATIONS(vendor)                                                                                             \
    {.context = vendor##_context,                                                                                      \
     .device = vendor##_device,                                                                                        \
     .relax = vendor##_relax,                                                                                          \
     .restore = vendor##_restore,                                                                                      \
     .kernel_name = vendor##_kernel_name,                                                                              \
     .forget = vendor##_forget}
const struct vendor_operations vendor_operations[VENDORS] = {OPERATIONS(cuda), OPERATIONS(hip)};
void invalidate_decisions(void) {}
/* Of state.c, which makes no table here. */
struct real_tables *real_tables;
bool overlap_page_prepare(void) {
    return false;
}
void *overlap_map(size_t size) {
    (void)size;
    return NULL;
}
void overlap_unmap(void *memory, size_t size) {
    (void)memory, (void)size;
}
void overlap_empty(void *memory, size_t size) {
    (void)memory, (void)size;
}

static struct handle *learn(uint64_t value, enum handle_kind kind, uint64_t owner, const char *name) {
    handle_learn((void *)value, kind, (void *)owner, name, NULL);
    return handle_find((void *)value);
}

static void end(uint64_t owner, bool gone) {
    const struct handle_scope ending = handle_ends(HANDLES_OF_OWNER, owner);
    handle_ended(&ending, gone);
}

static void two_threads_want_a_handle(void) {
    const uint64_t a = 0x10000, b = 0x10010, c = 0x10020;
    /* One thread has a handle and does not know yet what for; another one needs one. */
    struct handle *const first = take_free(), *second = learn(a, HANDLE_FUNCTION, 1, "a");
    printf("claimed: %s\n", first && second && first != second ? "its own" : "taken away");
    give_back(first);
    /* What has ended is given out again, once. */
    end(1, true);
    struct handle *const third = take_free(), *const fourth = take_free(), *const fifth = take_free();
    printf("ended: %s\n", third != fourth && fourth != fifth && third != fifth ? "their own" : "given out twice");
    give_back(third), give_back(fourth), give_back(fifth);
    /* One thread finds the handle of an address, another one ends it and gives it to another address; then the first goes on. */
    learn(b, HANDLE_FUNCTION, 2, "b");
    uint64_t number = index_get(b), none = 0;
    end(2, true);
    second = learn(c, HANDLE_FUNCTION, 3, "c");
    index_swap(b, &none, number);
    printf("stale: %d", number_of(second) == number && handle_find((void *)b) == NULL);
    learn(b, HANDLE_FUNCTION, 3, "b");
    printf(", learned: %s %s\n", handle_find((void *)b)->name, handle_find((void *)c)->name);
    end(3, true);
}

static void two_threads_learn_an_address(void) {
    const uint64_t a = 0x11000;
    struct handle *const mine = take_free();
    uint64_t none = 0;
    fill(mine, a, (void *)4, "a", NULL, 0, NO_DEVICE);
    __atomic_store_n(&mine->kind, (uint32_t)HANDLE_FUNCTION, __ATOMIC_RELEASE);
    struct handle *const its = learn(a, HANDLE_FUNCTION, 4, "a"); /* the index does not name mine yet */
    printf("both learn: %d %d\n", its != NULL && its != mine, index_swap(a, &none, number_of(mine)));
    end(4, true); /* ends mine, too */
    printf("both ended: %d %d\n", handle_find((void *)a) == NULL, is_alive(mine->kind));
    /* Two threads replace what was at the address: the last one counts, and nothing is left of the others. */
    learn(a, HANDLE_FUNCTION, 4, "a");
    meanwhile = a;
    const struct handle *const last = learn(a, HANDLE_FUNCTION, 5, "last");
    end(4, true), end(10, true);
    printf("both replace: %s %d\n", last->name, handle_find((void *)a) == last);
    end(5, true);
}

static void vendors(void) {
    const uint64_t h = 0x30000;
    const uint32_t born = handle_born(learn(h, HANDLE_HIP_FUNCTION, 5, "h"));
    forgotten[0] = forgotten[1] = 0;
    end(5, true);
    printf("told: CUDA %d, HIP %d\n", forgotten[0] == born, forgotten[1] == born);
}

static void a_call_that_ends_nothing_or_something_else(void) {
    const uint64_t k = 0x40000;
    struct handle *handle = learn(k, HANDLE_FUNCTION, 6, "k");
    handle_mark(handle, HANDLE_REFUSED);
    struct handle_scope ending = handle_ends(HANDLES_OF_OWNER, 6);
    printf("meanwhile: %d", handle_is_ending(handle));
    handle_ended(&ending, false);
    printf(", refused: %d %d\n", handle_is_ending(handle), handle_is_marked(handle, HANDLE_REFUSED));
    /* The driver has given the same module and the same function out again before the call has returned. */
    ending = handle_ends(HANDLES_OF_OWNER, 6);
    handle = learn(k, HANDLE_FUNCTION, 6, "k");
    printf("learned meanwhile: %d %d", handle_is_ending(handle), handle_is_marked(handle, HANDLE_REFUSED));
    handle_ended(&ending, true);
    printf(", there: %d\n", handle_find((void *)k) == handle);
    /* Two calls at once, of which the first is refused. */
    ending = handle_ends(HANDLES_OF_OWNER, 6);
    const struct handle_scope refused = handle_ends(HANDLES_OF_OWNER, 6);
    handle_ended(&refused, false);
    handle_ended(&ending, true);
    printf("ended: %d\n", handle_find((void *)k) == NULL);
}

/* The thread that forgets a kernel may be stopped there, while the next one at the address is learned, launched and ended. */
static void an_address_that_is_used_again_while_its_kernel_is_forgotten(void) {
    const uint64_t v = 0x50000;
    learn(v, HANDLE_FUNCTION, 10, "before");
    meanwhile = v;
    end(10, true);
    const struct handle *handle = handle_find((void *)v);
    printf("learned while the former is forgotten: %s\n", handle ? handle->name : "unknown");
    end(10, true);
    printf("ended, too: %d\n", handle_find((void *)v) == NULL);
}

/* A thread may have launched a kernel before another one learned it. */
static void decisions_about_a_kernel_that_nobody_knew(void) {
    const uint64_t v = 0x60000, key = overlap_cache_key(256, 0, 0);
    overlap_cache_use(&launch_cache, &tables.cache);
    overlap_cache_keep(&launch_cache, v, key, 1, 1000, OVERLAP_WORD_VALID);
    const bool kept = overlap_cache_find(&launch_cache, v, key, 9, &(uint64_t){0});
    learn(v, HANDLE_FUNCTION, 11, "k");
    printf("decided before it was learned: %d, and after: %d\n", kept,
           overlap_cache_find(&launch_cache, v, key, 9, &(uint64_t){0}) != 0);
    end(11, true);
}

/* More kernels, one after the other, than there is room for; every handle has an address of its own. */
static void kernels_that_come_and_go(void) {
    enum { MANY = 300000 };
    const uint32_t before = used;
    for (uint64_t i = 0; i < MANY; i++) {
        learn(0x1000000 + 16 * i, HANDLE_FUNCTION, 7, "k");
        if (i % 1000 != 0)
            end(7, true);
    }
    printf("never used before: %u\n", used - before);
}

/* Where all entries are in use, the next kernel at an address gets that of the last one there. */
static void a_full_table(void) {
    const uint64_t v = 0x70000;
    learn(v, HANDLE_FUNCTION, 12, "old");
    used = HANDLE_SLOTS;
    free_list &= ~(uint64_t)UINT32_MAX;
    const struct handle *handle = learn(v, HANDLE_FUNCTION, 13, "new");
    printf("full: %s %d\n", handle ? handle->name : "unknown", learn(v + 16, HANDLE_FUNCTION, 13, "more") == NULL);
}

int main(void) {
    state = &tables;
    two_threads_want_a_handle();
    two_threads_learn_an_address();
    vendors();
    a_call_that_ends_nothing_or_something_else();
    an_address_that_is_used_again_while_its_kernel_is_forgotten();
    decisions_about_a_kernel_that_nobody_knew();
    kernels_that_come_and_go();
    a_full_table();
    return 0;
}
