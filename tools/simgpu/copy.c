/* Copies and fills: real, and done when they are called; in virtual time they take their place in the stream, and those that
 * leave the memory of a device take turns on its copy engines.
 *
 * Whether the host waits is that of "API synchronization behavior" in the reference of the driver API: for every copy from
 * host memory to host memory and from a device to pageable memory, and, where pageable memory must be staged, for copies
 * to a device. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const double MEMORY_BYTES_PER_US = 1e6, LATENCY_US = 1;
/* Assumption: what one thread of the host copies, to a staging buffer or to other memory of the host. */
static const double PAGEABLE_BYTES_PER_US = 10e3;
enum { STAGED_ABOVE = 64 << 10 }; /* smaller ones travel with the command */

static bool ends_in(const void *address, size_t pitch, const struct transfer *transfer) {
    return sim_memory_has((CUdeviceptr)(uintptr_t)address, pitch * (transfer->height - 1) + transfer->width);
}

/* Memory that the driver has taken back before a copy reaches it (a node of a graph, say) is left alone; on a GPU that
 * would be an illegal address. */
void sim_transfer_run(const struct transfer *transfer) {
    if ((transfer->to_driver && !ends_in(transfer->to, transfer->to_pitch, transfer)) ||
        (transfer->from_driver && !ends_in(transfer->from, transfer->from_pitch, transfer)))
        return;
    for (size_t row = 0; row < transfer->height; row++) {
        uint8_t *const to = (uint8_t *)transfer->to + row * transfer->to_pitch;
        if (transfer->from != NULL) {
            memmove(to, (const uint8_t *)transfer->from + row * transfer->from_pitch, transfer->width);
            continue;
        }
        for (size_t at = 0; at < transfer->width; at += transfer->value_bytes)
            memcpy(to + at, &transfer->value, transfer->value_bytes);
    }
}

/* Where its ends are, and by that and its size which engine it takes, for how long, and whether the host waits. */
void sim_transfer_measure(struct transfer *transfer) {
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)transfer->to, from = (CUdeviceptr)(uintptr_t)transfer->from;
    const double bytes = (double)transfer->width * (double)transfer->height;
    const bool fill = from == 0;
    const struct place end = sim_memory_place(to), start = fill ? end : sim_memory_place(from);
    transfer->to_driver = sim_memory_has(to, 1);
    transfer->from_driver = !fill && sim_memory_has(from, 1);
    transfer->unit = UNIT_NONE;
    transfer->waits = false;
    double bytes_per_us = MEMORY_BYTES_PER_US;
    if (!fill && !end.device && !start.device) {
        bytes_per_us = PAGEABLE_BYTES_PER_US;
        transfer->waits = true;
    } else if (end.device != start.device) {
        const bool to_device = end.device, pageable = !(to_device ? start.locked : end.locked);
        bytes_per_us = sim_link(sim_gpu(to_device ? end.index : start.index), false);
        transfer->unit = to_device ? UNIT_TO_DEVICE : UNIT_FROM_DEVICE;
        transfer->waits = pageable && (!to_device || bytes > (double)STAGED_ABOVE);
        if (transfer->waits)
            bytes_per_us = PAGEABLE_BYTES_PER_US;
    } else if (end.device && end.index != start.index) {
        bytes_per_us = sim_link(sim_gpu(start.index), true);
        transfer->unit = UNIT_PEER;
    }
    transfer->us = LATENCY_US + bytes / bytes_per_us;
}

static CUresult transfer_in(struct stream *stream, const struct transfer *transfer, bool wait) {
    bool capturing;
    CUresult result = sim_capture_check(stream, &capturing);
    if (result == CUDA_SUCCESS && wait)
        result = sim_capture_forbids();
    if (result != CUDA_SUCCESS)
        return result;
    if (capturing) {
        struct node *const node = sim_capture_node(stream, transfer->from != NULL ? NODE_MEMCPY : NODE_MEMSET);
        if (node == NULL || (node->transfer = malloc(sizeof *transfer)) == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *node->transfer = *transfer;
        return CUDA_SUCCESS;
    }
    struct op *const op = sim_stream_op(stream, OP_DELAY);
    sim_transfer_run(transfer);
    op->delay_us = transfer->us;
    op->unit = transfer->unit;
    sim_stream_submit(stream, op);
    return wait || transfer->waits ? sim_stream_drain(stream) : CUDA_SUCCESS;
}

static CUresult transfer(const struct transfer *transfer, CUstream handle, bool per_thread, bool wait) {
    SIM_CALL_WITH_STREAM(stream);
    const bool fill = transfer->from == NULL;
    if (transfer->width == 0 || transfer->height == 0)
        return CUDA_SUCCESS;
    if (transfer->to == NULL || (fill && transfer->value_bytes == 0))
        return CUDA_ERROR_INVALID_VALUE;
    struct transfer full = *transfer;
    sim_transfer_measure(&full);
    return transfer_in(stream, &full, wait);
}

static size_t extent(size_t pitch, size_t width, size_t height) {
    return height == 0 ? 0 : pitch * (height - 1) + width;
}

/* Copies one piece; `device` says which ends must be device memory. */
enum { TO_DEVICE = 1, FROM_DEVICE = 2 };

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, int device, CUstream handle, bool per_thread,
                     bool wait) {
    if (bytes > 0 && (to == 0 || from == 0))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const bool good = bytes == 0 || (((device & TO_DEVICE) == 0 || sim_memory_has(to, bytes)) &&
                                     ((device & FROM_DEVICE) == 0 || sim_memory_has(from, bytes)));
    sim_unlock();
    if (sim_is_initialized() && !good)
        return CUDA_ERROR_INVALID_VALUE;
    const struct transfer one = {
        .to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .width = bytes, .height = 1};
    return transfer(&one, handle, per_thread, wait);
}

#define ADDRESS(pointer) (CUdeviceptr)(uintptr_t)(pointer)

#define COPY(name, to_type, from_type, device)                                                                         \
    SIM_API CUresult name##_v2(to_type to, from_type from, size_t bytes) {                                             \
        return copy(ADDRESS(to), ADDRESS(from), bytes, device, NULL, false, true);                                     \
    }                                                                                                                  \
    SIM_API CUresult name##_v2_ptds(to_type to, from_type from, size_t bytes) {                                        \
        return copy(ADDRESS(to), ADDRESS(from), bytes, device, NULL, true, true);                                      \
    }                                                                                                                  \
    SIM_API CUresult name##Async_v2(to_type to, from_type from, size_t bytes, CUstream stream) {                       \
        return copy(ADDRESS(to), ADDRESS(from), bytes, device, stream, false, false);                                  \
    }                                                                                                                  \
    SIM_API CUresult name##Async_v2_ptsz(to_type to, from_type from, size_t bytes, CUstream stream) {                  \
        return copy(ADDRESS(to), ADDRESS(from), bytes, device, stream, true, false);                                   \
    }

COPY(cuMemcpyHtoD, CUdeviceptr, const void *, TO_DEVICE)
COPY(cuMemcpyDtoH, void *, CUdeviceptr, FROM_DEVICE)
COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, TO_DEVICE | FROM_DEVICE)

SIM_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy(to, from, bytes, 0, NULL, false, true);
}

SIM_API CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy(to, from, bytes, 0, NULL, true, true);
}

SIM_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(to, from, bytes, 0, stream, false, false);
}

SIM_API CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(to, from, bytes, 0, stream, true, false);
}

SIM_API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                              size_t bytes) {
    (void)to_context, (void)from_context;
    return copy(to, from, bytes, TO_DEVICE | FROM_DEVICE, NULL, false, true);
}

SIM_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                   size_t bytes, CUstream stream) {
    (void)to_context, (void)from_context;
    return copy(to, from, bytes, TO_DEVICE | FROM_DEVICE, stream, false, false);
}

enum { TYPE_HOST = 1, TYPE_DEVICE = 2, TYPE_UNIFIED = 4 };

static bool end_of_2d(int type, const void *host, CUdeviceptr device, size_t x, size_t y, size_t pitch,
                      uintptr_t *out) {
    if (type != TYPE_HOST && type != TYPE_DEVICE && type != TYPE_UNIFIED)
        return false; /* arrays are not simulated */
    *out = (type == TYPE_HOST ? (uintptr_t)host : (uintptr_t)device) + y * pitch + x;
    return true;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *what, CUstream handle, bool per_thread, bool wait) {
    uintptr_t to, from;
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t to_pitch = what->dstPitch != 0 ? what->dstPitch : what->WidthInBytes;
    const size_t from_pitch = what->srcPitch != 0 ? what->srcPitch : what->WidthInBytes;
    if (!end_of_2d(what->dstMemoryType, what->dstHost, what->dstDevice, what->dstXInBytes, what->dstY, to_pitch, &to) ||
        !end_of_2d(what->srcMemoryType, what->srcHost, what->srcDevice, what->srcXInBytes, what->srcY, from_pitch,
                   &from))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (to_pitch < what->WidthInBytes || from_pitch < what->WidthInBytes)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const bool good =
        (what->dstMemoryType == TYPE_HOST || sim_memory_has(to, extent(to_pitch, what->WidthInBytes, what->Height))) &&
        (what->srcMemoryType == TYPE_HOST ||
         sim_memory_has(from, extent(from_pitch, what->WidthInBytes, what->Height)));
    sim_unlock();
    if (sim_is_initialized() && !good)
        return CUDA_ERROR_INVALID_VALUE;
    const struct transfer rows = {.to = (void *)to,
                                  .from = (const void *)from,
                                  .to_pitch = to_pitch,
                                  .from_pitch = from_pitch,
                                  .width = what->WidthInBytes,
                                  .height = what->Height};
    return transfer(&rows, handle, per_thread, wait);
}

SIM_API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *what) {
    return copy_2d(what, NULL, false, true);
}

SIM_API CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *what) {
    return copy_2d(what, NULL, true, true);
}

SIM_API CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *what) {
    return copy_2d(what, NULL, false, true);
}

SIM_API CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *what) {
    return copy_2d(what, NULL, true, true);
}

SIM_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *what, CUstream stream) {
    return copy_2d(what, stream, false, false);
}

SIM_API CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *what, CUstream stream) {
    return copy_2d(what, stream, true, false);
}

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, uint32_t bytes, size_t width, size_t height,
                     CUstream handle, bool per_thread, bool wait) {
    sim_lock();
    const bool good = width == 0 || height == 0 || sim_memory_has(to, extent(pitch, width * bytes, height));
    sim_unlock();
    if (sim_is_initialized() && (!good || to % bytes != 0))
        return CUDA_ERROR_INVALID_VALUE;
    const struct transfer rows = {.to = (void *)(uintptr_t)to,
                                  .to_pitch = pitch,
                                  .width = width * bytes,
                                  .height = height,
                                  .value = value,
                                  .value_bytes = bytes};
    return transfer(&rows, handle, per_thread, wait);
}

#define FILL(bits, type)                                                                                               \
    SIM_API CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count) {                                  \
        return fill(to, 0, value, bits / 8, count, 1, NULL, false, true);                                              \
    }                                                                                                                  \
    SIM_API CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr to, type value, size_t count) {                             \
        return fill(to, 0, value, bits / 8, count, 1, NULL, true, true);                                               \
    }                                                                                                                  \
    SIM_API CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {               \
        return fill(to, 0, value, bits / 8, count, 1, stream, false, false);                                           \
    }                                                                                                                  \
    SIM_API CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr to, type value, size_t count, CUstream stream) {          \
        return fill(to, 0, value, bits / 8, count, 1, stream, true, false);                                            \
    }

FILL(8, unsigned char)
FILL(32, unsigned int)
