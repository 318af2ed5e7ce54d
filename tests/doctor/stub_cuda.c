/* A driver that answers, or does not, as the environment says: STUB_INIT is what cuInit returns, `hang` or `crash`. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

int cuInit(unsigned flags) {
    const char *how = getenv("STUB_INIT");
    (void)flags;
    if (how && !strcmp(how, "hang")) {
        signal(SIGTERM, SIG_IGN); /* only SIGKILL ends a driver that hangs */
        FILE *file = fopen(getenv("STUB_CHILD"), "w");
        pid_t child = fork(); /* which hangs, too */
        if (file && child)
            fprintf(file, "%d", (int)child), fclose(file);
        for (;;)
            pause();
    }
    if (how && !strcmp(how, "crash"))
        abort();
    return how ? atoi(how) : 0;
}

int cuGetErrorName(int code, const char **name) {
    *name = code == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_OF_THE_STUB";
    return 0;
}

int cuDriverGetVersion(int *version) {
    *version = 12080;
    return 0;
}

int cuDeviceGetCount(int *count) {
    *count = number("STUB_COUNT", 1);
    return 0;
}

int cuDeviceGet(int *device, int index) {
    *device = index;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device) {
    const char *text = getenv("STUB_NAME");
    (void)device;
    strncpy(name, text ? text : "NVIDIA A100-SXM4-80GB", (size_t)size);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = (size_t)80 << 30;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 16:
        *value = number("STUB_MULTIPROCESSORS", 108);
        return 0;
    case 20:
        *value = number("STUB_COMPUTE_MODE", 0);
        return 0;
    case 75:
        *value = 8;
        return 0;
    case 76:
        *value = 0;
        return 0;
    }
    return 1;
}
