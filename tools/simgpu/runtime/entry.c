/* The exported functions, made from api.def; the last error of a thread, and the names of errors. */
#include <string.h>

#include "runtime.h"

/* ---- errors ---- */

static _Thread_local cudaError_t last;

static const struct {
    cudaError_t error;
    const char *name, *sentence;
} errors[] = {
#define ERROR(number, cuda, runtime, hip, sentence) {number, #runtime, sentence},
#include "../error.def"
#undef ERROR
};

/* That work is unfinished is no error, and is not kept (CUDA C++ Programming Guide, error checking). */
cudaError_t rt_done(cudaError_t result) {
    if (result != cudaSuccess && result != CUDA_ERROR_NOT_READY)
        last = result;
    return result;
}

cudaError_t cudaPeekAtLastError(void) {
    return last;
}

cudaError_t cudaGetLastError(void) {
    const cudaError_t was = last;
    last = cudaSuccess;
    return was;
}

static size_t row_of(cudaError_t error) {
    size_t row = 0;
    while (row < sizeof errors / sizeof *errors &&
           (errors[row].error != error || strcmp(errors[row].name, "none") == 0))
        row++;
    return row;
}

static const char *const unknown = "unrecognized error code";

const char *cudaGetErrorName(cudaError_t error) {
    const size_t row = row_of(error);
    return row < sizeof errors / sizeof *errors ? errors[row].name : unknown;
}

const char *cudaGetErrorString(cudaError_t error) {
    const size_t row = row_of(error);
    return row < sizeof errors / sizeof *errors ? errors[row].sentence : unknown;
}

/* ---- functions ---- */

enum { NO_CONTEXT = CUDA_ERROR_INVALID_CONTEXT, ENDED = CUDA_ERROR_CONTEXT_IS_DESTROYED };

/* A program may take this thread's context away through the driver, and another thread may reset the device; then the call is made
 * again with a context. */
#define RETURN(ready, call)                                                                                            \
    cudaError_t result = ready;                                                                                        \
    if (result == cudaSuccess)                                                                                         \
        result = call;                                                                                                 \
    if ((result == NO_CONTEXT || result == ENDED) && rt_ready_again())                                                 \
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
