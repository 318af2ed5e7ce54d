/* Device memory is host memory: real bytes, one address space. Large allocations take pages only where touched. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

enum { ALIGNMENT = 256, LARGE = 1 << 20 };

struct allocation {
    CUdeviceptr start;
    size_t bytes, mapped; /* mapped: 0 if it came from malloc */
    int type, device;
    CUcontext context; /* which may have ended since */
};

static struct allocation *allocations; /* by start */
static size_t count, room;
static size_t used[MAX_DEVICES];

/* The first allocation that starts after an address. */
static size_t upper(CUdeviceptr address) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (allocations[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct allocation *find(CUdeviceptr address) {
    const size_t at = upper(address);
    if (at == 0)
        return NULL;
    struct allocation *const found = &allocations[at - 1];
    return address - found->start < found->bytes ? found : NULL;
}

bool sim_memory_has(CUdeviceptr address, size_t bytes) {
    const struct allocation *const found = find(address);
    return found != NULL && bytes <= found->bytes - (address - found->start);
}

struct place sim_memory_place(CUdeviceptr address) {
    const struct allocation *const found = find(address);
    if (found == NULL)
        return (struct place){.locked = false};
    return (struct place){.device = found->type != MEMORY_HOST, .locked = true, .index = found->device};
}

static void *pages(size_t bytes, size_t *mapped) {
    *mapped = 0;
    if (bytes < LARGE) {
        void *const memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        return memory != NULL ? memset(memory, 0, bytes) : NULL;
    }
    *mapped = (bytes + 4095) / 4096 * 4096;
    void *const memory =
        mmap(NULL, *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

CUdeviceptr sim_memory_new(size_t bytes, const struct context *context, int type) {
    const size_t total = (size_t)sim_gpu(context->device)->memory_gib << 30;
    if (bytes == 0 || bytes > total || (type == MEMORY_DEVICE && bytes > total - used[context->device]))
        return 0;
    if (count == room) {
        room = room == 0 ? 256 : room * 2;
        allocations = sim_grow(allocations, room, sizeof *allocations);
    }
    size_t mapped;
    void *const memory = pages(bytes, &mapped);
    if (memory == NULL)
        return 0;
    const CUdeviceptr start = (CUdeviceptr)(uintptr_t)memory;
    const size_t at = upper(start);
    memmove(&allocations[at + 1], &allocations[at], (count++ - at) * sizeof *allocations);
    allocations[at] = (struct allocation){start, bytes, mapped, type, context->device, context->handle};
    if (type == MEMORY_DEVICE)
        used[context->device] += bytes;
    return start;
}

bool sim_memory_free(CUdeviceptr address) {
    struct allocation *const found = find(address);
    if (found == NULL || found->start != address)
        return false;
    if (found->type == MEMORY_DEVICE)
        used[found->device] -= found->bytes;
    void *const memory = (void *)(uintptr_t)address;
    if (found->mapped > 0)
        munmap(memory, found->mapped);
    else
        free(memory);
    memmove(found, found + 1, (size_t)(&allocations[--count] - found) * sizeof *allocations);
    return true;
}

static CUresult allocate(void *out, size_t bytes, int type) {
    SIM_CALL_IN_CONTEXT(context);
    const CUresult forbidden = sim_capture_forbids();
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    if (out == NULL || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    const CUdeviceptr address = sim_memory_new(bytes, context, type);
    memcpy(out, &address, sizeof address);
    return address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult release(CUdeviceptr address) {
    SIM_CALL();
    const CUresult forbidden = sim_capture_forbids();
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    if (address == 0)
        return CUDA_SUCCESS;
    const struct allocation *const found = find(address);
    struct context *const context = found != NULL ? sim_context_of(found->context) : NULL;
    const CUresult drained = context != NULL ? sim_context_drain(context) : CUDA_SUCCESS; /* as on the real driver */
    if (drained != CUDA_SUCCESS)
        return drained;
    return sim_memory_free(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_ENTRY(cuMemAlloc_v2, allocate, (CUdeviceptr * out, size_t bytes), out, bytes, MEMORY_DEVICE)
SIM_ENTRY(cuMemFree_v2, release, (CUdeviceptr address), address)
SIM_ENTRY(cuMemAllocHost_v2, allocate, (void **out, size_t bytes), out, bytes, MEMORY_HOST)

SIM_API CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags) {
    return flags <= 7 ? allocate(out, bytes, MEMORY_HOST) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemFreeHost(void *address) {
    return release((CUdeviceptr)(uintptr_t)address);
}

SIM_API CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    SIM_CALL_IN_CONTEXT(context);
    if (available == NULL || total == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *total = (size_t)sim_gpu(context->device)->memory_gib << 30;
    *available = *total - used[context->device];
    return CUDA_SUCCESS;
}

SIM_API CUresult cuPointerGetAttribute(void *value, int id, CUdeviceptr address) {
    enum { DEVICE_POINTER = 3 };
    SIM_CALL_IN_CONTEXT(context);
    if (value == NULL || find(address) == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (id != DEVICE_POINTER)
        return CUDA_ERROR_NOT_SUPPORTED;
    memcpy(value, &address, sizeof address);
    return CUDA_SUCCESS;
}
