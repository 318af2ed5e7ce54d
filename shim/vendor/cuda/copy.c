/* Copies and fills, and whatever else goes to a stream (copy.def): on the legacy default stream they order the blocking
 * streams of the context; those that wait tell the host what is over. */
#include "windows.h"

void copy_made(CUstream stream, bool per_thread) {
    struct overlap_order *order = window_is_legacy(stream, per_thread) ? windows() : NULL;
    if (order) {
        overlap_order_action(order, window_stream(order, stream, per_thread));
        window_after(order);
    }
}

/* Before a call that waits: what the host will have seen then. */
static struct overlap_order *begin(enum hook hook, struct overlap_seen *seen) {
    struct overlap_order *order = windows();
    struct overlap_stream *stream = order ? window_stream(order, NULL, hook_is_per_thread(hook)) : NULL;
    if (order) {
        overlap_order_action(order, stream);
        overlap_order_see_stream(order, stream, seen);
    }
    return order;
}

#define COPY_HOST(name, parameters, ...)                                                                               \
    CUresult copy_##name(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters) {             \
        REAL_OR_RETURN(name);                                                                                          \
        struct overlap_seen seen;                                                                                      \
        struct overlap_order *order = begin(hook, &seen);                                                              \
        CUresult result = real(__VA_ARGS__);                                                                           \
        if (order && result == CUDA_SUCCESS)                                                                           \
            window_saw(order, &seen);                                                                                  \
        return result;                                                                                                 \
    }
#define COPY_STREAM(name, parameters, ...)                                                                             \
    CUresult copy_##name(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters) {             \
        REAL_OR_RETURN(name);                                                                                          \
        copy_made(stream, hook_is_per_thread(hook));                                                                   \
        return real(__VA_ARGS__);                                                                                      \
    }
#include "copy.def"
