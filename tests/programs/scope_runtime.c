/* A runtime of one function, or a driver (DRIVER), or a HIP runtime (HIP): what it answers says which one it is. -DANSWER=N */
#ifndef ANSWER
#define ANSWER 0
#endif

typedef struct {
    unsigned x, y, z;
} dim3;

int cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, unsigned long shared, void *stream);
int cuInit(unsigned flags);
int hipMalloc(void **address, unsigned long bytes);

#ifdef HIP
int hipMalloc(void **address, unsigned long bytes) {
    (void)address, (void)bytes;
    return ANSWER;
}
#elif defined DRIVER
int cuInit(unsigned flags) {
    (void)flags;
    return ANSWER;
}
#else
int cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, unsigned long shared,
                     void *stream) {
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream;
    return ANSWER;
}
#endif
