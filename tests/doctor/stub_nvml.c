/* NVML, which knows one GPU by its bus and says that a quarter of its memory is free. */
#include <string.h>

int nvmlInit_v2(void) {
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device) {
    *device = (void *)id;
    return strncmp(id, "0000:1", 6) ? 6 : 0;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory) {
    (void)device;
    memory[0] = 80ull << 30, memory[1] = 20ull << 30, memory[2] = 60ull << 30;
    return 0;
}
