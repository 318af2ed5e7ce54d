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
