/* Memory of the GPU is memory of the host, so that an address means the same on both sides and a copy is a copy. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kfd.h"

/* Allocations, and ranges of the program that the runtime registered. */
struct range {
    struct range *next;
    uintptr_t start;
    uint64_t bytes;
    uint32_t type, node, flags;
    void *user_data;
};

static struct range *ranges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct range **place_of(uintptr_t address) {
    struct range **place = &ranges;
    while (*place != NULL && !(address >= (*place)->start && address - (*place)->start < (*place)->bytes))
        place = &(*place)->next;
    return place;
}

static int add(uint32_t type, uint32_t node, void *start, uint64_t bytes, uint32_t flags) {
    struct range *const range = malloc(sizeof *range);
    if (range == NULL)
        return THUNK_NO_MEMORY;
    *range = (struct range){NULL, (uintptr_t)start, bytes, type, node, flags, NULL};
    pthread_mutex_lock(&lock);
    range->next = ranges;
    ranges = range;
    pthread_mutex_unlock(&lock);
    return THUNK_SUCCESS;
}

/* Takes out the range that begins there; NULL if there is none of this type. */
static struct range *take(const void *address, uint32_t type) {
    pthread_mutex_lock(&lock);
    struct range **place = &ranges;
    while (*place != NULL && ((*place)->start != (uintptr_t)address || (*place)->type != type))
        place = &(*place)->next;
    struct range *const range = *place;
    if (range != NULL)
        *place = range->next;
    pthread_mutex_unlock(&lock);
    return range;
}

bool kfd_allocation_of(const void *address, uintptr_t *start, uint64_t *bytes) {
    pthread_mutex_lock(&lock);
    const struct range *const range = *place_of((uintptr_t)address);
    if (range != NULL) {
        *start = range->start;
        *bytes = range->bytes;
    }
    pthread_mutex_unlock(&lock);
    return range != NULL;
}

/* Pages come into being when they are touched: scratch of gigabytes costs nothing. */
EXPORT int hsaKmtAllocMemory(uint32_t node, uint64_t bytes, uint32_t flags, void **address) {
    const uint64_t size = (bytes + 4095) & ~(uint64_t)4095;
    void *const start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return THUNK_NO_MEMORY;
    *address = start;
    return add(POINTER_ALLOCATED, node, start, size, flags);
}

EXPORT int hsaKmtFreeMemory(void *address, uint64_t bytes) {
    (void)bytes;
    struct range *const range = take(address, POINTER_ALLOCATED);
    if (range == NULL)
        return THUNK_INVALID_PARAMETER;
    munmap(address, range->bytes);
    free(range);
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtRegisterMemoryWithFlags(void *address, uint64_t bytes, uint32_t flags) {
    return add(POINTER_REGISTERED, 0, address, bytes, flags);
}

EXPORT int hsaKmtDeregisterMemory(void *address) {
    free(take(address, POINTER_REGISTERED));
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtMapMemoryToGPU(void *address, uint64_t bytes, uint64_t *device) {
    (void)bytes;
    if (device != NULL)
        *device = (uintptr_t)address;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtMapMemoryToGPUNodes(void *address, uint64_t bytes, uint64_t *device, uint32_t flags, uint64_t count,
                                     uint32_t *nodes) {
    (void)flags, (void)count, (void)nodes;
    return hsaKmtMapMemoryToGPU(address, bytes, device);
}

EXPORT int hsaKmtUnmapMemoryToGPU(void *address) {
    (void)address;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtQueryPointerInfo(const void *pointer, struct thunk_pointer *info) {
    *info = (struct thunk_pointer){.type = POINTER_UNKNOWN};
    pthread_mutex_lock(&lock);
    const struct range *const range = *place_of((uintptr_t)pointer);
    if (range != NULL) {
        info->type = range->type;
        info->node = range->node;
        info->flags = range->flags;
        info->host = (void *)range->start;
        info->device = range->start;
        info->bytes = range->bytes;
        info->user_data = range->user_data;
    }
    pthread_mutex_unlock(&lock);
    return range != NULL ? THUNK_SUCCESS : THUNK_ERROR;
}

EXPORT int hsaKmtSetMemoryUserData(const void *pointer, void *user_data) {
    pthread_mutex_lock(&lock);
    struct range *const range = *place_of((uintptr_t)pointer);
    if (range != NULL)
        range->user_data = user_data;
    pthread_mutex_unlock(&lock);
    return range != NULL ? THUNK_SUCCESS : THUNK_ERROR;
}
