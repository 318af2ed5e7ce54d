/* What profilers bring into a process.
 *
 * As Nsight Systems does: a library that the driver loads in cuInit, by CUDA_INJECTION64_PATH. It looks for the driver's
 * functions in every way, before the program does, and subscribes to what the driver is asked for (the driver's
 * driver_tell() of forwarding_driver.c stands for CUPTI).
 * As other tools do (PRELOADED): a library in LD_PRELOAD that defines launches, dlsym and cuGetProcAddress_v2 and passes on to
 * what comes next. NODE: the version of dlsym.
 * As Nsight Compute's libcuda-injection.so does (PRELOADED and IS_DRIVER, linked to the driver): it also defines dlopen. To a
 * program that opens libcuda.so.1, this dlopen returns the library that contains the symbol dlopen, which the injection takes
 * for itself.
 * At the end it says how many launches it saw, how many of them with dynamic shared memory. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef NODE
#define NODE "GLIBC_2.34"
#endif

typedef uintptr_t W;
static int seen, with_shared;

static void count(unsigned shared) {
    seen++;
    with_shared += shared > 0;
}

static void say(void) {
    printf("profiler: %d launches, %d with shared memory\n", seen, with_shared);
    fflush(stdout);
}

#ifdef PRELOADED
#define EXPORT __attribute__((visibility("default")))
#define LAUNCH                                                                                                         \
    void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,     \
        void *stream, void **parameters, void **extra

/* The exported names are aliases: inside this library each name means its own function, whatever is preloaded before it. */
static void *find(void *handle, const char *name);
static int (*next_launch)(LAUNCH);
static int (*next_find)(const char *, void **, int, uint64_t, int *);
static void *(*next_dlsym)(void *, const char *);

static int launch(LAUNCH) {
    if (!next_launch)
        next_launch = (int (*)(LAUNCH))find(RTLD_NEXT, "cuLaunchKernel");
    count(shared);
    return next_launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
EXPORT int cuLaunchKernel(LAUNCH) __attribute__((alias("launch")));

static int get_proc_address(const char *name, void **function, int version, uint64_t flags, int *status);

/* Ours instead of the function, which is kept. */
static void *wrapped(const char *name, void *found) {
    if (found && strcmp(name, "cuLaunchKernel") == 0 && found != (void *)launch)
        return next_launch = (int (*)(LAUNCH))found, (void *)launch;
    if (found && strcmp(name, "cuGetProcAddress_v2") == 0 && found != (void *)get_proc_address)
        return next_find = (int (*)(const char *, void **, int, uint64_t, int *))found, (void *)get_proc_address;
    return found;
}

static int get_proc_address(const char *name, void **function, int version, uint64_t flags, int *status) {
    if (!next_find)
        next_find = (int (*)(const char *, void **, int, uint64_t, int *))find(RTLD_NEXT, "cuGetProcAddress_v2");
    int result = next_find(name, function, version, flags, status);
    if (result == 0 && flags == 0 && version >= 12000 && strcmp(name, "cuGetProcAddress") == 0)
        *function = wrapped("cuGetProcAddress_v2", *function);
    else if (result == 0 && flags == 0)
        *function = wrapped(name, *function);
    return result;
}
EXPORT int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *) __attribute__((alias("get_proc_address")));

static void *find(void *handle, const char *name) {
    if (!next_dlsym)
        next_dlsym = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", NODE);
    void *found = next_dlsym(handle, name);
    return handle == RTLD_NEXT ? found : wrapped(name, found);
}
EXPORT void *dlsym(void *, const char *) __attribute__((alias("find")));

#ifdef IS_DRIVER
/* No alias: the loader binds the address of dlopen to the first definition in the process. */
EXPORT void *dlopen(const char *path, int mode) {
    static void *(*next)(const char *, int);
    Dl_info self;
    if (!next)
        next = (void *(*)(const char *, int))dlvsym(RTLD_NEXT, "dlopen", NODE);
    if (path && strcmp(path, "libcuda.so.1") == 0 && dladdr((void *)dlopen, &self))
        path = self.dli_fname;
    return next(path, mode);
}
#endif

__attribute__((destructor)) static void end(void) {
    say();
}
#else
static void told(const char *name, const W *words) {
    if (strcmp(name, "cuLaunchKernel") == 0)
        count((unsigned)words[7]);
    else if (strcmp(name, "cuLaunchKernelEx") == 0)
        count(((const unsigned *)words[0])[6]);
}

int InitializeInjection(void);
int InitializeInjection(void) {
    static const char *const names[] = {"cuLaunchKernel", "cuLaunchKernelEx", "cuInit", "cuStreamCreate"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *function = NULL;
    void (*tell)(void (*)(const char *, const W *)) =
        library ? (void (*)(void (*)(const char *, const W *)))dlsym(library, "driver_tell") : NULL;
    int (*find)(const char *, void **, int, uint64_t, int *) =
        library ? (int (*)(const char *, void **, int, uint64_t, int *))dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (!tell || !find)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)dlsym(RTLD_NEXT, names[i]);
        (void)dlsym(RTLD_DEFAULT, names[i]);
        if (!dlsym(library, names[i]) || find(names[i], &function, 12000, 0, NULL) || !function)
            return 0;
    }
    tell(told);
    atexit(say);
    return 1;
}
#endif
