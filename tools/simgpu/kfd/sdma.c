/* Packets of copy queues. The runtime pads them with words of zero, which are packets that do nothing. */
#include <stdatomic.h>
#include <string.h>

#include "kfd.h"

enum operation { NOTHING = 0, COPY = 1, FENCE = 5, TRAP = 6, POLL = 8, ATOMIC = 10, TIMESTAMP = 13 };
enum { COPY_LINEAR = 0, COPY_RECTANGLE = 4, ADD_64 = 47 };
enum { ALWAYS = 0, EQUAL = 3, BLOCKED = 0, UNKNOWN = -1 };

static void *pointer(const uint32_t *words) {
    return (void *)(uintptr_t)(words[0] | (uint64_t)words[1] << 32);
}

/* One side of a rectangle: address, x:14 y:14 z:11, pitch:19, slice:28; sizes in elements, less one. */
static uint8_t *corner(const uint32_t *words, uint32_t shift, uint64_t *pitch, uint64_t *slice) {
    const uint64_t x = words[2] & 0x3fff, y = words[2] >> 16 & 0x3fff, z = words[3] & 0x7ff;
    *pitch = ((uint64_t)(words[3] >> 13) + 1) << shift;
    *slice = ((uint64_t)(words[4] & 0xfffffff) + 1) << shift;
    return (uint8_t *)pointer(words) + (x << shift) + y * *pitch + z * *slice;
}

static void copy_rectangle(const uint32_t *words) {
    const uint32_t shift = words[0] >> 29;
    uint64_t from_pitch, from_slice, to_pitch, to_slice;
    const uint8_t *const from = corner(words + 1, shift, &from_pitch, &from_slice);
    uint8_t *const to = corner(words + 6, shift, &to_pitch, &to_slice);
    const uint64_t width = ((uint64_t)(words[11] & 0x3fff) + 1) << shift;
    const uint64_t rows = (words[11] >> 16 & 0x3fff) + 1, slices = (words[12] & 0x7ff) + 1;
    for (uint64_t z = 0; z < slices; z++)
        for (uint64_t y = 0; y < rows; y++)
            memcpy(to + z * to_slice + y * to_pitch, from + z * from_slice + y * from_pitch, width);
}

static bool poll_open(const uint32_t *words) {
    const uint32_t function = words[0] >> 28 & 7;
    if (function == ALWAYS)
        return true;
    const uint32_t value = atomic_load((_Atomic uint32_t *)pointer(words + 1)) & words[4];
    return function == EQUAL ? value == words[3] : value != words[3];
}

/* Does one packet; answers how many words it has, BLOCKED if it waits, UNKNOWN if it is none of those. */
static int run(const uint32_t *words) {
    const uint32_t detail = words[0] >> 8 & 255;
    switch ((enum operation)(words[0] & 255)) {
    case NOTHING:
        return 1 + (int)(words[0] >> 16 & 0x3fff);
    case COPY:
        if (detail == COPY_RECTANGLE) {
            copy_rectangle(words);
            return 13;
        }
        if (detail != COPY_LINEAR)
            return UNKNOWN;
        memmove(pointer(words + 5), pointer(words + 3), (words[1] & 0x3fffff) + 1);
        return 7;
    case FENCE:
        atomic_store((_Atomic uint32_t *)pointer(words + 1), words[3]);
        return 4;
    case TRAP:
        kfd_wake(words[1] & 0xfffffff);
        return 2;
    case POLL:
        return poll_open(words) ? 6 : BLOCKED;
    case ATOMIC:
        if (words[0] >> 25 != ADD_64)
            return UNKNOWN;
        atomic_fetch_add((_Atomic uint64_t *)pointer(words + 1), words[3] | (uint64_t)words[4] << 32);
        return 8;
    case TIMESTAMP:
        *(uint64_t *)pointer(words + 1) = kfd_now();
        return 3;
    }
    return UNKNOWN;
}

bool kfd_run_sdma(struct kfd_queue *queue) {
    const uint64_t written = atomic_load(&queue->doorbell);
    uint64_t index = atomic_load(&queue->read_index);
    const uint64_t start = index;
    while (index < written) {
        const uint32_t *const words = (const uint32_t *)(queue->ring + index % queue->ring_bytes);
        const int length = run(words);
        if (length == BLOCKED)
            break;
        if (length == UNKNOWN) {
            kfd_say("a copy queue holds a packet that is not simulated (%08x); the queue stops", words[0]);
            queue->stopped = true;
            break;
        }
        index += 4 * (uint64_t)length;
        atomic_store(&queue->read_index, index);
    }
    return index != start;
}
