/* Occupancy queries of the program. It sizes grids by the answer, and blocks of some grids wait for each other, so the
 * answer must stay true: the kernel is left alone from then on. The answer itself is the driver's own.
 *
 * It depends on the limit of dynamic shared memory (an H200 answers 0 blocks above the limit, and offers no more than
 * the limit). A limit that we have raised stays raised, because launches of ours may be in progress; instead the query
 * is changed so that the driver answers as for the program's own limit. */
#include "../core/core.h"
#include "../gpu/device.h"
#include "../gpu/handle.h"
#include "../gpu/streams.h"
#include "cuda.h"

#define ABOVE_LIMITS OVERLAP_LARGEST_SIZE /* dynamic bytes that no device allows */

/* Was it launched with our size, in this form or another one? */
static bool is_shaped(const struct handle *handle, const struct handle *origin) {
    return OVERLAP_RELAXED(handle->limit.ours) || (origin && OVERLAP_RELAXED(origin->limit.ours));
}

/* Called before the driver answers: launches that follow from the answer come later. stream: for which the question is, or
 * NULL. Returns the program's own limit of dynamic bytes if it is not the driver's. */
static uint32_t note_query(CUfunction function, CUstream stream) {
    /* Only a policy that shapes has to leave the kernel alone, and may have raised its limit. */
    struct handle *const handle =
        streams_wanted() & STREAMS_SHAPES && armed_and_ready(VENDOR_CUDA) ? handle_find(function) : NULL;
    if (!handle)
        return UINT32_MAX;
    struct handle *const origin = handle_origin(handle);
    if (!(OVERLAP_RELAXED(handle->marks) & HANDLE_OCCUPANCY_ASKED)) { /* of this form: its attributes are its own */
        handle_mark(handle, HANDLE_OCCUPANCY_ASKED);
        __atomic_fetch_or(&handle->marks, (uint32_t)HANDLE_OCCUPANCY_ASKED, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* a first launch with our size looks for the mark (cuda_prepare) */
        if (is_shaped(handle, origin))
            carveout_leave(handle);
    }
    if (!is_shaped(handle, origin))
        return UINT32_MAX;
    const struct place place = stream_place(stream, STREAM_OF_CONTEXT, stream_find(stream, STREAM_OF_CONTEXT));
    return place.device == NO_DEVICE ? UINT32_MAX : limit_own(handle, place.device);
}

static size_t within(uint32_t limit, size_t dynamic) {
    return dynamic > limit && dynamic < ABOVE_LIMITS ? ABOVE_LIMITS : dynamic;
}

/* The program's callback that returns the dynamic bytes of a block, while the driver calls it. */
static __thread struct size_callback {
    CUoccupancyB2DSize sizes;
    uint32_t limit;
} size_callback __attribute__((tls_model("initial-exec")));

static size_t sizes_within(int threads) {
    const struct size_callback mine = size_callback;
    const size_t dynamic = mine.sizes(threads); /* the callback may make a query itself */
    size_callback = mine;
    return within(mine.limit, dynamic);
}

static CUoccupancyB2DSize limited_sizes(CUoccupancyB2DSize sizes, uint32_t limit) {
    if (!sizes || limit == UINT32_MAX)
        return sizes;
    size_callback.sizes = sizes;
    size_callback.limit = limit;
    return sizes_within;
}

CUresult occupancy_blocks_body(ENTRY, int *blocks, CUfunction function, int threads, size_t dynamic) {
    REAL_OR_RETURN(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    return real(blocks, function, threads, within(note_query(function, NULL), dynamic));
}

CUresult occupancy_blocks_flags_body(ENTRY, int *blocks, CUfunction function, int threads, size_t dynamic,
                                     uint32_t flags) {
    REAL_OR_RETURN(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    return real(blocks, function, threads, within(note_query(function, NULL), dynamic), flags);
}

CUresult occupancy_size_body(ENTRY, int *grid, int *threads, CUfunction function, CUoccupancyB2DSize sizes,
                             size_t dynamic, int limit) {
    REAL_OR_RETURN(cuOccupancyMaxPotentialBlockSize);
    const uint32_t own = note_query(function, NULL);
    return real(grid, threads, function, limited_sizes(sizes, own), within(own, dynamic), limit);
}

CUresult occupancy_size_flags_body(ENTRY, int *grid, int *threads, CUfunction function, CUoccupancyB2DSize sizes,
                                   size_t dynamic, int limit, uint32_t flags) {
    REAL_OR_RETURN(cuOccupancyMaxPotentialBlockSizeWithFlags);
    const uint32_t own = note_query(function, NULL);
    return real(grid, threads, function, limited_sizes(sizes, own), within(own, dynamic), limit, flags);
}

CUresult occupancy_available_body(ENTRY, size_t *dynamic, CUfunction function, int blocks, int threads) {
    REAL_OR_RETURN(cuOccupancyAvailableDynamicSMemPerBlock);
    const uint32_t limit = note_query(function, NULL);
    CUresult result = real(dynamic, function, blocks, threads);
    if (result == CUDA_SUCCESS && dynamic && *dynamic > limit)
        *dynamic = limit;
    return result;
}

/* cuOccupancyMaxPotentialClusterSize has the same parameters. */
CUresult occupancy_clusters_body(ENTRY, int *answer, CUfunction function, const CUlaunchConfig *config) {
    REAL_OR_RETURN(cuOccupancyMaxActiveClusters);
    const uint32_t limit = note_query(function, config ? config->hStream : NULL);
    if (!config || within(limit, config->sharedMemBytes) == config->sharedMemBytes)
        return real(answer, function, config);
    CUlaunchConfig refused = *config;
    refused.sharedMemBytes = (uint32_t)ABOVE_LIMITS;
    return real(answer, function, &refused);
}
