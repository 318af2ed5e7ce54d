/* What AMD's HSA runtime passes to the thunk (libhsakmt), in our own words: only the structs that are needed.
 *
 * Layouts are those of hsakmttypes.h of ROCm 5.2 to 6.2, which packs to four bytes. tests/hip/test_kfd.py compares them with that
 * header. Bit fields are given as masks of their word.
 */
#ifndef THUNK_ABI_H
#define THUNK_ABI_H
#include <stdbool.h>
#include <stdint.h>

enum thunk_status {
    THUNK_SUCCESS = 0,
    THUNK_ERROR = 1,
    THUNK_INVALID_PARAMETER = 3,
    THUNK_INVALID_HANDLE = 4,
    THUNK_INVALID_NODE = 5,
    THUNK_NO_MEMORY = 6,
    THUNK_NOT_SUPPORTED = 11,
    THUNK_OUT_OF_RESOURCES = 13,
    THUNK_WAIT_TIMEOUT = 31,
};

#pragma pack(push, 4)

struct thunk_version {
    uint32_t major, minor;
};

struct thunk_system {
    uint32_t nodes, oem, platform, revision;
};

/* Bits of thunk_node.capability. */
enum { CAPABILITY_DOORBELL_64 = 2 << 12, CAPABILITY_WATCH_POINTS = 1 << 7, CAPABILITY_COHERENT_HOST = 1 << 28 };

struct thunk_node {
    uint32_t cpu_cores, simds, memory_banks, caches, io_links;
    uint32_t cpu_id_low, gpu_id_low;
    uint32_t capability;
    uint32_t waves_per_simd, lds_kib, gds_kib, wave_size;
    uint32_t shader_engines, arrays_per_engine, cus_per_array, simds_per_cu;
    uint32_t scratch_slots_per_cu;
    uint32_t engine; /* microcode:10, major:6, minor:8, stepping:8 */
    uint16_t vendor, device;
    uint32_t location;
    uint64_t local_memory;
    uint32_t gpu_mhz, cpu_mhz;
    int32_t render_minor;
    uint16_t marketing_name[64];
    uint8_t amd_name[64];
    uint32_t microcode; /* of the copy engines, in the low 10 bits */
    uint64_t debug;
    uint64_t hive;
    uint32_t sdma_engines, sdma_xgmi_engines;
    uint8_t sdma_queues_per_engine, cp_queues, gws, reserved2;
    uint32_t domain;
    uint64_t unique_id;
    uint32_t vgpr_bytes_per_cu, sgpr_bytes_per_cu;
    uint32_t dies, gpu_id, family; /* reserved before ROCm 6 */
};

enum thunk_heap { HEAP_SYSTEM = 0, HEAP_VRAM_PUBLIC = 1, HEAP_LDS = 4, HEAP_SCRATCH = 5, HEAP_MMIO_REMAP = 7 };

struct thunk_memory {
    uint32_t heap;
    uint64_t bytes;
    uint32_t flags, width, clock_max;
    uint64_t base;
};

enum { CACHE_DATA = 1, CACHE_OF_CPU = 4, CACHE_OF_GPU = 8 };

struct thunk_cache {
    uint32_t processor, level, size, line_size, lines_per_tag, associativity, latency;
    uint32_t type;
    uint32_t siblings[256];
};

enum { LINK_PCI_EXPRESS = 2, LINK_XGMI = 11 };

struct thunk_link {
    uint32_t type, major, minor, from, to, weight, latency_min, latency_max, bandwidth_min, bandwidth_max, transfer,
        flags;
};

/* Bits of the flags of an allocation. */
enum { MEMORY_EXECUTE = 1 << 12 };

enum { QUEUE_SDMA = 2, QUEUE_SDMA_XGMI = 5, QUEUE_AQL = 21 };

struct thunk_queue {
    uint64_t id;
    uint64_t *doorbell, *write_index, *read_index;
    volatile int64_t *error_reason;
};

struct thunk_event_descriptor {
    uint32_t type, node;
    void *user_data;
    uint64_t size;
};

struct thunk_event {
    uint32_t id;
    uint32_t type;
    uint32_t payload[5]; /* a union: the largest member is a memory fault */
    uint64_t data1;
    uint64_t mailbox;
    uint32_t data3;
};

struct thunk_clocks {
    uint64_t gpu, cpu, system, system_hz;
};

struct thunk_tiles {
    uint32_t *tile, *macro_tile;
    uint32_t tiles, macro_tiles, address, banks, ranks;
    uint32_t reserved[7];
};

enum thunk_pointer_type { POINTER_UNKNOWN = 0, POINTER_ALLOCATED = 1, POINTER_REGISTERED = 2 };

struct thunk_pointer {
    uint32_t type, node, flags;
    void *host;
    uint64_t device, bytes;
    uint32_t registered_count, mapped_count;
    const uint32_t *registered, *mapped;
    void *user_data;
};

#pragma pack(pop)

#endif
