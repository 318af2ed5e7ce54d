/* What a queue does with packets that HIP seldom or never writes: queue_cases prints one line per case.
 *
 * `refused N`: the queue's callback was told status N. `waits`: not done before its condition holds, and done then.
 */
#if !__has_include(<hsa/hsa_ext_amd.h>) /* `make lint` has no such header */
int main(void) {
    return 2;
}
#else
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

enum { BYTES = 1 << 16, WAIT = 1 << 24, SHORT = 20000000 };

static hsa_agent_t gpu, cpu;
static hsa_amd_memory_pool_t memory;
static hsa_signal_t told;
static char descriptor[64] __attribute__((aligned(64)));

static hsa_status_t find_agent(hsa_agent_t agent, void *unused) {
    hsa_device_type_t type;
    (void)unused;
    hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
    *(type == HSA_DEVICE_TYPE_GPU ? &gpu : &cpu) = agent;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t find_memory(hsa_amd_memory_pool_t pool, void *unused) {
    hsa_amd_segment_t segment;
    (void)unused;
    hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
    if (segment == HSA_AMD_SEGMENT_GLOBAL)
        memory = pool;
    return HSA_STATUS_SUCCESS;
}

static void failed(hsa_status_t status, hsa_queue_t *queue, void *unused) {
    (void)queue, (void)unused;
    hsa_signal_store_screlease(told, (hsa_signal_value_t)status);
}

static hsa_queue_t *make_queue(void) {
    hsa_queue_t *queue;
    hsa_signal_store_screlease(told, -1);
    if (hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, failed, NULL, 0, 0, &queue) != HSA_STATUS_SUCCESS)
        exit(1);
    return queue;
}

static hsa_signal_t make_signal(hsa_signal_value_t value) {
    hsa_signal_t signal;
    hsa_signal_create(value, 0, NULL, &signal);
    return signal;
}

static int done_soon(hsa_signal_t signal, uint64_t wait) {
    return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 0, wait, HSA_WAIT_STATE_BLOCKED) == 0;
}

/* `packet` has everything but its first word. */
static void put(hsa_queue_t *queue, const void *packet, uint32_t first) {
    const uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    char *const place = (char *)queue->base_address + 64 * (index % queue->size);
    memcpy(place + 4, (const char *)packet + 4, 60);
    __atomic_store_n((uint32_t *)place, first, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

static void kernel(const char *name, uint32_t type, uint32_t lds, uint16_t threads, uint32_t items) {
    hsa_queue_t *const queue = make_queue();
    const hsa_signal_t done = make_signal(1);
    hsa_kernel_dispatch_packet_t packet = {.workgroup_size_x = threads,
                                           .workgroup_size_y = 1,
                                           .workgroup_size_z = 1,
                                           .grid_size_x = items,
                                           .grid_size_y = 1,
                                           .grid_size_z = 1,
                                           .group_segment_size = lds,
                                           .kernel_object = (uint64_t)(uintptr_t)descriptor,
                                           .completion_signal = done};
    put(queue, &packet, type | 1 << 16);
    for (int i = 0; i < 200; i++) {
        const hsa_signal_value_t status = hsa_signal_load_scacquire(told);
        if (status != -1) {
            printf("%s: refused %#x\n", name, (unsigned)status);
            return;
        }
        if (done_soon(done, SHORT / 4)) {
            printf("%s: done\n", name);
            return;
        }
    }
    printf("%s: nothing happened\n", name);
}

/* The packet waits for `signal` to become `opens`. */
static void waiting(const char *name, const void *packet, uint32_t first, hsa_signal_t done, hsa_signal_t signal,
                    hsa_signal_value_t opens) {
    put(make_queue(), packet, first);
    const int early = done_soon(done, SHORT);
    hsa_signal_store_screlease(signal, opens);
    printf("%s: %s\n", name, early ? "does not wait" : done_soon(done, 100 * (uint64_t)WAIT) ? "waits" : "is lost");
}

static void barrier(const char *name, uint32_t type) {
    const hsa_signal_t done = make_signal(1), first = make_signal(type == HSA_PACKET_TYPE_BARRIER_AND ? 0 : 1);
    const hsa_signal_t second = make_signal(1);
    const hsa_barrier_and_packet_t packet = {.dep_signal = {first, second}, .completion_signal = done};
    waiting(name, &packet, type, done, second, 0);
}

static void barrier_value(const char *name, uint32_t condition, hsa_signal_value_t before, hsa_signal_value_t after) {
    const hsa_signal_t done = make_signal(1), signal = make_signal(before);
    const hsa_amd_barrier_value_packet_t packet = {
        .signal = signal, .value = 5, .mask = 0xff, .cond = condition, .completion_signal = done};
    const uint32_t first = HSA_PACKET_TYPE_VENDOR_SPECIFIC | HSA_AMD_PACKET_TYPE_BARRIER_VALUE << 16;
    waiting(name, &packet, first, done, signal, after);
}

static void report(const char *name, hsa_status_t status, int right) {
    printf("%s: %#x, %s\n", name, (unsigned)status, right ? "right" : "wrong");
}

static void data(void) {
    static unsigned char host[BYTES], back[BYTES];
    unsigned char *device, *other;
    for (int i = 0; i < BYTES; i++)
        host[i] = (unsigned char)(i ^ i >> 7);
    if (hsa_amd_memory_pool_allocate(memory, BYTES, 0, (void **)&device) != HSA_STATUS_SUCCESS ||
        hsa_amd_memory_pool_allocate(memory, BYTES, 0, (void **)&other) != HSA_STATUS_SUCCESS)
        exit(1);
    memcpy(device, host, BYTES);
    hsa_status_t status = hsa_memory_copy(other + 1, device + 2, 5000);
    report("misaligned copy", status, memcmp(other + 1, host + 2, 5000) == 0);
    status = hsa_memory_copy(other, device, BYTES);
    report("aligned copy", status, memcmp(other, host, BYTES) == 0);
    status = hsa_amd_memory_fill(other, 0x01020304, 1000);
    int right = memcmp(other + 4000, host + 4000, 100) == 0;
    for (int i = 0; i < 4000; i++)
        right &= other[i] == 4 - i % 4;
    report("fill", status, right);

    void *locked;
    status = hsa_amd_memory_lock(back, BYTES, &gpu, 1, &locked);
    const hsa_signal_t first = make_signal(1), done = make_signal(1);
    if (status == HSA_STATUS_SUCCESS)
        status = hsa_amd_memory_async_copy(locked, cpu, device, gpu, BYTES, 1, &first, done);
    const int early = done_soon(done, SHORT);
    hsa_signal_store_screlease(first, 0);
    const int late = done_soon(done, 100 * (uint64_t)WAIT);
    report("copy behind a signal", status, !early && late && memcmp(back, host, BYTES) == 0);
    report("unlock", hsa_amd_memory_unlock(back), 1);
}

int main(void) {
    if (hsa_init() != HSA_STATUS_SUCCESS || hsa_iterate_agents(find_agent, NULL) != HSA_STATUS_SUCCESS)
        return 1;
    hsa_amd_agent_iterate_memory_pools(gpu, find_memory, NULL);
    told = make_signal(-1);
    kernel("all LDS", HSA_PACKET_TYPE_KERNEL_DISPATCH, 65536, 64, 64);
    kernel("more LDS", HSA_PACKET_TYPE_KERNEL_DISPATCH, 65537, 64, 64);
    kernel("too many threads", HSA_PACKET_TYPE_KERNEL_DISPATCH, 0, 1025, 1025);
    kernel("no work-items", HSA_PACKET_TYPE_KERNEL_DISPATCH, 0, 64, 0);
    kernel("another type", HSA_PACKET_TYPE_AGENT_DISPATCH, 0, 64, 64);
    barrier("and", HSA_PACKET_TYPE_BARRIER_AND);
    barrier("or", HSA_PACKET_TYPE_BARRIER_OR);
    barrier_value("equal", HSA_SIGNAL_CONDITION_EQ, 4, 0x105); /* masked */
    barrier_value("not equal", HSA_SIGNAL_CONDITION_NE, 5, 6);
    barrier_value("less", HSA_SIGNAL_CONDITION_LT, 5, 4);
    barrier_value("greater or equal", HSA_SIGNAL_CONDITION_GTE, 4, 5);
    data();
    return hsa_shut_down() != HSA_STATUS_SUCCESS;
}
#endif
