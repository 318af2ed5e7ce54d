// One JSON line per device: what HIP says of it.
#include <hip/hip_runtime.h>
#include <stdio.h>

int main() {
    int count = 0;
    if (hipGetDeviceCount(&count) != hipSuccess)
        return 1;
    for (int i = 0; i < count; i++) {
        hipDeviceProp_t p;
        if (hipGetDeviceProperties(&p, i) != hipSuccess)
            return 2;
        printf("{\"name\": \"%s\", \"architecture\": \"%s\", \"units\": %d, \"lds\": %zu, \"gib\": %zu, \"wave\": %d}\n", p.name,
               p.gcnArchName, p.multiProcessorCount, p.sharedMemPerBlock, p.totalGlobalMem >> 30, p.warpSize);
    }
    return 0;
}
