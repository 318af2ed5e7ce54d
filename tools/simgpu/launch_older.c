/* The interface before cuLaunchKernel: block shape, shared memory and parameters are state of the function.
 *
 * Any newer launch of the function makes that state invalid (cuda.h): it is forgotten.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { MOST_PARAMETER_BYTES = 4096 };

struct older_state {
    unsigned int block[3]; /* zeros: not set */
    unsigned int shared;
    size_t bytes;
    uint8_t parameters[MOST_PARAMETER_BYTES];
};

void sim_older_state_forget(struct function *function) {
    free(function->older);
    function->older = NULL;
}

static CUresult state_of(CUfunction handle, struct older_state **out) {
    struct function *const function = sim_handle_get(handle, KIND_FUNCTION);
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (function->older == NULL)
        function->older = calloc(1, sizeof *function->older);
    *out = function->older;
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuFuncSetBlockShape(CUfunction handle, int x, int y, int z) {
    SIM_CALL_IN_CONTEXT(context);
    struct older_state *state;
    const CUresult result = state_of(handle, &state);
    if (result != CUDA_SUCCESS)
        return result;
    if (x < 1 || y < 1 || z < 1)
        return CUDA_ERROR_INVALID_VALUE;
    state->block[0] = (unsigned int)x;
    state->block[1] = (unsigned int)y;
    state->block[2] = (unsigned int)z;
    return CUDA_SUCCESS;
}

/* Whether the function allows as much is found out at launch. */
SIM_API CUresult cuFuncSetSharedSize(CUfunction handle, unsigned int bytes) {
    SIM_CALL_IN_CONTEXT(context);
    struct older_state *state;
    const CUresult result = state_of(handle, &state);
    if (result == CUDA_SUCCESS)
        state->shared = bytes;
    return result;
}

SIM_API CUresult cuParamSetSize(CUfunction handle, unsigned int bytes) {
    SIM_CALL_IN_CONTEXT(context);
    struct older_state *state;
    const CUresult result = state_of(handle, &state);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes > MOST_PARAMETER_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    state->bytes = bytes;
    return CUDA_SUCCESS;
}

static CUresult set_parameter(CUfunction handle, int offset, const void *value, size_t bytes) {
    SIM_CALL_IN_CONTEXT(context);
    struct older_state *state;
    const CUresult result = state_of(handle, &state);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || offset < 0 || offset > MOST_PARAMETER_BYTES || bytes > MOST_PARAMETER_BYTES - (size_t)offset)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(state->parameters + offset, value, bytes);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuParamSeti(CUfunction handle, int offset, unsigned int value) {
    return set_parameter(handle, offset, &value, sizeof value);
}

SIM_API CUresult cuParamSetf(CUfunction handle, int offset, float value) {
    return set_parameter(handle, offset, &value, sizeof value);
}

SIM_API CUresult cuParamSetv(CUfunction handle, int offset, void *value, unsigned int bytes) {
    return set_parameter(handle, offset, value, bytes);
}

static CUresult launch(CUfunction handle, int width, int height, CUstream stream, const char *entry) {
    SIM_CALL_IN_CONTEXT(context);
    const struct function *const function = sim_handle_get(handle, KIND_FUNCTION);
    if (width < 1 || height < 1)
        return CUDA_ERROR_INVALID_VALUE;
    static struct older_state nothing;
    struct older_state *const state = function != NULL && function->older != NULL ? function->older : &nothing;
    const CUlaunchConfig config = {.gridDimX = (unsigned int)width,
                                   .gridDimY = (unsigned int)height,
                                   .gridDimZ = 1,
                                   .blockDimX = state->block[0],
                                   .blockDimY = state->block[1],
                                   .blockDimZ = state->block[2],
                                   .sharedMemBytes = state->shared,
                                   .hStream = stream};
    void *extra[] = {(void *)LAUNCH_PARAM_BUFFER_POINTER, state->parameters, (void *)LAUNCH_PARAM_BUFFER_SIZE,
                     &state->bytes, (void *)LAUNCH_PARAM_END};
    const struct call call = {.entry = entry, .config = &config, .handle = handle, .extra = extra, .older = true};
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    return sim_launch_locked(&call, context);
}

SIM_API CUresult cuLaunch(CUfunction handle) {
    return launch(handle, 1, 1, NULL, __func__);
}

SIM_API CUresult cuLaunchGrid(CUfunction handle, int width, int height) {
    return launch(handle, width, height, NULL, __func__);
}

SIM_API CUresult cuLaunchGridAsync(CUfunction handle, int width, int height, CUstream stream) {
    return launch(handle, width, height, stream, __func__);
}
