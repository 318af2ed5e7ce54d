/* HIP's functions, reached in the way that the build says: HIP(name)(arguments).
 *   WAY_LINKED  by the object's own procedure linkage table; it is linked to a runtime
 *   WAY_DLSYM   by dlopen (HIP_OPEN: local, global, noload) and dlsym
 *   WAY_PROC    by hipGetProcAddress
 *   WAY_ENTRY   by hipGetDriverEntryPoint
 * RUNTIME: its SONAME; VERSION: the number in it.
 */
#pragma once

#ifndef RUNTIME /* compiled to be checked only */
#define RUNTIME "libamdhip64.so.7"
#define VERSION 7
#define WAY_LINKED
#endif

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../shim/gpu/rows.h"
#include "../../shim/hip/hip_abi.h"

#define DRIVER(name, body, ...) typedef hipError_t type_##name(PARAMETERS(__VA_ARGS__));
#include "../../shim/hip/driver.def"
#undef DRIVER
typedef hipError_t type_hipGetDeviceCount(int *);
typedef hipError_t type_hipEventCreateWithFlags(hipEvent_t *, unsigned), type_hipGetLastError(void);
typedef hipError_t type_hipStreamGetFlags(hipStream_t, unsigned *);
typedef hipError_t type_hipModuleLoadData(hipModule_t *, const void *);
typedef hipError_t type_hipGraphInstantiate(hipGraphExec_t *, hipGraph_t, void *, char *, size_t);
typedef void **type___hipRegisterFatBinary(const void *);
typedef void type___hipRegisterFunction(void **, const void *, char *, const char *, unsigned, void *, void *, void *,
                                        void *, int *);

#ifdef WAY_LINKED
extern type_hipGetDeviceCount hipGetDeviceCount;
extern type_hipEventCreateWithFlags hipEventCreateWithFlags;
extern type_hipStreamGetFlags hipStreamGetFlags;
extern type_hipModuleLoadData hipModuleLoadData;
extern type_hipGraphInstantiate hipGraphInstantiate;
extern type___hipRegisterFatBinary __hipRegisterFatBinary;
extern type___hipRegisterFunction __hipRegisterFunction;
#define DRIVER(name, ...) extern type_##name name;
#include "../../shim/hip/driver.def"
#undef DRIVER
#define HIP(name) name
#else
static inline void *runtime_open(void) {
    static void *opened;
    const char *how = getenv("HIP_OPEN") ? getenv("HIP_OPEN") : "local";
    const int flags = strcmp(how, "global") == 0   ? RTLD_GLOBAL
                      : strcmp(how, "noload") == 0 ? RTLD_LOCAL | RTLD_NOLOAD
                                                   : RTLD_LOCAL;
    if (!opened)
        opened = dlopen(RUNTIME, RTLD_NOW | flags);
    if (!opened) {
        printf("no runtime\n");
        exit(4);
    }
    return opened;
}
static inline void *found_at(void *address, const char *name) {
    if (!address) {
        printf("no %s\n", name);
        exit(4);
    }
    return address;
}
static inline void *runtime_symbol(const char *name) {
    void *address = NULL;
    int status = 0;
    (void)status;
#ifdef WAY_PROC
    type_hipGetProcAddress *ask = (type_hipGetProcAddress *)dlsym(runtime_open(), "hipGetProcAddress");
    ask(name, &address, 600, 0, &status);
#elif defined WAY_ENTRY
    type_hipGetDriverEntryPoint *ask = (type_hipGetDriverEntryPoint *)dlsym(runtime_open(), "hipGetDriverEntryPoint");
    ask(name, &address, 0, &status);
#else
    address = dlsym(runtime_open(), name);
#endif
    return found_at(address, name);
}
#define HIP(name) ((type_##name *)runtime_symbol(#name))
#endif

/* A file's bytes, with zeros behind them. */
static inline void *read_file(const char *name) {
    enum { SIZE = 1 << 20 };
    FILE *file = name ? fopen(name, "rb") : NULL;
    char *bytes = calloc(1, SIZE);
    if (!file || fread(bytes, 1, SIZE, file) == 0)
        exit(6);
    fclose(file);
    return bytes;
}

/* As hipcc's code does before main. */
static inline void **register_file(const char *name) {
    struct {
        uint32_t magic, version;
        const void *data, *unused;
    } *const wrapper = calloc(1, sizeof *wrapper);
    wrapper->magic = 0x48495046;
    wrapper->version = 1;
    wrapper->data = read_file(name);
    return HIP(__hipRegisterFatBinary)(wrapper);
}
