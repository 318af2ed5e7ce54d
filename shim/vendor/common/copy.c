/* Copies and fills, and whatever else goes to a stream (copy.def): on the legacy default stream they order the blocking
 * streams of the context; those that wait tell the host what is over. */
#include "copy.h"

void copy_made(vendor_stream stream, enum default_stream whose) {
    struct overlap_order *order = window_is_legacy(stream, whose) ? windows() : NULL;
    if (order) {
        overlap_order_action(order, window_stream(order, stream, whose));
        window_after(order);
    }
}

struct overlap_order *copy_begin(enum hook hook, struct overlap_seen *seen) {
    struct overlap_order *order = windows();
    struct overlap_stream *stream = order ? window_stream(order, NULL, hook_default(hook)) : NULL;
    if (order) {
        overlap_order_action(order, stream);
        overlap_order_see_stream(order, stream, seen);
    }
    return order;
}

/* Whom the program has called it does not say; it is like one that waits. */
void copy_calls_back(enum hook hook, vendor_stream stream) {
    const enum default_stream whose = hook_default(hook);
    struct overlap_order *order = windows();
    struct overlap_seen seen;
    copy_made(stream, whose);
    if (!order)
        return;
    overlap_order_see_stream(order, window_stream(order, stream, whose), &seen);
    critical_host_waits(order, hook_vendor(hook), &seen);
}
