/* Packets of compute queues: a kernel is done at once, a barrier waits for its signals. */
#include <stdatomic.h>

#include "kfd.h"

static struct signal *signal_of(uint64_t handle) {
    return (struct signal *)(uintptr_t)handle;
}

static void interrupt(struct signal *signal) {
    if (signal->mailbox != 0) {
        *(volatile uint64_t *)(uintptr_t)signal->mailbox = signal->event;
        kfd_wake(signal->event);
    }
}

static void complete(uint64_t handle, uint64_t start) {
    if (handle == 0)
        return;
    struct signal *const signal = signal_of(handle);
    signal->start = start;
    signal->end = kfd_now();
    atomic_fetch_sub(&signal->value, 1);
    interrupt(signal);
}

/* Stops the queue and tells the runtime why, which by default ends the process. */
static void fail(struct kfd_queue *queue, enum queue_error error) {
    queue->stopped = true;
    struct signal *const signal = signal_of(queue->hardware->inactive_signal);
    atomic_store(&signal->value, (int64_t)error);
    interrupt(signal);
}

static bool zero(uint64_t handle) {
    return handle == 0 || atomic_load(&signal_of(handle)->value) == 0;
}

static bool barrier_open(const union packet *packet, bool all) {
    bool named = false;
    for (int i = 0; i < 5; i++) {
        const uint64_t handle = packet->barrier.signals[i];
        if (all && !zero(handle))
            return false;
        if (!all && handle != 0) {
            named = true;
            if (zero(handle))
                return true;
        }
    }
    return all || !named;
}

static bool vendor_open(const union packet *packet) {
    if (packet->any.vendor_format != VENDOR_BARRIER_VALUE || packet->barrier_value.signal == 0)
        return true; /* commands of the hardware, such as flushing a cache that is not there */
    const int64_t value = atomic_load(&signal_of(packet->barrier_value.signal)->value) & packet->barrier_value.mask;
    const int64_t against = packet->barrier_value.value;
    switch (packet->barrier_value.condition) {
    case 0:
        return value == against;
    case 1:
        return value != against;
    case 2:
        return value < against;
    default:
        return value >= against;
    }
}

static int check_kernel(const struct kfd_queue *queue, const union packet *packet) {
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (packet->kernel.workgroup[i] == 0 || packet->kernel.grid[i] == 0)
            return QUEUE_BAD_DIMENSIONS;
        threads *= packet->kernel.workgroup[i];
    }
    if (threads > 1024)
        return QUEUE_BAD_WORKGROUP;
    return packet->kernel.group_segment > kfd_gpu_of(queue->node)->lds_bytes ? QUEUE_BAD_GROUP_SEGMENT : 0;
}

bool kfd_run_aql(struct kfd_queue *queue) {
    union packet *const ring = (union packet *)queue->ring;
    const uint64_t mask = queue->ring_bytes / sizeof *ring - 1;
    bool any = false;
    for (;; any = true) {
        const uint64_t index = atomic_load(&queue->hardware->read_index);
        union packet *const packet = &ring[index & mask];
        _Atomic uint16_t *const header = (_Atomic uint16_t *)&packet->any.header;
        const uint64_t start = kfd_now();
        const enum packet_type type = atomic_load(header) & 255;
        bool open = true;
        int error = 0;
        if (type == PACKET_INVALID)
            return any;
        if (type == PACKET_KERNEL)
            error = check_kernel(queue, packet);
        else if (type == PACKET_BARRIER_AND || type == PACKET_BARRIER_OR)
            open = barrier_open(packet, type == PACKET_BARRIER_AND);
        else if (type == PACKET_VENDOR)
            open = vendor_open(packet);
        else
            error = QUEUE_BAD_PACKET;
        if (!open)
            return any;
        if (error != 0) {
            fail(queue, (enum queue_error)error);
            return true;
        }
        if (type == PACKET_KERNEL)
            kfd_run_kernel(queue, packet);
        const uint64_t completion = packet->any.completion;
        atomic_store(header, PACKET_INVALID);
        atomic_store(&queue->hardware->read_index, index + 1);
        complete(completion, start);
    }
}
