/* A profiler's tool that takes HIP's table of functions. It wraps hipLaunchKernel, hipModuleLaunchKernel and
 * hipStreamCreateWithFlags, and prints at its end how many launches it has seen. PLACE_HOST, PLACE_MODULE, PLACE_STREAM:
 * their indices in the table. CONFIGURE_ONLY: defines only the name by which such a tool is found. */
#ifndef PLACE_HOST /* in the table, where the build does not say */
#define PLACE_HOST 1
#define PLACE_MODULE 2
#define PLACE_STREAM 3
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) void *rocprofiler_configure(uint32_t version, const char *runtime,
                                                                   uint32_t priority, void *client);
void *rocprofiler_configure(uint32_t version, const char *runtime, uint32_t priority, void *client) {
    (void)version, (void)runtime, (void)priority, (void)client;
    return 0;
}

#ifndef CONFIGURE_ONLY
typedef int launch_host(const void *, uint64_t, uint32_t, uint64_t, uint32_t, void **, size_t, void *);
typedef int launch_module(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *, void **,
                          void **);
typedef int create_stream(void **, uint32_t);
static launch_host *next_host;
static launch_module *next_module;
static create_stream *next_stream;
static int launches, tables;

static int our_host(const void *function, uint64_t grid_xy, uint32_t grid_z, uint64_t block_xy, uint32_t block_z,
                    void **arguments, size_t shared, void *stream) {
    launches++;
    int result = next_host(function, grid_xy, grid_z, block_xy, block_z, arguments, shared, stream);
    return result;
}

static int our_module(void *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                      uint32_t block_y, uint32_t block_z, uint32_t shared, void *stream, void **parameters,
                      void **extra) {
    launches++;
    int result =
        next_module(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra);
    return result;
}

/* The call must not be a jump: the driver's side shall see this library as its caller. */
static int our_stream(void **stream, uint32_t flags) {
    const volatile int result = next_stream(stream, flags);
    return result;
}

__attribute__((visibility("default"))) int rocprofiler_set_api_table(const char *name, uint64_t version,
                                                                     uint64_t instance, void **given, uint64_t count);
int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **given, uint64_t count) {
    (void)version, (void)instance, (void)count;
    if (name[0] == 'h' && name[1] == 'i' && name[3] == 0) {
        void **table = given[0];
        tables++;
        next_host = (launch_host *)table[PLACE_HOST], table[PLACE_HOST] = (void *)our_host;
        next_module = (launch_module *)table[PLACE_MODULE], table[PLACE_MODULE] = (void *)our_module;
        next_stream = (create_stream *)table[PLACE_STREAM], table[PLACE_STREAM] = (void *)our_stream;
    }
    return 0;
}

__attribute__((destructor)) static void say(void) {
    printf("profiler: %d tables, %d launches\n", tables, launches);
}
#endif
