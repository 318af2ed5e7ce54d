/* Bodies of copy.def. */
#include "hip.h"

#include "../common/copy.h"

#define COPY_WAITS COPY_HOST
#define COPY_ON COPY_STREAM
#define COPY_CALLBACK_ON COPY_CALLBACK
/* Its own stream is waited for, whichever that is. */
#define COPY_WAITS_ON(name, parameters, ...)                                                                           \
    hipError_t copy_##name(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters) {           \
        REAL_OR_RETURN(name);                                                                                          \
        struct overlap_order *order = windows();                                                                       \
        struct overlap_seen seen;                                                                                      \
        copy_made(stream, hook_default(hook));                                                                         \
        if (order)                                                                                                     \
            overlap_order_see_stream(order, window_stream(order, stream, hook_default(hook)), &seen);                  \
        hipError_t result = real(__VA_ARGS__);                                                                         \
        if (order && result == VENDOR_SUCCESS) {                                                                       \
            critical_host_waits(order, VENDOR_HIP, &seen);                                                             \
            window_saw(order, &seen);                                                                                  \
        }                                                                                                              \
        return result;                                                                                                 \
    }
#include "copy.def"
