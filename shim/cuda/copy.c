/* Bodies of copy.def. */
#include "../gpu/calls.h"
#include "cuda.h"

#define COPY_HOST(name, parameters, ...)                                                                               \
    CUresult copy_##name(ENTRY, PARAMETERS_OF parameters) {                                                            \
        REAL_OR_RETURN(name);                                                                                          \
        return host_waited(hook, NULL, real(__VA_ARGS__));                                                             \
    }
#include "copy.def"
