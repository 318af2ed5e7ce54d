/* Occupancy queries of the program. It sizes grids by the answer, and blocks of some grids wait for each other, so
 * the answer must stay true: the function asked about is left alone from then on. The answer is the runtime's own. */
#include "../../core/core.h"
#include "../common/handle.h"
#include "../common/streams.h"
#include "hip.h"

/* Called before the runtime answers: launches that follow from the answer come later. */
static void note_query(const void *function, enum handle_kind kind) {
    if (!function || !(streams_wanted() & STREAMS_SHAPES) || !armed_and_ready(VENDOR_HIP))
        return;
    if (!handle_find(function))
        handle_learn((void *)(uintptr_t)function, kind, NULL, NULL, NULL);
    struct handle *handle = handle_find(function);
    if (handle && !handle_is_marked(handle, HANDLE_OCCUPANCY_ASKED))
        handle_mark(handle, HANDLE_OCCUPANCY_ASKED);
}

hipError_t hip_blocks_body(ENTRY, int *blocks, const void *function, int threads, size_t dynamic) {
    REAL_OR_RETURN(hipOccupancyMaxActiveBlocksPerMultiprocessor);
    note_query(function, HANDLE_HIP_SYMBOL);
    return real(blocks, function, threads, dynamic);
}

hipError_t hip_blocks_flags_body(ENTRY, int *blocks, const void *function, int threads, size_t dynamic,
                                 uint32_t flags) {
    REAL_OR_RETURN(hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    note_query(function, HANDLE_HIP_SYMBOL);
    return real(blocks, function, threads, dynamic, flags);
}

hipError_t hip_module_blocks_body(ENTRY, int *blocks, hipFunction_t function, int threads, size_t dynamic) {
    REAL_OR_RETURN(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor);
    note_query(function, HANDLE_HIP_FUNCTION);
    return real(blocks, function, threads, dynamic);
}

hipError_t hip_module_blocks_flags_body(ENTRY, int *blocks, hipFunction_t function, int threads, size_t dynamic,
                                        uint32_t flags) {
    REAL_OR_RETURN(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    note_query(function, HANDLE_HIP_FUNCTION);
    return real(blocks, function, threads, dynamic, flags);
}

hipError_t hip_size_body(ENTRY, int *grid, int *threads, const void *function, size_t dynamic, int limit) {
    REAL_OR_RETURN(hipOccupancyMaxPotentialBlockSize);
    note_query(function, HANDLE_HIP_SYMBOL);
    return real(grid, threads, function, dynamic, limit);
}

hipError_t hip_module_size_body(ENTRY, int *grid, int *threads, hipFunction_t function, size_t dynamic, int limit) {
    REAL_OR_RETURN(hipModuleOccupancyMaxPotentialBlockSize);
    note_query(function, HANDLE_HIP_FUNCTION);
    return real(grid, threads, function, dynamic, limit);
}

hipError_t hip_module_size_flags_body(ENTRY, int *grid, int *threads, hipFunction_t function, size_t dynamic, int limit,
                                      uint32_t flags) {
    REAL_OR_RETURN(hipModuleOccupancyMaxPotentialBlockSizeWithFlags);
    note_query(function, HANDLE_HIP_FUNCTION);
    return real(grid, threads, function, dynamic, limit, flags);
}

hipError_t hip_available_body(ENTRY, size_t *dynamic, const void *function, int blocks, int threads) {
    REAL_OR_RETURN(hipOccupancyAvailableDynamicSMemPerBlock);
    note_query(function, HANDLE_HIP_SYMBOL);
    return real(dynamic, function, blocks, threads);
}
