/* The table of handles and that of sizes from inside: what two threads do between two statements, one after the other, and
 * what is left of a kernel whose slot and address are used again. Nothing of what is tested is stubbed out. */
#include "../../shim/vendor/common/handle.c"
#include "../../shim/vendor/common/size.h"

#include <stdio.h>

static struct overlap_cache_line *no_line;
struct overlap_cache launch_cache = OVERLAP_CACHE_EMPTY(&no_line);
static struct state tables;
static uint64_t forgotten[2]; /* the last handle that each vendor was told about */
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
    static void vendor##_forget(const struct handle *handle) {                                                         \
        forgotten[index] = handle->value;                                                                              \
    }
ANSWER(cuda, 0)
ANSWER(hip, 1)

/* As preload/operations.S, but for what handle.c does not call. */
struct vendor_operations operations;
__asm__(".globl __start_vendor_operations\n.set __start_vendor_operations, operations");
#define SET(name)                                                                                                      \
    operations.name[VENDOR_CUDA] = (int32_t)((uintptr_t)cuda_##name - (uintptr_t)&operations);                         \
    operations.name[VENDOR_HIP] = (int32_t)((uintptr_t)hip_##name - (uintptr_t)&operations)
static void set_operations(void) {
    SET(context);
    SET(device);
    SET(relax);
    SET(restore);
    SET(kernel_name);
    SET(forget);
}
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

static uint64_t place(uint64_t value) {
    return (value >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - HANDLE_SLOT_BITS);
}

/* The next value behind `value` that belongs into the same slot. */
static uint64_t beside(uint64_t value) {
    uint64_t next = value + 16;
    while (place(next) != place(value))
        next += 16;
    return next;
}

static struct handle *learn(uint64_t value, enum handle_kind kind, uint64_t owner, const char *name) {
    handle_learn((void *)value, kind, (void *)owner, name, NULL);
    return handle_find((void *)value);
}

static void end(uint64_t owner, bool gone) {
    const struct handle_scope ending = handle_ends(HANDLES_OF_OWNER, owner);
    handle_ended(&ending, gone);
}

static void two_threads_want_a_slot(void) {
    const uint64_t a = 0x10000, b = beside(a), c = beside(b);
    /* One thread has a slot and does not know yet what for; another one needs the same. */
    const struct handle *first = slot_new(a), *second = slot_new(b);
    printf("claimed: %s\n", first && first != second && first->value == a ? "its own" : "taken away");
    /* One slot is dead, and two threads want it. */
    learn(c, HANDLE_FUNCTION, 1, "c");
    end(1, true);
    const uint64_t d = beside(c), e = beside(d);
    first = slot_new(d), second = slot_new(e);
    printf("dead: %s\n", first && first != second && first->value == d ? "its own" : "taken away");
}

static void sizes_of_a_kernel_that_is_gone(void) {
    const uint64_t v = 0x20000, w = beside(v);
    uint32_t asked = 0;
    size_note(learn(v, HANDLE_FUNCTION, 2, "v"), 100, 5000);
    bool known = size_asked(handle_find((void *)v), 5000, &asked);
    printf("noted: %d %u\n", known, asked);
    end(2, true);
    learn(w, HANDLE_FUNCTION, 3, "w");
    const struct handle *again = learn(v, HANDLE_FUNCTION, 4, "v");
    printf("again: %d %d\n", size_asked(again, 5000, &asked), size_is_ours(again, 5000));
    size_note(again, 200, 5000);
    known = size_asked(again, 5000, &asked);
    printf("noted anew: %d %u\n", known, asked);
    size_note(again, 300, 5000);
    printf("two sizes: %d %d\n", size_asked(again, 5000, &asked), size_is_ours(again, 5000));
}

static void vendors(void) {
    const uint64_t h = 0x30000;
    learn(h, HANDLE_HIP_FUNCTION, 5, "h");
    forgotten[0] = forgotten[1] = 0;
    end(5, true);
    printf("told: CUDA %d, HIP %d\n", forgotten[0] == h, forgotten[1] == h);
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

/* More kernels, one after the other, than there is room for sizes; every handle has an address of its own. */
static void kernels_that_come_and_go(void) {
    enum { MANY = 300000 };
    uint32_t asked = 0, known = 0;
    const uint32_t before = used;
    const struct handle *handle = NULL;
    for (uint64_t i = 0; i < MANY; i++) {
        handle = learn(0x1000000 + 16 * i, HANDLE_FUNCTION, 7, "k");
        size_note(handle, (uint32_t)i % 100, 7000);
        known += size_asked(handle, 7000, &asked) && asked == i % 100;
        if (i % 1000 != 0)
            end(7, true);
    }
    printf("sizes known: %u, listed: %u more\n", known, used - before);
    /* Those that live kept theirs. */
    handle = learn(0x2000000, HANDLE_FUNCTION, 8, "k");
    size_note(handle, 77, 7000);
    for (uint64_t i = 0; i < MANY; i++)
        size_note(learn(0x3000000 + 16 * i, HANDLE_FUNCTION, 9, "k"), 1, 7000), end(9, true);
    known = size_asked(handle, 7000, &asked);
    printf("that of one that lives: %u %u\n", known, asked);
}

int main(void) {
    set_operations();
    state = &tables;
    two_threads_want_a_slot();
    sizes_of_a_kernel_that_is_gone();
    vendors();
    a_call_that_ends_nothing_or_something_else();
    kernels_that_come_and_go();
    return 0;
}
