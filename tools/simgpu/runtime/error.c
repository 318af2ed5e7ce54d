/* Errors: the last one of each thread, and what they are called. */
#include "runtime.h"

static _Thread_local cudaError_t last;

static const struct {
    cudaError_t error;
    const char *name, *sentence;
} errors[] = {
#define ERROR(number, name, sentence) {number, #name, sentence},
#include "error.def"
#undef ERROR
};

cudaError_t rt_done(cudaError_t result) {
    if (result != cudaSuccess)
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
    while (row < sizeof errors / sizeof *errors && errors[row].error != error)
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
