/* Green contexts: parts of the primary context of a device that have multiprocessors of their own.
 *
 * A resource is a set of multiprocessors, kept in the padding of CUdevResource. The scheduler obeys the set of the
 * stream that a kernel was launched into, or of the green context that a graph's node was captured in.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { GREEN_DEFAULT_STREAM = 1, IGNORE_COSCHEDULING = 1, MAX_CLUSTER = 2, SM_WITHOUT_COSCHEDULING = 2 };

/* What the padding holds. */
struct origin {
    struct sm_set set;
    int device;
    int split; /* the number of the split that made it; 0: none did */
};

struct resources {
    struct origin origin;
};

_Static_assert(sizeof(struct origin) <= sizeof(((CUdevResource *)0)->internal), "the padding has room for it");

/* How many multiprocessors a part has at least, and of how many it has a multiple: cuda.h, by compute capability. */
static void granularity(const struct gpu *gpu, unsigned int *least, unsigned int *multiple) {
    *least = gpu->major >= 9 ? 8 : 4;
    *multiple = gpu->major >= 9 ? 8 : 2;
}

static void put(CUdevResource *out, const struct origin *origin) {
    memset(out, 0, sizeof *out);
    out->type = RESOURCE_SM;
    memcpy(out->internal, origin, sizeof *origin);
    out->of.sm.smCount = (unsigned int)sim_sm_count(&origin->set);
    granularity(sim_gpu(origin->device), &out->of.sm.minSmPartitionSize, &out->of.sm.smCoscheduledAlignment);
}

static CUresult get_resource(CUdevResource *out, int type, int device, const struct sm_set *set) {
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    put(out, &(struct origin){*set, device, 0});
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *out, int type) {
    SIM_CALL();
    if (sim_device_check(device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_DEVICE;
    const struct sm_set all = sim_sm_all(sim_gpu(device));
    return get_resource(out, type, device, &all);
}

SIM_API CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource *out, int type) {
    SIM_CALL();
    const struct context *const context = sim_context_of(handle);
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    return get_resource(out, type, context->device, sim_usable_of(handle));
}

SIM_API CUresult cuGreenCtxGetDevResource(CUcontext handle, CUdevResource *out, int type) {
    SIM_CALL();
    const struct green *const green = sim_handle_get(handle, KIND_GREEN);
    if (green == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    return get_resource(out, type, green->context->device, &green->usable);
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

static CUresult split(CUdevResource *out, unsigned int *groups, const CUdevResource *input, CUdevResource *remaining,
                      unsigned int flags, unsigned int wanted) {
    static int splits;
    struct origin origin;
    memcpy(&origin, input->internal, sizeof origin);
    unsigned int least, multiple;
    granularity(sim_gpu(origin.device), &least, &multiple);
    if ((flags & IGNORE_COSCHEDULING) != 0)
        least = multiple = SM_WITHOUT_COSCHEDULING;
    const unsigned int size = ((wanted > least ? wanted : least) + multiple - 1) / multiple * multiple;
    const unsigned int possible = (unsigned int)sim_sm_count(&origin.set) / size;
    if (possible == 0)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *groups = out == NULL || *groups > possible ? possible : *groups;
    const int number = ++splits;
    for (unsigned int i = 0; i < *groups; i++) {
        const struct origin part = {take(&origin.set, size), origin.device, number};
        if (out != NULL)
            put(&out[i], &part);
    }
    if (remaining == NULL)
        return CUDA_SUCCESS;
    origin.split = number;
    put(remaining, &origin);
    if (remaining->of.sm.smCount == 0)
        remaining->type = RESOURCE_INVALID;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuDevSmResourceSplitByCount(CUdevResource *out, unsigned int *groups, const CUdevResource *input,
                                             CUdevResource *remaining, unsigned int flags, unsigned int wanted) {
    SIM_CALL();
    if (groups == NULL || input == NULL || (flags & ~(unsigned int)(IGNORE_COSCHEDULING | MAX_CLUSTER)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (input->type != RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (wanted > input->of.sm.smCount || (out != NULL && *groups == 0))
        return CUDA_ERROR_INVALID_VALUE;
    struct origin origin;
    memcpy(&origin, input->internal, sizeof origin);
    if (origin.split != 0) /* a part is split again only by way of a green context */
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    return split(out, groups, input, remaining, flags, wanted);
}

SIM_API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, const CUdevResource *parts, unsigned int count) {
    SIM_CALL();
    if (out == NULL || parts == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct origin all = {0};
    for (unsigned int i = 0; i < count; i++) {
        struct origin origin;
        if (parts[i].type != RESOURCE_SM)
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        memcpy(&origin, parts[i].internal, sizeof origin);
        if (i > 0 && (origin.device != all.device || origin.split != all.split || origin.split == 0))
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        for (size_t k = 0; k < sizeof origin.set.bits / sizeof *origin.set.bits; k++)
            origin.set.bits[k] |= all.set.bits[k];
        all = origin;
    }
    struct resources *const resources = calloc(1, sizeof *resources); /* nothing in the interface gives them back */
    if (resources == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    resources->origin = all;
    *out = sim_handle_new(KIND_RESOURCES, resources);
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
    const struct resources *const resources = sim_handle_get(desc, KIND_RESOURCES);
    if (out == NULL || resources == NULL || flags != GREEN_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device_check(device) != CUDA_SUCCESS || resources->origin.device != device)
        return CUDA_ERROR_INVALID_DEVICE;
    struct green *const green = calloc(1, sizeof *green);
    struct context *const context = green != NULL ? sim_primary_retain(device) : NULL;
    if (context == NULL) {
        free(green);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *green = (struct green){.handle = sim_handle_new(KIND_GREEN, green),
                            .context = context,
                            .usable = resources->origin.set,
                            .stream = sim_stream_new(context, STREAM_NON_BLOCKING, NORMAL_PRIORITY),
                            .id = sim_context_next_id(),
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

SIM_API CUresult cuGreenCtxGetId(CUcontext handle, unsigned long long *id) {
    SIM_CALL();
    const struct green *const green = handle != NULL ? sim_handle_get(handle, KIND_GREEN) : sim_current_green();
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (green == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = green->id;
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

static CUresult get_green(CUstream handle, CUcontext *out, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_handle_get(stream->green, KIND_GREEN) != NULL ? stream->green : NULL;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamGetGreenCtx(CUstream handle, CUcontext *out) {
    return get_green(handle, out, false);
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
