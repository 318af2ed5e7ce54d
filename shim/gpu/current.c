/* What is current in the calling thread: see current.h. */
#include "current.h"
#include "resolve.h"
#include "table.h"
#include "vendor_ops.h"

uint32_t contexts_changed;

RARE uint64_t query_context(enum vendor vendor) {
    const uint32_t changed = __atomic_load_n(&contexts_changed, __ATOMIC_ACQUIRE);
    if (!driver_ready(vendor))
        return 0;
    if (this_thread.contexts_at != changed)
        for (int i = 0; i < VENDORS; i++)
            this_thread.context[i] = 0;
    this_thread.contexts_at = changed;
    this_thread.device[vendor] = 0;
    return this_thread.context[vendor] = OPERATION_OF(vendor, context)();
}

RARE int query_ordinal(enum vendor vendor) {
    const int device = driver_ready(vendor) ? OPERATION_OF(vendor, device)() : NO_DEVICE;
    this_thread.device[vendor] = device + 1;
    return device;
}

static struct map made; /* context -> 1 */

/* Without the lock a context stays unknown, and is forgotten with the primary one of its device. */
static void set_made(uint64_t context, uint64_t value) {
    if (!context || !lock_take())
        return;
    map_put(&made, context, value);
    lock_leave();
}

void context_made(uint64_t context) {
    set_made(context, 1);
}

void context_unmade(uint64_t context) {
    if (context_is_made(context))
        set_made(context, 0);
}

bool context_is_made(uint64_t context) {
    return context && map_get(&made, context);
}
