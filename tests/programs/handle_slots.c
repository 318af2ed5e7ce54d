/* The table of handles from inside: what two threads do to it between two statements, one after the other. */
#include "../../shim/vendor/common/handle.c"

#include <stdio.h>

struct overlap_cache launch_cache;
static struct state tables;
struct state *state = &tables;
bool real_ready(enum vendor vendor) {
    (void)vendor;
    return false;
}
#define ANSWER(vendor)                                                                                                 \
    uint64_t vendor##_context(void) {                                                                                  \
        return 0;                                                                                                      \
    }                                                                                                                  \
    int vendor##_device(void) {                                                                                        \
        return NO_DEVICE;                                                                                              \
    }                                                                                                                  \
    int vendor##_relax(void) {                                                                                         \
        return -1;                                                                                                     \
    }                                                                                                                  \
    void vendor##_restore(int mode) {                                                                                  \
        (void)mode;                                                                                                    \
    }                                                                                                                  \
    const char *vendor##_kernel_name(const struct handle *handle) {                                                    \
        (void)handle;                                                                                                  \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    void vendor##_forget(const struct handle *handle) {                                                                \
        (void)handle;                                                                                                  \
    }
ANSWER(cuda)
ANSWER(hip)
void size_forget(const struct handle *handle) {
    (void)handle;
}
void facts_changed(void) {}
void overlap_cache_forget(struct overlap_cache *cache, uint64_t handle) {
    (void)cache, (void)handle;
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

int main(void) {
    const uint64_t a = 0x10000, b = beside(a), c = beside(b);
    /* One thread has a slot and does not know yet what for; another one needs the same. */
    const struct handle *first = slot_new(a), *second = slot_new(b);
    printf("claimed: %s\n", first && first != second && first->value == a ? "its own" : "taken away");
    /* One slot is dead, and two threads want it. */
    handle_learn((void *)c, HANDLE_FUNCTION, (void *)1, "c", NULL);
    handle_forget_owner((void *)1);
    const uint64_t d = beside(c), e = beside(d);
    first = slot_new(d), second = slot_new(e);
    printf("dead: %s\n", first && first != second && first->value == d ? "its own" : "taken away");
    return 0;
}
