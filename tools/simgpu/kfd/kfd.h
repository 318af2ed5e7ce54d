/* The simulated thunk: which file does what.
 *
 *   topology.c  the machine: one CPU, and the GPUs that SIMGPU names
 *   memory.c    allocations: host memory
 *   event.c     events: what a waiting thread sleeps on
 *   queue.c     queues, and the thread that takes packets from them
 *   aql.c       packets of compute queues
 *   sdma.c      packets of copy queues
 *   kernel.c    what a kernel object says of itself; the log
 *   blit.c      the runtimes' own kernels that copy and fill
 *   rest.c      calls that need no answer of substance
 *
 * All that the runtime calls is exported; libhsakmt.map gives it the version that the runtime asks for.
 */
#ifndef KFD_H
#define KFD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hsa_abi.h"
#include "thunk_abi.h"

#define EXPORT __attribute__((visibility("default")))

enum { MAX_GPUS = 16 };

struct kfd_gpu {
    const char *key, *name;
    uint32_t major, minor, stepping; /* gfx90a is 9, 0, 10 */
    uint32_t compute_units, lds_bytes, memory_gib;
};

/* topology.c; node 0 is the CPU, node 1 the first GPU. */
void kfd_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
const struct kfd_gpu *kfd_gpu_of(uint32_t node);
uint64_t kfd_now(void);

/* memory.c */
bool kfd_allocation_of(const void *address, uintptr_t *start, uint64_t *bytes);

/* event.c */
void kfd_wake(uint32_t event);

/* queue.c */
struct kfd_queue {
    struct kfd_queue *next;
    uint64_t id;
    uint32_t node, type;
    int32_t priority;
    bool stopped;
    uint8_t *ring;
    uint64_t ring_bytes;
    struct hardware_queue *hardware;                    /* of compute queues: the runtime's */
    _Atomic uint64_t doorbell, write_index, read_index; /* of copy queues: ours */
};

/* Each takes what can be taken now; true if there was anything. */
bool kfd_run_aql(struct kfd_queue *queue);
bool kfd_run_sdma(struct kfd_queue *queue);

/* kernel.c */
void kfd_run_kernel(const struct kfd_queue *queue, const union packet *packet);

/* blit.c; true if it is one of them. */
bool kfd_run_bare_blit(const struct kernel_descriptor *kernel, const uint64_t *arguments);
bool kfd_run_named_blit(const char *name, const uint64_t *arguments);
#endif
