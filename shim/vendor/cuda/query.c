/* What the program asks about occupancy. It sizes grids by the answer, some of which wait among themselves, so the answer
 * must stay true: the function asked about is left alone from then on, and what we have changed about it is taken back
 * as far as the answer depends on it. The answer itself is the driver's own. */
#include "cuda.h"

/* Before the driver answers: a launch that the answer leads to comes after it. */
static void asked_about(CUfunction function) {
    struct handle *handle = armed_and_ready() ? handle_find(function) : NULL;
    if (!handle || handle_is_marked(handle, HANDLE_OCCUPANCY_ASKED))
        return;
    handle_mark(handle, HANDLE_OCCUPANCY_ASKED);
    carveout_withdraw(handle);
    struct handle *origin = handle_origin(handle);
    if (origin)
        carveout_withdraw(origin);
}

CUresult occupancy_blocks_body(enum overlap_way way, enum hook hook, uintptr_t site, int *blocks, CUfunction function,
                               int threads, size_t dynamic) {
    REAL_OR_RETURN(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    asked_about(function);
    return real(blocks, function, threads, dynamic);
}

CUresult occupancy_blocks_flags_body(enum overlap_way way, enum hook hook, uintptr_t site, int *blocks,
                                     CUfunction function, int threads, size_t dynamic, uint32_t flags) {
    REAL_OR_RETURN(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    asked_about(function);
    return real(blocks, function, threads, dynamic, flags);
}

CUresult occupancy_size_body(enum overlap_way way, enum hook hook, uintptr_t site, int *grid, int *threads,
                             CUfunction function, CUoccupancyB2DSize sizes, size_t dynamic, int limit) {
    REAL_OR_RETURN(cuOccupancyMaxPotentialBlockSize);
    asked_about(function);
    return real(grid, threads, function, sizes, dynamic, limit);
}

CUresult occupancy_size_flags_body(enum overlap_way way, enum hook hook, uintptr_t site, int *grid, int *threads,
                                   CUfunction function, CUoccupancyB2DSize sizes, size_t dynamic, int limit,
                                   uint32_t flags) {
    REAL_OR_RETURN(cuOccupancyMaxPotentialBlockSizeWithFlags);
    asked_about(function);
    return real(grid, threads, function, sizes, dynamic, limit, flags);
}

CUresult occupancy_available_body(enum overlap_way way, enum hook hook, uintptr_t site, size_t *dynamic,
                                  CUfunction function, int blocks, int threads) {
    REAL_OR_RETURN(cuOccupancyAvailableDynamicSMemPerBlock);
    asked_about(function);
    return real(dynamic, function, blocks, threads);
}

/* cuOccupancyMaxPotentialClusterSize has the same parameters. */
CUresult occupancy_clusters_body(enum overlap_way way, enum hook hook, uintptr_t site, int *answer, CUfunction function,
                                 const CUlaunchConfig *config) {
    REAL_OR_RETURN(cuOccupancyMaxActiveClusters);
    asked_about(function);
    return real(answer, function, config);
}
