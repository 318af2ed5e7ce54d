/* The driver API that the test programs use, reached in the way that the build says:
 *   WAY_LINKED  by the program's own PLT; the program is linked to libcuda.so.1
 *   WAY_DLSYM   by dlopen and dlsym
 *   WAY_PROC    by cuGetProcAddress, four arguments, as programs for CUDA 11.3 do
 *   WAY_PROC2   by cuGetProcAddress_v2, no status, as the CUDA runtime does
 * CU(name)(arguments) calls; NULL stands for what an old driver has not (not WAY_LINKED). DRIVER_MORE: with
 * driver_more.h. kernel_of, launch_kernel: what most programs do.
 */
#pragma once

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t id, pad;
    union {
        int32_t number;
        uint32_t dimension[3];
        char bytes[64];
    } value;
} Attribute;

typedef struct {
    uint32_t grid[3], block[3], shared, pad;
    void *stream;
    Attribute *attributes;
    uint32_t count, pad2;
} Config;

#define LAUNCH_ARGUMENTS                                                                                               \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)
#define COOPERATIVE_ARGUMENTS                                                                                          \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **)

#ifdef DRIVER_MORE
#include "driver_more.h"
#else
#define MORE_ENTRIES(X)
#endif

/* exported name, name for cuGetProcAddress, version to ask for, flags, parameters */
#define ENTRIES(X)                                                                                                     \
    X(cuInit, cuInit, 2000, 0, (unsigned))                                                                             \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, 0, (void **, int))                                     \
    X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, 0, (void *))                                                             \
    X(cuCtxSynchronize, cuCtxSynchronize, 2000, 0, (void))                                                             \
    X(cuModuleLoadData, cuModuleLoadData, 2000, 0, (void **, const void *))                                            \
    X(cuModuleUnload, cuModuleUnload, 2000, 0, (void *))                                                               \
    X(cuModuleGetFunction, cuModuleGetFunction, 2000, 0, (void **, void *, const char *))                              \
    X(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040, 0, (void **, unsigned, void *))                   \
    X(cuLibraryLoadData, cuLibraryLoadData, 12000, 0,                                                                  \
      (void **, const void *, int *, void **, unsigned, int *, void **, unsigned))                                     \
    X(cuLibraryUnload, cuLibraryUnload, 12000, 0, (void *))                                                            \
    X(cuLibraryGetKernel, cuLibraryGetKernel, 12000, 0, (void **, void *, const char *))                               \
    X(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040, 0, (void **, unsigned, void *))                     \
    X(cuKernelGetFunction, cuKernelGetFunction, 12000, 0, (void **, void *))                                           \
    X(cuFuncGetAttribute, cuFuncGetAttribute, 2020, 0, (int *, int, void *))                                           \
    X(cuFuncSetAttribute, cuFuncSetAttribute, 9000, 0, (void *, int, int))                                             \
    X(cuKernelGetAttribute, cuKernelGetAttribute, 12000, 0, (int *, int, void *, int))                                 \
    X(cuKernelSetAttribute, cuKernelSetAttribute, 12000, 0, (int, int, void *, int))                                   \
    X(cuStreamCreate, cuStreamCreate, 2000, 0, (void **, unsigned))                                                    \
    X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, 0, (void **, unsigned, int))                       \
    X(cuStreamGetPriority, cuStreamGetPriority, 5050, 0, (void *, int *))                                              \
    X(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010, 0, (void *, int))                                          \
    X(cuStreamEndCapture, cuStreamEndCapture, 10000, 0, (void *, void **))                                             \
    X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, 0, (void **, void *, unsigned long long))       \
    X(cuGraphLaunch, cuGraphLaunch, 10000, 0, (void *, void *))                                                        \
    X(cuLaunchKernel, cuLaunchKernel, 4000, 0, LAUNCH_ARGUMENTS)                                                       \
    X(cuLaunchKernel_ptsz, cuLaunchKernel, 7000, 2, LAUNCH_ARGUMENTS)                                                  \
    X(cuLaunchKernelEx, cuLaunchKernelEx, 11060, 0, (const Config *, void *, void **, void **))                        \
    X(cuLaunchKernelEx_ptsz, cuLaunchKernelEx, 11060, 2, (const Config *, void *, void **, void **))                   \
    X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, 0, COOPERATIVE_ARGUMENTS)                            \
    X(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel, 9000, 2, COOPERATIVE_ARGUMENTS)                       \
    MORE_ENTRIES(X)

#if !defined WAY_LINKED && !defined WAY_PROC && !defined WAY_PROC2 && !defined WAY_DLSYM
#define WAY_DLSYM
#endif

#ifdef WAY_LINKED

#define X(name, asked, version, flags, parameters) extern int name parameters;
ENTRIES(X)
#undef X
/* What only a program that is linked to the driver calls. */
extern int cuCtxCreate_v2(void **, unsigned, int), cuCtxDestroy_v2(void *), cuCtxGetCurrent(void **);
extern int cuDevicePrimaryCtxRelease_v2(int), cuDevicePrimaryCtxReset_v2(int);
extern int cuStreamSynchronize(void *), cuStreamQuery(void *), cuStreamDestroy_v2(void *);
extern int cuStreamWaitEvent(void *, void *, unsigned), cuStreamSetAttribute(void *, int, const void *);
extern int cuStreamGetAttribute(void *, int, void *), cuStreamCopyAttributes(void *, void *);
extern int cuEventCreate(void **, unsigned), cuEventRecord(void *, void *), cuEventQuery(void *);
extern int cuEventSynchronize(void *), cuEventDestroy_v2(void *);
extern int cuGraphDestroy(void *), cuGraphExecDestroy(void *), cuLaunchHostFunc(void *, void (*)(void *), void *);
extern int cuMemAlloc_v2(uint64_t *, size_t), cuMemsetD8_v2(uint64_t, unsigned char, size_t);
extern int cuMemcpyHtoD_v2(uint64_t, const void *, size_t), cuMemcpyDtoH_v2(void *, uint64_t, size_t);
extern int cuMemcpyHtoDAsync_v2(uint64_t, const void *, size_t, void *);
extern int cuMemcpyDtoHAsync_v2(void *, uint64_t, size_t, void *);
extern int cuMemcpyDtoD_v2(uint64_t, uint64_t, size_t), cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t, void *);
extern int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
#define CU(name) name
static inline void driver_open(void) {}

#else

#define X(name, asked, version, flags, parameters) static int(*real_##name) parameters __attribute__((unused));
ENTRIES(X)
#undef X
#define CU(name) real_##name

static inline void *driver_library(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("no driver: %s\n", dlerror());
        exit(3);
    }
    return library;
}

#if defined WAY_DLSYM

static inline void driver_open(void) {
    void *library = driver_library();
#define X(name, asked, version, flags, parameters) real_##name = (int(*) parameters)dlsym(library, #name);
    ENTRIES(X)
#undef X
}

#else

#ifdef WAY_PROC
typedef int (*Find)(const char *, void **, int, uint64_t);
#define FIND(name, out, version, flags) find(name, out, version, flags)
#define FIRST "cuGetProcAddress"
#define SELF_VERSION 11030
#else
typedef int (*Find)(const char *, void **, int, uint64_t, int *);
#define FIND(name, out, version, flags) find(name, out, version, flags, NULL)
#define FIRST "cuGetProcAddress_v2"
#define SELF_VERSION 12000
#endif

/* As NVIDIA's runtime starts: one dlsym, then the empty name, then the function itself, then everything else. */
static inline void driver_open(void) {
    Find find = (Find)dlsym(driver_library(), FIRST);
    void *out = NULL;
    int empty = FIND("", &out, 0, 0), itself = FIND("cuGetProcAddress", &out, SELF_VERSION, 0);
    find = (Find)out;
    int nonsense = FIND("cuNobodyHasThis", &out, 12000, 0);
#ifndef QUIET
    printf("empty name: %d, itself: %d, nonsense: %d\n", empty, itself, nonsense);
#else
    (void)empty, (void)itself, (void)nonsense;
#endif
#define X(name, asked, version, flags, parameters)                                                                     \
    out = NULL;                                                                                                        \
    if (FIND(#asked, &out, version, flags) == 0)                                                                       \
        real_##name = (int(*) parameters)out;
    ENTRIES(X)
#undef X
}

#endif
#endif

/* PTX of empty kernels with two parameters, 8 and 4 bytes. names: separated by commas. The caller frees. */
static inline char *ptx_of(const char *names) {
    static const char head[] = ".version 8.0\n.target sm_80\n.address_size 64\n";
    static const char parameters[] = "(.param .u64 a, .param .u32 b)\n", body[] = "{\n ret;\n}\n";
    size_t count = 1;
    for (const char *p = names; *p; p++)
        count += *p == ',';
    char *text = malloc(sizeof head + strlen(names) + count * (sizeof parameters + sizeof body + 48)),
         *at = text + sprintf(text, "%s", head);
    while (*names) {
        size_t length = strcspn(names, ",");
        size_t name = strcspn(names, ",:"); /* NAME:REGISTERS: of each thread, at most */
        at += sprintf(at, ".visible .entry %.*s%s", (int)name, names, parameters);
        if (name < length)
            at += sprintf(at, ".maxnreg %.*s\n", (int)(length - name - 1), names + name + 1);
        at += sprintf(at, "%s", body);
        names += length + (names[length] == ',');
    }
    return text;
}

/* Kernel NAME of a module of its own; NULL where the driver gives none, which is said. */
static inline void *kernel_of(const char *name) {
    void *module = NULL, *function = NULL;
    char *text = ptx_of(name);
    int result = CU(cuModuleLoadData)(&module, text);
    if (result == 0)
        result = CU(cuModuleGetFunction)(&function, module, name);
    free(text);
    if (result == 0)
        return function;
    printf("kernel %s: %d\n", name, result);
    return NULL;
}

/* A launch with what the kernels of ptx_of take. */
static inline int launch_kernel(void *function, unsigned blocks, unsigned threads, void *stream) {
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    return CU(cuLaunchKernel)(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
}

/* The context of the first device is current, and returned. */
static inline void *driver_start(void) {
    void *context = NULL;
    driver_open();
    int result = CU(cuInit)(0);
    if (result == 0)
        result = CU(cuDevicePrimaryCtxRetain)(&context, 0);
    if (result == 0)
        result = CU(cuCtxSetCurrent)(context);
    if (result) {
        printf("start: %d\n", result);
        exit(4);
    }
    return context;
}
