/* The bodies of copies, made from a vendor's copy.def, which is included behind this. */
#pragma once

#include "windows.h"

#pragma GCC visibility push(hidden)
/* A call that has the host called when the stream has come so far. */
void copy_calls_back(enum hook hook, vendor_stream stream);
/* Before a call that waits: what the host will have seen then. NULL: nobody wants to know. */
struct overlap_order *copy_begin(enum hook hook, struct overlap_seen *seen);
#pragma GCC visibility pop

#define COPY_HOST(name, parameters, ...)                                                                               \
    vendor_result copy_##name(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters) {        \
        BEHIND(parameters);                                                                                            \
        struct overlap_seen seen;                                                                                      \
        struct overlap_order *order = copy_begin(hook, &seen);                                                         \
        vendor_result result = real(__VA_ARGS__);                                                                      \
        if (order && result == VENDOR_SUCCESS) {                                                                       \
            critical_host_waits(order, hook_vendor(hook), &seen);                                                      \
            window_saw(order, &seen);                                                                                  \
        }                                                                                                              \
        return result;                                                                                                 \
    }
#define COPY_CALLBACK(name, parameters, ...)                                                                           \
    vendor_result copy_##name(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters) {        \
        BEHIND(parameters);                                                                                            \
        copy_calls_back(hook, stream);                                                                                 \
        return real(__VA_ARGS__);                                                                                      \
    }
#define COPY_STREAM(name, parameters, ...)                                                                             \
    vendor_result copy_##name(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters) {        \
        BEHIND(parameters);                                                                                            \
        copy_made(stream, hook_default(hook));                                                                         \
        return real(__VA_ARGS__);                                                                                      \
    }
