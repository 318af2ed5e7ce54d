/* libamdhip64.so.6 that does nothing: what a launch costs here is the call itself, so the difference with the shim is the shim.
 *
 * NULL_DEVICES, NULL_CAPTURING: as in null_driver.c. NULL_TABLE=1: the table of functions is handed out, as by the versions from 6.1
 * on that profilers can look into; every exported function of those calls the one in the table. A kernel is the address of its name.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"), noinline))

typedef struct {
    unsigned x, y, z;
} dim3;

static int devices = 1, capturing;

/* ---- Launches ---- */

enum {
#define TABLE(name, place) PLACE_##name = place,
#include "../../shim/hip/dispatch_table.def"
#undef TABLE
    MEMBERS = 1024
};
static void *table[MEMBERS];

#ifndef BEHIND /* what stands in a place of the table: tests have something else */
static int nothing(void) {
    return 0;
}
#define BEHIND(place) ((void *)nothing)
#endif

/* The arguments stay where they are: the exported function is a jump to what stands in the table. */
#define LAUNCH(name, parameters, ...)                                                                                  \
    API int name parameters;                                                                                           \
    API int name parameters {                                                                                          \
        return ((int(*) parameters)table[PLACE_##name])(__VA_ARGS__);                                                  \
    }
LAUNCH(hipLaunchKernel, (const void *f, dim3 grid, dim3 block, void **parameters, size_t shared, void *stream), f, grid,
       block, parameters, shared, stream)
LAUNCH(hipModuleLaunchKernel,
       (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
        void *stream, void **parameters, void **extra),
       f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
LAUNCH(hipExtLaunchKernel,
       (const void *f, dim3 grid, dim3 block, void **parameters, size_t shared, void *stream, void *start, void *stop,
        int flags),
       f, grid, block, parameters, shared, stream, start, stop, flags)
LAUNCH(hipExtModuleLaunchKernel,
       (void *f, unsigned ix, unsigned iy, unsigned iz, unsigned bx, unsigned by, unsigned bz, size_t shared,
        void *stream, void **parameters, void **extra, void *start, void *stop, unsigned flags),
       f, ix, iy, iz, bx, by, bz, shared, stream, parameters, extra, start, stop, flags)
LAUNCH(hipEventRecord, (void *event, void *stream), event, stream)
LAUNCH(hipStreamSynchronize, (void *stream), stream)
LAUNCH(hipStreamWaitEvent, (void *stream, void *event, unsigned flags), stream, event, flags)

typedef int register_type(const char *name, uint64_t version, uint64_t instance, void **tables, uint64_t count);

__attribute__((constructor)) static void start(void) {
    devices = getenv("NULL_DEVICES") ? atoi(getenv("NULL_DEVICES")) : 1;
    capturing = getenv("NULL_CAPTURING") ? atoi(getenv("NULL_CAPTURING")) : 0;
    for (int i = 1; i < MEMBERS; i++)
        table[i] = BEHIND(i);
    table[0] = (void *)sizeof table;
    register_type *hand_out = (register_type *)dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
    void *tables[] = {table};
    if (getenv("NULL_TABLE") && hand_out)
        hand_out("hip", 60400, 0, tables, 1);
}

/* ---- What the library asks ---- */

API int hipInit(unsigned flags) {
    return (int)flags;
}
/* By this one the library finds out to which runtime a caller is bound. */
API int hipMalloc(void **memory, size_t bytes) {
    (void)bytes;
    return *memory = NULL, 0;
}
API int hipGetDeviceCount(int *count) {
    return *count = devices, 0;
}
API int hipGetDevice(int *device) {
    return *device = 0, 0;
}
API int hipGetDevicePropertiesR0600(void *properties, int device) {
    char *to = memset(properties, 0, 1472); /* places: HIP_PROPERTIES_R0600 in shim/hip/hip_abi.h */
    static const int values[][2] = {{296, 65536}, {320, 1024}, {388, 104}, {624, 2048}, {1416, 65536}};
    (void)device;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        memcpy(to + values[i][0], &values[i][1], sizeof(int));
    strcpy(to, "AMD Instinct MI250X");
    strcpy(to + 1160, "gfx90a:sramecc+:xnack-");
    return 0;
}
API int hipDeviceGetUuid(void *uuid, int device) {
    return memset(uuid, device, 16), 0;
}
API int hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
    return *least = 1, *greatest = -1, 0;
}
API int hipStreamGetFlags(void *stream, unsigned *flags) {
    (void)stream;
    return *flags = 1, 0;
}
API int hipStreamGetDevice(void *stream, int *device) {
    (void)stream;
    return *device = 0, 0;
}
API int hipStreamIsCapturing(void *stream, int *status) {
    (void)stream;
    return *status = capturing, 0;
}
API const char *hipKernelNameRef(const void *function) {
    return function;
}
API const char *hipKernelNameRefByPtr(const void *function, void *stream) {
    (void)stream;
    return function;
}
API int hipFuncGetAttribute(int *value, int attribute, void *function) {
    (void)function;
    return *value = attribute == 4 ? 264 : 0, 0; /* so many that accumulation registers are among them */
}
API int hipFuncGetAttributes(void *attributes, const void *function) {
    const int registers = 64;
    (void)function;
    memcpy((char *)memset(attributes, 0, 56) + 32, &registers, sizeof registers);
    return 0;
}
/* By name and not by dlsym, which would find the library first. */
API int hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    static const struct {
        const char *name;
        void *address;
    } own[] = {{"hipLaunchKernel", (void *)hipLaunchKernel},
               {"hipModuleLaunchKernel", (void *)hipModuleLaunchKernel},
               {"hipExtLaunchKernel", (void *)hipExtLaunchKernel},
               {"hipExtModuleLaunchKernel", (void *)hipExtModuleLaunchKernel}};
    (void)version, (void)flags, (void)status;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(symbol, own[i].name) == 0)
            return *function = own[i].address, 0;
    return 500;
}
