/* Counts the GPUs, as launchers do before they start their ranks, and uses none. */
#include <stdio.h>

#ifdef HIP
extern int hipGetDeviceCount(int *);
#else
extern int cuInit(unsigned), cuDeviceGetCount(int *);
#endif

int main(void) {
    int count = -1;
#ifdef HIP
    int bad = hipGetDeviceCount(&count);
#else
    int bad = cuInit(0) + cuDeviceGetCount(&count);
#endif
    printf("%d %d\n", bad, count);
    return 0;
}
