/* A launch before it is done: attributes and parameters. Whether it is refused: launch_check.c, hip/check.c. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { PORTABLE_CLUSTER = 8, LARGEST_CLUSTER = 16 };

int sim_largest_cluster(const struct function *function) {
    return sim_setting(function, FUNC_NON_PORTABLE_CLUSTER) != 0 ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
}

/* A preferred cluster is made of whole regular ones and divides the grid. Regular ones are what is placed: the real
 * device, too, tries its best and no more. */
static CUresult check_preferred(const struct launch_request *request, const unsigned int *size) {
    const unsigned int *const preferred = request->preferred_cluster;
    if (preferred[0] == 0 && preferred[1] == 0 && preferred[2] == 0)
        return CUDA_SUCCESS;
    for (size_t i = 0; i < 3; i++)
        if (preferred[i] == 0 || preferred[i] % size[i] != 0 || request->grid[i] % preferred[i] != 0)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* The blocks of one cluster: as the launch says, or as its function requires; 0 if neither says anything. */
CUresult sim_launch_cluster(struct launch_request *request) {
    const struct function *const function = request->function;
    unsigned int required[3];
    for (int i = 0; i < 3; i++)
        required[i] = (unsigned int)sim_setting(function, FUNC_CLUSTER_WIDTH + i);
    const bool is_required = required[0] > 0 || required[1] > 0 || required[2] > 0;
    const unsigned int *const size = request->has_cluster ? request->cluster_size : required;
    request->cluster = 0;
    if (!request->has_cluster && !is_required)
        return CUDA_SUCCESS;
    if (sim_gpu_of(function)->major < FIRST_WITH_CLUSTERS)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (is_required && memcmp(size, required, sizeof required) != 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    const unsigned long long blocks = (unsigned long long)size[0] * size[1] * size[2];
    if (size[0] > LARGEST_CLUSTER || size[1] > LARGEST_CLUSTER || size[2] > LARGEST_CLUSTER || blocks < 1 ||
        blocks > (unsigned long long)sim_largest_cluster(function))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (size_t i = 0; i < 3; i++)
        if (request->grid[i] % size[i] != 0)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    request->cluster = (int)blocks;
    return check_preferred(request, size);
}

CUresult sim_launch_attributes(struct launch_request *request, const CUlaunchAttribute *attributes,
                               unsigned int count) {
    if (count > 0 && attributes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++) {
        const CUlaunchAttributeValue *const value = &attributes[i].value;
        switch (attributes[i].id) {
        case LAUNCH_COOPERATIVE:
            request->cooperative = value->integer != 0;
            break;
        case LAUNCH_CLUSTER:
            request->has_cluster = true;
            memcpy(request->cluster_size, value->dimension, sizeof request->cluster_size);
            break;
        case LAUNCH_CARVEOUT:
            if (value->integer < -1 || value->integer > 100)
                return CUDA_ERROR_INVALID_VALUE;
            request->has_carveout = true;
            request->carveout = value->integer;
            break;
        case LAUNCH_PREFERRED_CLUSTER:
            memcpy(request->preferred_cluster, value->dimension, sizeof request->preferred_cluster);
            break;
        case LAUNCH_PRIORITY:
            if (sim_config.driver_version < FIRST_VERSION_WITH_PRIORITY)
                return CUDA_ERROR_INVALID_VALUE;
            request->has_priority = true; /* of several the last one wins */
            request->asked_priority = value->integer;
            request->priority = sim_clamp_priority(value->integer);
            break;
        case LAUNCH_IGNORE:
        case LAUNCH_ACCESS_POLICY:
        case LAUNCH_SYNC_POLICY:
        case LAUNCH_CLUSTER_POLICY:
        case LAUNCH_PROGRAMMATIC_SERIALIZATION:
        case LAUNCH_PROGRAMMATIC_EVENT:
        case LAUNCH_SYNC_DOMAIN_MAP:
        case LAUNCH_SYNC_DOMAIN:
        case LAUNCH_DEVICE_UPDATABLE:
        case LAUNCH_COMPLETION_EVENT:
        case LAUNCH_NVLINK:
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult copy_from_buffer(struct launch_request *request, void **extra) {
    const void *buffer = NULL;
    const size_t *bytes = NULL;
    for (size_t i = 0; extra[i] != (void *)LAUNCH_PARAM_END; i += 2) {
        if (i >= 16)
            return CUDA_ERROR_INVALID_VALUE;
        if ((uintptr_t)extra[i] == LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if ((uintptr_t)extra[i] == LAUNCH_PARAM_BUFFER_SIZE)
            bytes = extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    const struct kernel_image *const image = request->function->image;
    const size_t size = bytes != NULL ? *bytes : 0;
    if (size > 65536 || (size > 0 && buffer == NULL) || (image->layout_known && size < sim_parameter_bytes(image)))
        return CUDA_ERROR_INVALID_VALUE;
    request->parameters = calloc(1, size + 1);
    if (request->parameters == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!image->layout_known && size > 0)
        memcpy(request->parameters, buffer, size);
    for (uint32_t i = 0; i < image->parameters; i++) { /* not the padding, nor what follows the last one */
        const struct parameter *const parameter = &image->parameter[i];
        memcpy(request->parameters + parameter->offset, (const uint8_t *)buffer + parameter->offset, parameter->size);
    }
    request->parameter_bytes = image->layout_known ? sim_parameter_bytes(image) : (uint32_t)size;
    return CUDA_SUCCESS;
}

CUresult sim_launch_parameters(struct launch_request *request, void **pointers, void **extra) {
    const struct kernel_image *const image = request->function->image;
    if (pointers != NULL && extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra != NULL)
        return copy_from_buffer(request, extra);
    if (image->parameters > 0 && pointers == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    request->parameter_bytes = sim_parameter_bytes(image);
    request->parameters = calloc(1, request->parameter_bytes + 1u);
    if (request->parameters == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < image->parameters; i++) {
        const struct parameter *const parameter = &image->parameter[i];
        if (pointers[i] == NULL)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(request->parameters + parameter->offset, pointers[i], parameter->size);
    }
    return CUDA_SUCCESS;
}

static bool is_over(const struct limit *limit, const struct launch_request *request) {
    return limit->glob != NULL && request->dynamic > limit->number &&
           sim_glob(limit->glob, request->function->image->name);
}

struct footprint sim_footprint(const struct function *function, int threads, size_t dynamic) {
    const int carveout = sim_setting(function, FUNC_CARVEOUT);
    return (struct footprint){.threads = threads,
                              .registers = function->image->registers,
                              .scalars = function->image->scalars,
                              .static_shared = function->image->static_shared,
                              .dynamic = dynamic,
                              .prefers = carveout >= 0,
                              .carveout = carveout};
}

struct footprint sim_launch_footprint(const struct launch_request *request) {
    const int threads = (int)(request->block[0] * request->block[1] * request->block[2]);
    struct footprint footprint = sim_footprint(request->function, threads, request->dynamic);
    if (request->has_carveout) {
        footprint.prefers = request->carveout >= 0;
        footprint.carveout = request->carveout;
    }
    return footprint;
}

/* One that ends its queue does so when it would run (hip/check.c). */
enum op_kind sim_launch_kind(const struct launch_request *request) {
    if (request->overshoots)
        sim_queue_died = true;
    return request->overshoots ? OP_NOTHING : OP_KERNEL;
}

bool sim_is_refused(const struct launch_request *request) {
    return is_over(&sim_config.refuse, request);
}

bool sim_refused_in_graphs(const struct launch_request *request) {
    return is_over(&sim_config.refuse_instantiate, request);
}
