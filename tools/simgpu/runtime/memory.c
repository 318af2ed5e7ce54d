/* Memory: what the runtime does otherwise than the driver, and what a pointer is. */
#include <string.h>

#include "runtime.h"

enum { DEVICE_OF_NOTHING = -2, PITCH_ELEMENT = 16 };
enum { ATTRIBUTE_MEMORY_TYPE = 2, ATTRIBUTE_DEVICE_POINTER = 3, ATTRIBUTE_HOST_POINTER = 4 };
enum { ATTRIBUTE_IS_MANAGED = 8, ATTRIBUTE_DEVICE_ORDINAL = 9, MANAGED = 3 };

/* Nothing of nothing is a success. */
cudaError_t rt_cudaMalloc(void **address, size_t bytes) {
    if (address == NULL)
        return cudaErrorInvalidValue;
    *address = NULL;
    const cudaError_t result = rt_ready();
    return result != cudaSuccess || bytes == 0 ? result : rt_calls[0].cuMemAlloc((CUdeviceptr *)address, bytes);
}

/* cudaFree(NULL) is how programs make a context. */
cudaError_t rt_cudaFree(void *address) {
    const cudaError_t result = rt_ready();
    return result != cudaSuccess || address == NULL ? result : rt_calls[0].cuMemFree((CUdeviceptr)address);
}

cudaError_t rt_cudaFreeHost(void *address) {
    const cudaError_t result = rt_ready();
    return result != cudaSuccess || address == NULL ? result : rt_calls[0].cuMemFreeHost(address);
}

cudaError_t rt_cudaMallocManaged(void **address, size_t bytes, unsigned int flags) {
    const cudaError_t result = rt_ready();
    if (address == NULL || bytes == 0)
        return cudaErrorInvalidValue;
    return result != cudaSuccess ? result : rt_calls[0].cuMemAllocManaged((CUdeviceptr *)address, bytes, flags);
}

cudaError_t rt_cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height) {
    const cudaError_t result = rt_ready();
    if (address == NULL || pitch == NULL)
        return cudaErrorInvalidValue;
    return result != cudaSuccess
               ? result
               : rt_calls[0].cuMemAllocPitch((CUdeviceptr *)address, pitch, width, height, PITCH_ELEMENT);
}

/* The value of a pointer's attribute; left as it is where the driver knows none. */
static bool look(void *value, int attribute, const void *address) {
    return rt_calls[0].cuPointerGetAttribute(value, attribute, (CUdeviceptr)address) == CUDA_SUCCESS;
}

cudaError_t rt_cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address) {
    unsigned int type = 0, managed = 0;
    if (attributes == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t result = rt_ready();
    if (result != cudaSuccess)
        return result;
    memset(attributes, 0, sizeof *attributes);
    attributes->device = DEVICE_OF_NOTHING;
    if (!look(&type, ATTRIBUTE_MEMORY_TYPE, address)) {
        attributes->hostPointer = (void *)(uintptr_t)address;
        return cudaSuccess; /* memory of the program's own */
    }
    look(&managed, ATTRIBUTE_IS_MANAGED, address);
    look(&attributes->device, ATTRIBUTE_DEVICE_ORDINAL, address);
    look(&attributes->devicePointer, ATTRIBUTE_DEVICE_POINTER, address);
    look(&attributes->hostPointer, ATTRIBUTE_HOST_POINTER, address);
    attributes->type = managed ? MANAGED : (int)type;
    return cudaSuccess;
}
