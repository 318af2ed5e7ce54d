/* A launch before it is done: attributes, parameters, and everything for which the driver refuses one. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { FIRST_VERSION_WITH_PRIORITY = 12000, LARGEST_CLUSTER = 8, LARGEST_NON_PORTABLE_CLUSTER = 16 };

static CUresult set_cluster(struct launch_request *request, const unsigned int *size) {
    if (sim_config.gpu->major < 9)
        return CUDA_ERROR_NOT_SUPPORTED;
    const unsigned long long blocks = (unsigned long long)size[0] * size[1] * size[2];
    const unsigned long long most =
        request->function->non_portable_cluster ? LARGEST_NON_PORTABLE_CLUSTER : LARGEST_CLUSTER;
    if (size[0] > 16 || size[1] > 16 || size[2] > 16 || blocks < 1 || blocks > most)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (size_t i = 0; i < 3; i++)
        if (request->grid[i] % size[i] != 0)
            return CUDA_ERROR_INVALID_VALUE;
    request->cluster = (int)blocks;
    return CUDA_SUCCESS;
}

CUresult sim_launch_attributes(struct launch_request *request, const CUlaunchAttribute *attributes,
                               unsigned int count) {
    if (count > 0 && attributes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    bool priority = false;
    for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++) {
        const CUlaunchAttributeValue *const value = &attributes[i].value;
        switch (attributes[i].id) {
        case LAUNCH_COOPERATIVE:
            request->cooperative = value->integer != 0;
            break;
        case LAUNCH_CLUSTER:
            result = set_cluster(request, value->dimension);
            break;
        case LAUNCH_PRIORITY:
            /* Twice is stricter than is known of the real driver: which one should hold? */
            if (sim_config.driver_version < FIRST_VERSION_WITH_PRIORITY || priority)
                return CUDA_ERROR_INVALID_VALUE;
            request->has_priority = priority = true;
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
        case LAUNCH_PREFERRED_CLUSTER:
        case LAUNCH_COMPLETION_EVENT:
        case LAUNCH_CARVEOUT:
        case LAUNCH_NVLINK:
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return result;
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

static bool dimensions_are_good(const struct launch_request *request) {
    static const unsigned int grid[3] = {2147483647, 65535, 65535}, block[3] = {1024, 1024, 64};
    for (size_t i = 0; i < 3; i++)
        if (request->grid[i] < 1 || request->grid[i] > grid[i] || request->block[i] < 1 || request->block[i] > block[i])
            return false;
    return true;
}

static bool is_over(const struct limit *limit, const struct launch_request *request) {
    return limit->glob != NULL && request->dynamic > limit->number &&
           sim_glob(limit->glob, request->function->image->name);
}

CUresult sim_launch_check(const struct launch_request *request) {
    const struct gpu *const gpu = sim_config.gpu;
    const struct function *const function = request->function;
    const struct kernel_image *const image = function->image;
    if (!dimensions_are_good(request))
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned int threads = request->block[0] * request->block[1] * request->block[2];
    if (threads > MAX_BLOCK_THREADS || (image->bound_written && threads > (unsigned int)image->max_threads))
        return CUDA_ERROR_INVALID_VALUE;
    const struct footprint footprint = {(int)threads, image->registers, image->static_shared, request->dynamic};
    const int warps = (sim_warps((int)threads) + PARTITIONS - 1) / PARTITIONS * PARTITIONS;
    if (image->registers > 0 && warps * sim_registers_of_warp(image->registers) > gpu->registers)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (request->dynamic > (unsigned int)sim_max_dynamic(function))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_over(&sim_config.refuse, request))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    const int resident = sim_occupancy(gpu, &footprint);
    if (resident < 1)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    const unsigned long long blocks = (unsigned long long)request->grid[0] * request->grid[1] * request->grid[2];
    if (request->cooperative && blocks > (unsigned long long)resident * (unsigned long long)gpu->multiprocessors)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

bool sim_refused_in_graphs(const struct launch_request *request) {
    return is_over(&sim_config.refuse_instantiate, request);
}
