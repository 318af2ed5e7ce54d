/* What the runtimes of ROCm 6.1 ask for besides. The two of libdrm are here because this library is asked before that one. */
#include "kfd.h"

int hsaKmtWaitOnEvent(struct thunk_event *event, uint32_t milliseconds);
int hsaKmtWaitOnMultipleEvents(struct thunk_event *events[], uint32_t count, bool all, uint32_t milliseconds);

/* The age of an event saves a sleep where it was set in between; here nothing is missed without it. */
EXPORT int hsaKmtWaitOnEvent_Ext(struct thunk_event *event, uint32_t milliseconds, uint64_t *age) {
    (void)age;
    return hsaKmtWaitOnEvent(event, milliseconds);
}

EXPORT int hsaKmtWaitOnMultipleEvents_Ext(struct thunk_event *events[], uint32_t count, bool all, uint32_t milliseconds,
                                          uint64_t *age) {
    (void)age;
    return hsaKmtWaitOnMultipleEvents(events, count, all, milliseconds);
}

EXPORT int hsaKmtAvailableMemory(uint32_t node, uint64_t *bytes) {
    const struct kfd_gpu *const gpu = kfd_gpu_of(node);
    if (gpu == NULL)
        return THUNK_INVALID_NODE;
    *bytes = (uint64_t)gpu->memory_gib << 30;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtGetRuntimeCapabilities(uint32_t *mask) {
    *mask = 0;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtGetAMDGPUDeviceHandle(uint32_t node, void **device) {
    *device = (void *)(uintptr_t)node;
    return kfd_gpu_of(node) != NULL ? THUNK_SUCCESS : THUNK_INVALID_NODE;
}

/* Of the kernel's answer only the frequency of the clock is used. */
EXPORT int amdgpu_query_gpu_info(void *device, uint32_t *info) {
    (void)device;
    info[18] = 1000000; /* kHz */
    return 0;
}

EXPORT int hsaKmtOpenSMI(uint32_t node, int *file) {
    (void)node, (void)file;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtExportDMABufHandle(void *address, uint64_t bytes, int *file, uint64_t *offset) {
    (void)address, (void)bytes, (void)file, (void)offset;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtReplaceAsanHeaderPage(void *address) {
    (void)address;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtReturnAsanHeaderPage(void *address) {
    (void)address;
    return THUNK_NOT_SUPPORTED;
}

/* A debugger, and counters. */
EXPORT int hsaKmtDbgEnable(void **information, uint32_t *bytes) {
    (void)information, (void)bytes;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtDbgDisable(void) {
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtDbgGetDeviceData(void **data, uint32_t *count, uint32_t *bytes) {
    (void)data, (void)count, (void)bytes;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtDbgGetQueueData(void **data, uint32_t *count, uint32_t *bytes, bool suspend) {
    (void)data, (void)count, (void)bytes, (void)suspend;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtSPMAcquire(uint32_t node) {
    (void)node;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtSPMRelease(uint32_t node) {
    (void)node;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtSPMSetDestBuffer(uint32_t node, uint32_t bytes, uint32_t *wait, uint32_t *copied, void *to,
                                  bool *lost) {
    (void)node, (void)bytes, (void)wait, (void)copied, (void)to, (void)lost;
    return THUNK_NOT_SUPPORTED;
}
