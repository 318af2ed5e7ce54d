/* Green contexts: parts of the primary context of a device that have multiprocessors of their own.
 *
 * A resource is a set of multiprocessors, kept in the padding of CUdevResource. The scheduler obeys the set of the
 * stream that a kernel was launched into, or of the green context that a graph's node was captured in.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { GREEN_DEFAULT_STREAM = 1 };

/* What the padding holds. */
struct origin {
    struct sm_set set;
    int device;
};

_Static_assert(sizeof(struct origin) <= sizeof(((CUdevResource *)0)->internal), "the padding has room for it");

static void put(CUdevResource *out, const struct origin *origin) {
    memset(out, 0, sizeof *out);
    out->type = RESOURCE_SM;
    memcpy(out->internal, origin, sizeof *origin);
    out->of.sm.smCount = (unsigned int)sim_sm_count(&origin->set);
}

SIM_API CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *out, int type) {
    SIM_CALL();
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    put(out, &(struct origin){sim_sm_all(sim_gpu(device)), device});
    return CUDA_SUCCESS;
}

/* Takes the first `count` of a set out of it. */
static struct sm_set take(struct sm_set *from, unsigned int count) {
    struct sm_set taken = {0};
    for (int i = 0; i < MAX_MULTIPROCESSORS && count > 0; i++)
        if (sim_sm_has(from, i)) {
            sim_sm_add(&taken, i);
            from->bits[i / 64] &= ~(UINT64_C(1) << i % 64);
            count--;
        }
    return taken;
}

/* cuda.h, by compute capability: how many multiprocessors a part has at least, and of how many it has a multiple. */
static unsigned int part_of(const struct gpu *gpu, unsigned int wanted) {
    const unsigned int least = gpu->major >= 9 ? 8 : 4, multiple = gpu->major >= 9 ? 8 : 2;
    return ((wanted > least ? wanted : least) + multiple - 1) / multiple * multiple;
}

SIM_API CUresult cuDevSmResourceSplitByCount(CUdevResource *out, unsigned int *groups, const CUdevResource *input,
                                             CUdevResource *remaining, unsigned int flags, unsigned int wanted) {
    SIM_CALL();
    if (groups == NULL || input == NULL || flags != 0 || (out != NULL && *groups == 0))
        return CUDA_ERROR_INVALID_VALUE;
    if (input->type != RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    struct origin origin;
    memcpy(&origin, input->internal, sizeof origin);
    const unsigned int size = part_of(sim_gpu(origin.device), wanted), possible = input->of.sm.smCount / size;
    if (possible == 0)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *groups = out == NULL || *groups > possible ? possible : *groups;
    for (unsigned int i = 0; i < *groups; i++) {
        const struct origin part = {take(&origin.set, size), origin.device};
        if (out != NULL)
            put(&out[i], &part);
    }
    if (remaining != NULL)
        put(remaining, &origin);
    return CUDA_SUCCESS;
}

/* Of one part. */
SIM_API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, const CUdevResource *parts, unsigned int count) {
    SIM_CALL();
    if (out == NULL || parts == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (parts->type != RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    struct origin *const origin = count == 1 ? malloc(sizeof *origin) : NULL; /* the interface has nothing to free it */
    if (origin == NULL)
        return count == 1 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_SUPPORTED;
    memcpy(origin, parts->internal, sizeof *origin);
    *out = sim_handle_new(KIND_RESOURCES, origin);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- the contexts ---- */

void sim_green_free(struct green *green) {
    for (struct green **at = &green->context->greens; *at != NULL; at = &(*at)->next)
        if (*at == green) {
            *at = green->next;
            break;
        }
    sim_stream_free(green->stream);
    sim_handle_free(green->handle);
    free(green);
}

SIM_API CUresult cuGreenCtxCreate(CUcontext *out, CUdevResourceDesc desc, CUdevice device, unsigned int flags) {
    SIM_CALL();
    const struct origin *const origin = sim_handle_get(desc, KIND_RESOURCES);
    if (out == NULL || origin == NULL || flags != GREEN_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS || origin->device != device)
        return CUDA_ERROR_INVALID_DEVICE;
    struct green *const green = calloc(1, sizeof *green);
    struct context *const context = green != NULL ? sim_primary_retain(device) : NULL;
    if (context == NULL) {
        free(green);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *green = (struct green){.handle = sim_handle_new(KIND_GREEN, green),
                            .context = context,
                            .usable = origin->set,
                            .stream = sim_stream_new(context, STREAM_NON_BLOCKING, NORMAL_PRIORITY),
                            .next = context->greens};
    if (green->handle == NULL || green->stream == NULL)
        abort(); /* as elsewhere where half a thing would be left */
    green->stream->usable = green->usable;
    green->stream->green = green->handle;
    green->stream->of_green = true;
    context->greens = green;
    *out = green->handle;
    return CUDA_SUCCESS;
}

/* Streams that the program made in it stay (cuda.h), with their multiprocessors. */
SIM_API CUresult cuGreenCtxDestroy(CUcontext handle) {
    SIM_CALL();
    struct green *const green = sim_handle_get(handle, KIND_GREEN);
    if (green == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    const int device = green->context->device;
    sim_green_free(green);
    sim_primary_release(device);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxFromGreenCtx(CUcontext *out, CUcontext handle) {
    SIM_CALL();
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_handle_get(handle, KIND_GREEN) == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *out = handle;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuGreenCtxStreamCreate(CUstream *out, CUcontext handle, unsigned int flags, int priority) {
    SIM_CALL();
    const struct green *const green = sim_handle_get(handle, KIND_GREEN);
    if (green == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (out == NULL || flags != STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    struct stream *const stream = sim_stream_new(green->context, flags, priority);
    if (stream == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream->usable = green->usable;
    stream->green = handle;
    *out = stream->handle;
    return CUDA_SUCCESS;
}

const struct sm_set *sim_usable_of(CUcontext handle) {
    const struct green *const green = sim_handle_get(handle, KIND_GREEN);
    const struct context *const context = sim_context_of(handle);
    return green != NULL ? &green->usable : context != NULL ? &context->usable : NULL;
}

const struct sm_set *sim_current_usable(const struct context *context) {
    const struct green *const green = sim_current_green();
    return green != NULL ? &green->usable : &context->usable;
}
