/* Errors: names, sentences, and the last one of a thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"

static _Thread_local hipError_t last, last_of_call;

static const struct {
    int number;
    const char *name, *text;
} errors[] = {
#define ERROR(number, name, text) {number, #name, text},
#include "error.def"
#undef ERROR
};

/* Up to 6 the last error is that of the last call, whatever it was; from 7 on, the last call that failed. */
hipError_t hip_done(hipError_t result) {
    last_of_call = result;
    if (SIMGPU_HIP < 7 || (result != hipSuccess && result != hipErrorNotReady))
        last = result;
    return result;
}

hipError_t hip_hipGetLastError(void) {
    const hipError_t result = last;
    last = hipSuccess;
    return result;
}

hipError_t hip_hipPeekAtLastError(void) {
    return last;
}

hipError_t hip_hipExtGetLastError(void) {
    const hipError_t result = last_of_call;
    last_of_call = hipSuccess;
    return result;
}

const char *hip_hipGetErrorName(hipError_t error) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == error)
            return errors[i].name;
    return "hipErrorUnknown";
}

const char *hip_hipGetErrorString(hipError_t error) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == error)
            return errors[i].text;
    return "unknown error";
}

hipError_t hip_hipDrvGetErrorName(hipError_t error, const char **text) {
    if (text == NULL)
        return hipErrorInvalidValue;
    *text = hip_hipGetErrorName(error);
    return hipSuccess;
}

hipError_t hip_hipDrvGetErrorString(hipError_t error, const char **text) {
    if (text == NULL)
        return hipErrorInvalidValue;
    *text = hip_hipGetErrorString(error);
    return hipSuccess;
}

hipError_t hip_hipDriverGetVersion(int *version) {
    if (version == NULL)
        return hipErrorInvalidValue;
    *version = HIP_VERSION;
    return hip_start();
}

hipError_t hip_hipRuntimeGetVersion(int *version) {
    if (version == NULL)
        return hipErrorInvalidValue;
    *version = HIP_VERSION;
    return hipSuccess;
}

const char *hip_hipApiName(uint32_t id) {
    (void)id;
    return "unknown";
}

const char *hip_hipGetCmdName(uint32_t id) {
    (void)id;
    return "unknown";
}

void hip_hipRegisterTracerCallback(void *callback) {
    (void)callback;
}

const char *hip_amd_dbgapi_get_build_name(void) {
    return "simgpu";
}

const char *hip_amd_dbgapi_get_git_hash(void) {
    return "simgpu";
}
