/* Bodies of copy.def. */
#include "../gpu/calls.h"
#include "cuda.h"

#define COPY_HOST(name, ...)                                                                                           \
    CUresult copy_##name(ENTRY, PARAMETERS(__VA_ARGS__)) {                                                             \
        REAL_OR_RETURN(name);                                                                                          \
        return host_waited(hook, NULL, real(ARGUMENTS(__VA_ARGS__)));                                                  \
    }
#include "copy.def"
