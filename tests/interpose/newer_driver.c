/* A driver of tomorrow: from version 14000 on two names mean functions with another parameter, which are not exported. */
#include <stdio.h>

#define cuDriverGetVersion version_of_today
#define cuGetProcAddress_v2 address_of_today
#include "../programs/stub_driver.c"
#undef cuDriverGetVersion
#undef cuGetProcAddress_v2

int cuDriverGetVersion(int *version) {
    return *version = 14000, 0;
}

int cuStreamDestroy_v2(void *stream) {
    return stream == NULL;
}

static int destroy_more(void *stream, unsigned flags) {
    return printf("destroy %p, flags %#x\n", stream, flags) < 0;
}

static int launch_more(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned b, unsigned c,
                       unsigned shared, void *stream, void **parameters, void **extra, unsigned long more) {
    (void)x, (void)y, (void)z, (void)threads, (void)b, (void)c, (void)shared, (void)stream, (void)parameters,
        (void)extra;
    return printf("launch %p, more %#lx\n", function, more) < 0;
}

int cuGetProcAddress_v2(const char *symbol, void **found, int version, uint64_t flags, int *status) {
    (void)flags;
    if (status)
        *status = 0;
    if (strcmp(symbol, "cuStreamDestroy") == 0)
        return *found = version >= 14000 ? (void *)destroy_more : (void *)cuStreamDestroy_v2, 0;
    if (strcmp(symbol, "cuLaunchKernel") == 0)
        return *found = version >= 14000 ? (void *)launch_more : (void *)cuLaunchKernel, 0;
    return 500;
}
