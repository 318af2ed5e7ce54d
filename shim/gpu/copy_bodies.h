/* Bodies of a vendor's rows for blocking copies, which are included after this file and the vendor's own header. */
#pragma once

#include "calls.h"

#define COPY_BODY(on, name, parameters, ...)                                                                           \
    vendor_result copy_##name(ENTRY, PARAMETERS_OF parameters) {                                                       \
        BEHIND(parameters);                                                                                            \
        return host_waited(hook, on, real(__VA_ARGS__));                                                               \
    }
#define COPY_HOST(name, parameters, ...) COPY_BODY(NULL, name, parameters, __VA_ARGS__)
#define COPY_WAITS_ON(name, parameters, ...) COPY_BODY(stream, name, parameters, __VA_ARGS__)
