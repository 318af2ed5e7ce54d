/* What librccl is to the preloaded library: an object of that name which launches kernels and makes streams. */
#include <stdint.h>

extern int hipLaunchKernel(const void *function, uint64_t grid_xy, uint32_t grid_z, uint64_t block_xy, uint32_t block_z,
                           void **arguments, uint64_t shared, void *stream);
extern int hipStreamCreateWithFlags(void **stream, uint32_t flags);
extern int hipStreamCreateWithPriority(void **stream, uint32_t flags, int priority);

int liblaunch(void *function, unsigned blocks, unsigned dynamic, void *stream);
int liblaunch(void *function, unsigned blocks, unsigned dynamic, void *stream) {
    uint64_t a = 1;
    uint32_t b = 2;
    void *arguments[] = {&a, &b};
    const int result = hipLaunchKernel(function, UINT64_C(1) << 32 | blocks, 1, UINT64_C(1) << 32 | 256, 1, arguments,
                                       dynamic, stream);
    return result; /* no tail call: the return address says who calls */
}

void *libflags(int flags);
void *libflags(int flags) {
    void *made = 0;
    return hipStreamCreateWithFlags(&made, (uint32_t)flags) ? 0 : made;
}

void *libpriority(int priority);
void *libpriority(int priority) {
    void *made = 0;
    return hipStreamCreateWithPriority(&made, 1, priority) ? 0 : made;
}
