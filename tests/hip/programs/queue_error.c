/* Puts one kernel packet with the LDS of the first argument into a queue, and prints what the queue's callback is told:
 * 0 if the kernel was done. Newer HIP runtimes do not check this size, so that such a packet reaches the device. */
#if __has_include(<hsa/hsa.h>) /* `make lint` has no such header */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsa/hsa.h>

static hsa_agent_t gpu;
static hsa_signal_t told;

static hsa_status_t find(hsa_agent_t agent, void *unused) {
    hsa_device_type_t type;
    (void)unused;
    hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
    if (type == HSA_DEVICE_TYPE_GPU)
        gpu = agent;
    return HSA_STATUS_SUCCESS;
}

static void failed(hsa_status_t status, hsa_queue_t *queue, void *unused) {
    (void)queue, (void)unused;
    hsa_signal_store_screlease(told, (hsa_signal_value_t)status);
}

int main(int count, char **words) {
    static char descriptor[64] __attribute__((aligned(64)));
    hsa_queue_t *queue;
    if (count < 2 || hsa_init() != HSA_STATUS_SUCCESS || hsa_iterate_agents(find, NULL) != HSA_STATUS_SUCCESS)
        return 1;
    hsa_signal_create(-1, 0, NULL, &told);
    if (hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, failed, NULL, 0, 0, &queue) != HSA_STATUS_SUCCESS)
        return 1;
    hsa_signal_t done;
    hsa_signal_create(1, 0, NULL, &done);
    hsa_kernel_dispatch_packet_t *packet = queue->base_address;
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->workgroup_size_x = packet->grid_size_x = 64;
    packet->workgroup_size_y = packet->grid_size_y = packet->workgroup_size_z = packet->grid_size_z = 1;
    packet->group_segment_size = (uint32_t)strtoul(words[1], NULL, 0);
    packet->kernel_object = (uint64_t)(uintptr_t)descriptor;
    packet->completion_signal = done;
    const uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    __atomic_store_n((uint32_t *)packet, HSA_PACKET_TYPE_KERNEL_DISPATCH | 1 << 16, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
    for (int i = 0; i < 100; i++) {
        if (hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_EQ, 0, 10000000, HSA_WAIT_STATE_BLOCKED) == 0) {
            puts("0");
            return 0;
        }
        const hsa_signal_value_t status = hsa_signal_load_scacquire(told);
        if (status != -1) {
            printf("%#x\n", (unsigned)status);
            return 0;
        }
    }
    return 2;
}
#endif
