/* The exported functions, made from api.def. */
#include "runtime.h"

enum { NO_CONTEXT = CUDA_ERROR_INVALID_CONTEXT };

/* A program may take this thread's context away through the driver; then the call is made again with one. */
#define RETURN(ready, call)                                                                                            \
    cudaError_t result = ready;                                                                                        \
    if (result == cudaSuccess)                                                                                         \
        result = call;                                                                                                 \
    if (result == NO_CONTEXT && rt_ready_again())                                                                      \
        result = call;                                                                                                 \
    return rt_done(result)

#define OWN(name, result, parameters)
#define BODY(name, parameters, ...)                                                                                    \
    RT_API cudaError_t name parameters;                                                                                \
    cudaError_t name parameters {                                                                                      \
        RETURN(cudaSuccess, rt_##name(__VA_ARGS__));                                                                   \
    }
#define BODY_STREAM(name, suffix, parameters, ...)                                                                     \
    RT_API cudaError_t name parameters;                                                                                \
    cudaError_t name parameters {                                                                                      \
        RETURN(cudaSuccess, rt_##name(false, __VA_ARGS__));                                                            \
    }                                                                                                                  \
    RT_API cudaError_t name##suffix parameters;                                                                        \
    cudaError_t name##suffix parameters {                                                                              \
        RETURN(cudaSuccess, rt_##name(true, __VA_ARGS__));                                                             \
    }
#define DRIVER(name, function, parameters, ...)                                                                        \
    RT_API cudaError_t name parameters;                                                                                \
    cudaError_t name parameters {                                                                                      \
        RETURN(rt_ready(), rt_calls[0].function(__VA_ARGS__));                                                         \
    }
#define DRIVER_STREAM(name, suffix, function, parameters, ...)                                                         \
    DRIVER(name, function, parameters, __VA_ARGS__)                                                                    \
    RT_API cudaError_t name##suffix parameters;                                                                        \
    cudaError_t name##suffix parameters {                                                                              \
        RETURN(rt_ready(), rt_calls[1].function(__VA_ARGS__));                                                         \
    }
#include "api.def"
