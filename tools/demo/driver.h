/* SPDX-License-Identifier: Apache-2.0
 * The CUDA driver by dlopen, for programs that must start where there is none, on a real GPU and on the simulated one.
 *
 * Define PROGRAM (its name, for messages) and API(X) (what it calls, X(name, parameters)) before the include. Everything
 * that goes wrong is one line on stderr and exit status 1; NO_GPU where there is no driver, or it knows no GPU. */
#ifndef OVERLAP_DEMO_DRIVER_H
#define OVERLAP_DEMO_DRIVER_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUBIN_LIMIT = 1 << 20, NO_GPU = 3, NO_DEVICE = 100 };

struct attribute { /* CUlaunchAttribute */
    uint32_t id, pad;
    union {
        uint32_t dimension[3];
        void *event;
        char bytes[64];
    } value;
};

struct config { /* CUlaunchConfig */
    uint32_t grid[3], block[3], shared, pad;
    void *stream;
    struct attribute *attributes;
    uint32_t count, pad2;
};

#define X(name, parameters) static int(*name) parameters;
API(X)
#undef X

__attribute__((format(printf, 2, 3), noreturn)) static void leave(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs(PROGRAM ": ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(status);
}

#define fail(...) leave(1, __VA_ARGS__)

static void check(int status, const char *what) {
    const char *name = NULL;
    if (status != 0)
        fail("%s: %s (%d)", what, cuGetErrorName(status, &name) == 0 && name ? name : "unknown error", status);
}

static void open_function(void *library, const char *name, void *pointer) {
    void *const address = dlsym(library, name);
    if (address == NULL)
        fail("no driver: the library has no %s", name);
    memcpy(pointer, &address, sizeof address);
}

static void open_driver(void) {
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL)
        leave(NO_GPU, "no driver: libcuda.so.1 is not found");
#define X(name, parameters) open_function(driver, #name, &name);
    API(X)
#undef X
}

static void *load_cubin(const char *path) {
    static unsigned char image[CUBIN_LIMIT];
    void *module = NULL;
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        fail("cannot read %s", path);
    const size_t size = fread(image, 1, sizeof image, file);
    fclose(file);
    if (size == 0 || size == sizeof image)
        fail("cannot read %s", path);
    check(cuModuleLoadData(&module, image), path);
    return module;
}

#endif
