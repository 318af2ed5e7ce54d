/* Calls that need no answer of substance: nothing behind them is simulated, and nothing here depends on it. */
#include "kfd.h"

EXPORT int hsaKmtSetMemoryPolicy(uint32_t node, uint32_t usual, uint32_t other, void *start, uint64_t bytes) {
    (void)node, (void)usual, (void)other, (void)start, (void)bytes;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtSetTrapHandler(uint32_t node, void *code, uint64_t code_bytes, void *buffer, uint64_t buffer_bytes) {
    (void)node, (void)code, (void)code_bytes, (void)buffer, (void)buffer_bytes;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtSetQueueCUMask(uint64_t queue, uint32_t bits, uint32_t *mask) {
    (void)queue, (void)bits, (void)mask;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtAllocQueueGWS(uint64_t queue, uint32_t count, uint32_t *first) {
    (void)queue, (void)count;
    *first = 0;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtGetTileConfig(uint32_t node, struct thunk_tiles *tiles) {
    (void)node;
    tiles->tiles = tiles->macro_tiles = 0;
    tiles->address = tiles->banks = tiles->ranks = 0;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtRuntimeEnable(void *debugger, bool trap_registers) {
    (void)debugger, (void)trap_registers;
    return THUNK_NOT_SUPPORTED; /* no debugger */
}

EXPORT int hsaKmtRuntimeDisable(void) {
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtGetXNACKMode(int32_t *enabled) {
    *enabled = 0;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtSetXNACKMode(int32_t enabled) {
    return enabled ? THUNK_NOT_SUPPORTED : THUNK_SUCCESS;
}

EXPORT int hsaKmtSVMSetAttr(void *start, uint64_t bytes, unsigned count, void *attributes) {
    (void)start, (void)bytes, (void)count, (void)attributes;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtSVMGetAttr(void *start, uint64_t bytes, unsigned count, void *attributes) {
    (void)start, (void)bytes, (void)count, (void)attributes;
    return THUNK_NOT_SUPPORTED;
}

/* Memory of other processes and of graphics. */
EXPORT int hsaKmtShareMemory(void *address, uint64_t bytes, void *handle) {
    (void)address, (void)bytes, (void)handle;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtRegisterSharedHandle(const void *handle, void **address, uint64_t *bytes) {
    (void)handle, (void)address, (void)bytes;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtRegisterSharedHandleToNodes(const void *handle, void **address, uint64_t *bytes, uint64_t count,
                                             uint32_t *nodes) {
    (void)handle, (void)address, (void)bytes, (void)count, (void)nodes;
    return THUNK_NOT_SUPPORTED;
}

EXPORT int hsaKmtRegisterGraphicsHandleToNodes(uint64_t handle, void *resource, uint64_t count, uint32_t *nodes) {
    (void)handle, (void)resource, (void)count, (void)nodes;
    return THUNK_NOT_SUPPORTED;
}
