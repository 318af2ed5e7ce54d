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

/* Memory that the driver has taken back before a copy reaches it (a node of a graph, say) is left alone; on a GPU that
 * would be an illegal address. */
void sim_transfer_run(const struct transfer *transfer) {
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)transfer->to, from = (CUdeviceptr)(uintptr_t)transfer->from;
    if ((transfer->to_driver && !sim_memory_has(to, transfer->bytes)) ||
        (transfer->from_driver && !sim_memory_has(from, transfer->bytes)))
        return;
    if (transfer->from != NULL)
        memmove(transfer->to, transfer->from, transfer->bytes);
    for (size_t at = 0; transfer->from == NULL && at < transfer->bytes; at += transfer->value_bytes)
        memcpy((uint8_t *)transfer->to + at, &transfer->value, transfer->value_bytes);
}

/* Where its ends are, and by that and its size which engine it takes, for how long, and whether the host waits. */
static void measure(struct transfer *transfer) {
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)transfer->to, from = (CUdeviceptr)(uintptr_t)transfer->from;
    const double bytes = (double)transfer->bytes;
    const bool fill = from == 0;
    const struct place end = sim_memory_place(to), start = fill ? end : sim_memory_place(from);
    transfer->to_driver = sim_memory_has(to, 1);
    transfer->from_driver = !fill && sim_memory_has(from, 1);
    static const char *const names[2][2] = {{"Memcpy HtoH", "Memcpy HtoD"}, {"Memcpy DtoH", "Memcpy DtoD"}};
    transfer->name = fill ? "Memset" : names[start.device][end.device];
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
        node->transfer = sim_new(1, sizeof *transfer);
        *node->transfer = *transfer;
        return CUDA_SUCCESS;
    }
    struct op *const op = sim_stream_op(stream, OP_DELAY);
    sim_transfer_run(transfer);
    op->delay_us = transfer->us;
    op->unit = transfer->unit;
    op->transfer = transfer->name;
    sim_stream_submit(stream, op);
    return wait || transfer->waits ? sim_stream_drain(stream) : CUDA_SUCCESS;
}

/* `device` says which ends must be device memory. */
enum { TO_DEVICE = 1, FROM_DEVICE = 2 };

static bool is_possible(const struct transfer *transfer, int device) {
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)transfer->to, from = (CUdeviceptr)(uintptr_t)transfer->from;
    const bool fill = transfer->value_bytes > 0;
    if (to == 0 || (fill ? to % transfer->value_bytes != 0 : from == 0))
        return false;
    return ((device & TO_DEVICE) == 0 || sim_memory_has(to, transfer->bytes)) &&
           ((device & FROM_DEVICE) == 0 || sim_memory_has(from, transfer->bytes));
}

static CUresult transfer(const struct transfer *transfer, int device, CUstream handle, bool per_thread, bool wait) {
    SIM_CALL_WITH_STREAM(stream);
    if (transfer->bytes == 0)
        return CUDA_SUCCESS;
    if (!is_possible(transfer, device))
        return CUDA_ERROR_INVALID_VALUE;
    struct transfer full = *transfer;
    measure(&full);
    return transfer_in(stream, &full, wait);
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, int device, CUstream handle, bool per_thread,
                     bool wait) {
    const struct transfer one = {.to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .bytes = bytes};
    return transfer(&one, device, handle, per_thread, wait);
}

#define ADDRESS(pointer) (CUdeviceptr)(uintptr_t)(pointer)

#define COPY(name, to_type, from_type, device)                                                                         \
    SIM_API CUresult name##_v2(to_type to, from_type from, size_t bytes) {                                             \
        SIM_NAMED(#name "_v2");                                                                                        \
        return copy(ADDRESS(to), ADDRESS(from), bytes, device, NULL, false, true);                                     \
    }                                                                                                                  \
    SIM_API CUresult name##_v2_ptds(to_type to, from_type from, size_t bytes) {                                        \
        SIM_NAMED(#name "_v2_ptds");                                                                                   \
        return copy(ADDRESS(to), ADDRESS(from), bytes, device, NULL, true, true);                                      \
    }                                                                                                                  \
    SIM_API CUresult name##Async_v2(to_type to, from_type from, size_t bytes, CUstream stream) {                       \
        SIM_NAMED(#name "Async_v2");                                                                                   \
        return copy(ADDRESS(to), ADDRESS(from), bytes, device, stream, false, false);                                  \
    }                                                                                                                  \
    SIM_API CUresult name##Async_v2_ptsz(to_type to, from_type from, size_t bytes, CUstream stream) {                  \
        SIM_NAMED(#name "Async_v2_ptsz");                                                                              \
        return copy(ADDRESS(to), ADDRESS(from), bytes, device, stream, true, false);                                   \
    }

COPY(cuMemcpyHtoD, CUdeviceptr, const void *, TO_DEVICE)
COPY(cuMemcpyDtoH, void *, CUdeviceptr, FROM_DEVICE)
COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, TO_DEVICE | FROM_DEVICE)

SIM_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    SIM_NAMED(__func__);
    return copy(to, from, bytes, 0, NULL, false, true);
}

SIM_API CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    SIM_NAMED(__func__);
    return copy(to, from, bytes, 0, NULL, true, true);
}

SIM_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    SIM_NAMED(__func__);
    return copy(to, from, bytes, 0, stream, false, false);
}

SIM_API CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    SIM_NAMED(__func__);
    return copy(to, from, bytes, 0, stream, true, false);
}

static CUresult fill(CUdeviceptr to, uint32_t value, uint32_t each, size_t count, CUstream handle, bool per_thread,
                     bool wait) {
    const struct transfer all = {
        .to = (void *)(uintptr_t)to, .bytes = count * each, .value = value, .value_bytes = each};
    return transfer(&all, TO_DEVICE, handle, per_thread, wait);
}

#define FILL(bits, type)                                                                                               \
    SIM_API CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count) {                                  \
        SIM_NAMED("cuMemsetD" #bits "_v2");                                                                            \
        return fill(to, value, bits / 8, count, NULL, false, true);                                                    \
    }                                                                                                                  \
    SIM_API CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr to, type value, size_t count) {                             \
        SIM_NAMED("cuMemsetD" #bits "_v2_ptds");                                                                       \
        return fill(to, value, bits / 8, count, NULL, true, true);                                                     \
    }                                                                                                                  \
    SIM_API CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {               \
        SIM_NAMED("cuMemsetD" #bits "Async");                                                                          \
        return fill(to, value, bits / 8, count, stream, false, false);                                                 \
    }                                                                                                                  \
    SIM_API CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr to, type value, size_t count, CUstream stream) {          \
        SIM_NAMED("cuMemsetD" #bits "Async_ptsz");                                                                     \
        return fill(to, value, bits / 8, count, stream, true, false);                                                  \
    }

FILL(8, unsigned char)
FILL(32, unsigned int)
