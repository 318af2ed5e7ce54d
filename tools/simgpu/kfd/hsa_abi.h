/* What the runtime leaves in memory for the hardware: packets, signals, queues, kernel descriptors.
 *
 * From the HSA Platform System Architecture Specification 1.2 (packets), AMD's amd_hsa_queue.h and amd_hsa_signal.h, and LLVM's
 * AMDGPUUsage (kernel descriptor). tests/hip/test_kfd.py compares the first three with the headers.
 */
#ifndef HSA_ABI_H
#define HSA_ABI_H
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum packet_type {
    PACKET_VENDOR = 0,
    PACKET_INVALID = 1,
    PACKET_KERNEL = 2,
    PACKET_BARRIER_AND = 3,
    PACKET_AGENT = 4,
    PACKET_BARRIER_OR = 5,
};

enum { VENDOR_BARRIER_VALUE = 2 };

union packet {
    struct {
        uint16_t header; /* type in the low byte */
        uint8_t vendor_format;
        uint8_t reserved[53];
        uint64_t completion;
    } any;
    struct {
        uint16_t header, setup;
        uint16_t workgroup[3], reserved0;
        uint32_t grid[3];
        uint32_t private_segment, group_segment;
        uint64_t kernel_object, arguments, reserved1, completion;
    } kernel;
    struct {
        uint16_t header, reserved0;
        uint32_t reserved1;
        uint64_t signals[5], reserved2, completion;
    } barrier;
    struct {
        uint16_t header, format;
        uint32_t reserved0;
        uint64_t signal;
        int64_t value, mask;
        uint32_t condition, reserved1;
        uint64_t reserved2, reserved3, completion;
    } barrier_value;
};
static_assert(sizeof(union packet) == 64, "a packet of the architected queuing language");

/* A signal's handle is its address. */
struct signal {
    int64_t kind;
    _Atomic int64_t value;
    uint64_t mailbox; /* 0: nobody waits for an interrupt */
    uint32_t event, reserved1;
    uint64_t start, end;
    uint64_t queue;
    uint32_t reserved2[2];
};
static_assert(sizeof(struct signal) == 64, "amd_signal_t");

struct hardware_queue {
    uint32_t type, features;
    uint64_t base, doorbell_signal;
    uint32_t size, reserved0;
    uint64_t id;
    uint32_t reserved1[4];
    uint64_t write_index;
    uint32_t group_aperture, private_aperture, max_cu, max_wave;
    uint64_t legacy_write_index;
    uint32_t legacy_lock, reserved2[9];
    _Atomic uint64_t read_index;
    uint32_t read_index_offset, scratch_ring, scratch_descriptor[4];
    uint64_t scratch_base, scratch_bytes;
    uint32_t scratch_lane_bytes, properties, reserved3[2];
    uint64_t inactive_signal;
    uint32_t reserved4[14];
};
static_assert(offsetof(struct hardware_queue, read_index) == 128, "amd_queue_t");
static_assert(sizeof(struct hardware_queue) == 256, "amd_queue_t");

/* What the firmware puts into the inactive signal of a queue that it stops. */
enum queue_error {
    QUEUE_BAD_DIMENSIONS = 2,
    QUEUE_BAD_GROUP_SEGMENT = 4,
    QUEUE_BAD_PACKET = 32,
    QUEUE_BAD_WORKGROUP = 64
};

struct kernel_descriptor {
    uint32_t group_segment, private_segment, arguments, reserved0;
    int64_t code;
    uint8_t reserved1[20];
    uint32_t resources3, resources1, resources2;
    uint16_t properties, preload;
    uint8_t reserved2[4];
};
static_assert(sizeof(struct kernel_descriptor) == 64, "kernel descriptor");

#endif
