/* Arguments for HIP: makers that differ_rows.py finds by their names. */
#pragma once

#include "hip/hip_abi.h"

enum kind { NO_KIND, MODULE, LIBRARY, FUNCTION, KERNEL, STREAM, EVENT, GRAPH, NODE, EXEC, ADDRESS, KINDS };
enum { KERNELS = 4 };
static const char *const kernel_names[KERNELS] = {"gemm", "elementwise", "ncclDevKernel_AllReduce",
                                                  "ncclDevKernel_Broadcast"};
#include "differ.h"
#include "differ_arguments.h"

#include <fcntl.h>
#include <unistd.h>

static char code[1 << 18], host_kernels[KERNELS];

/* ---- Handles ---- */

#define arg_hipFunction_t() use(FUNCTION)
#define arg_hipFunction_t_p() make(FUNCTION)
#define arg_hipModule_t() use(MODULE)
#define arg_hipModule_t_p() make(MODULE)
#define arg_hipLibrary_t() use(LIBRARY)
#define arg_hipLibrary_t_p() make(LIBRARY)
#define arg_hipKernel_t_p() make(KERNEL)
#define arg_hipEvent_t() use(EVENT)
#define arg_hipEvent_t_p() make(EVENT)
#define arg_hipEvent_t_start() (roll(4) ? NULL : use(EVENT))
#define arg_hipEvent_t_stop() (roll(4) ? NULL : use(EVENT))
#define arg_hipGraph_t() use(GRAPH)
#define arg_hipGraph_t_p() make(GRAPH)
#define arg_hipGraphNode_t() use(NODE)
#define arg_hipGraphNode_t_p_error() told_after_failure()
#define arg_hipGraphNode_t_p_nodes() make_many(NODE)
#define arg_hipGraphExec_t() use(EXEC)
#define arg_hipGraphExec_t_p() make(EXEC)
#define arg_hipStream_t_p() make(STREAM)
static hipStream_t arg_hipStream_t(void) {
    return roll(8) ? use(STREAM) : (hipStream_t)(uintptr_t)roll(3);
}
#define arg_hipStreamDestroy_stream() end(STREAM)
#define arg_hipEventDestroy_event() end(EVENT)
#define arg_hipModuleUnload_module() end(MODULE)
#define arg_hipLibraryUnload_library() end(LIBRARY)
#define arg_hipGraphDestroy_graph() end(GRAPH)
#define arg_hipGraphExecDestroy_exec() end(EXEC)
#define arg_hipFree_address() end(ADDRESS)
#define arg_hipMalloc_address() make(ADDRESS)
#define arg_hipMalloc_bytes() (size_t)ONE_OF(4096, 4096, 4096, 0)

#define arg_const_hipGraphNode_t_p() some_nodes()
#define arg_const_hipGraphEdgeData_p() NULL

/* ---- Numbers ---- */

#define arg_int_device() (int)ONE_OF(0, 0, 0, 0, 1, 1, 2, -1)
#define arg_hipInit_flags() (uint32_t)ONE_OF(0, 0, 1)
#define arg_hipGraphCreate_flags() (uint32_t)OFTEN(1, 0)
#define arg_hipEventCreateWithFlags_flags() (uint32_t)OFTEN(77, 0, 0, 2)
#define arg_hipStreamCreateWithFlags_flags() (uint32_t)OFTEN(77, 0, 1, 1)
#define arg_hipStreamCreateWithPriority_flags() (uint32_t)OFTEN(77, 0, 1, 1)
#define arg_hipStreamWaitEvent_flags() (uint32_t)OFTEN(77, 0)
#define arg_int_count() (int)ONE_OF(1, 1, 2, 0)
#define arg_int_flags() 0
#define arg_int_value() (int)roll(3)
#define arg_int_attribute() (int)ONE_OF(0, 1, 2, 4, 8, 9, 99)
#define arg_int_dstDeviceId() 0
#define arg_int_srcDeviceId() 0
#define arg_size_t_count() (size_t)ONE_OF(0, 0, 0, 1, 1, 2)
#define arg_size_t_shared() (size_t)a_size()
#define arg_size_t_size() (sizeof log_text)
#define arg_size_t() (size_t)ONE_OF(0, 1, 4, 64, 256)
#define arg_size_t_dpitch() 16
#define arg_size_t_spitch() 16
#define arg_size_t_width() (size_t)ONE_OF(1, 2, 4)
#define arg_size_t_height() (size_t)ONE_OF(0, 1, 4)
#define arg_uint32_t() 0
#define arg_uint32_t_items_x() (uint32_t)OFTEN(0, 128, 10240, 25600)
#define arg_uint32_t_items_y() 1
#define arg_uint32_t_items_z() 1
static dim3 arg_dim3_grid(void) {
    return (dim3){arg_uint32_t_grid_x(), arg_uint32_t_grid_y(), arg_uint32_t_grid_z()};
}
static dim3 arg_dim3_block(void) {
    return (dim3){arg_uint32_t_block_x(), arg_uint32_t_block_y(), arg_uint32_t_block_z()};
}

/* ---- Memory ---- */

static void *memory(void) {
    return roll(2) ? use(ADDRESS) : host;
}
#define arg_void_p() memory()
#define arg_const_void_p() memory()
#define arg_const_void_p_image() (const void *)code
#define arg_const_char_p_file() "/nonexistent"
static void *cleared(void) {
    static char bytes[1024] __attribute__((aligned(16)));
    return memset(bytes, 0, sizeof bytes);
}
#define arg_void_p_p() (void **)cleared()
#define arg_void_p_p_arguments() (void **)mostly(given_parameters)
#define arg_void_p_p_extra() NULL
#define arg_void_p_p_dev_ptr() make(ADDRESS)
#define arg_void_p_p_function() told(OF_WORD)
#define arg_void_p_options() NULL
/* Kernels of the program itself are launched by the address of a function that stands for them. */
#define arg_const_void_p_function() (const void *)mostly(&host_kernels[roll(KERNELS)])
#define arg_hipGetFuncBySymbol_symbol() (const void *)mostly(&host_kernels[roll(KERNELS)])
#define arg_const_void_p_symbol() (const void *)zeros

static const char *arg_const_char_p_symbol(void) {
    static const char *const symbols[] = {"hipLaunchKernel", "hipModuleLaunchKernel", "hipMemcpyDtoHAsync",
                                          "hipNobody"};
    return symbols[roll(4)];
}
#define arg_void_p_fn() (void *)(uintptr_t)host_function
/* ---- Launches ---- */

static vendor_attribute attributes[3];
static void make_attributes(void) {
    memset(attributes, 0, sizeof attributes);
    for (int i = 0; i < 3; i++) {
        attributes[i].id = (uint32_t)ONE_OF(0, 2, 2, 8, 99);
        attributes[i].value.cooperative = (int)roll(2);
    }
}
static const HIP_LAUNCH_CONFIG *arg_const_HIP_LAUNCH_CONFIG_p(void) {
    static HIP_LAUNCH_CONFIG config;
    make_attributes();
    const dim3 grid = arg_dim3_grid(), block = arg_dim3_block();
    config = (HIP_LAUNCH_CONFIG){grid.x,
                                 grid.y,
                                 grid.z,
                                 block.x,
                                 block.y,
                                 block.z,
                                 arg_uint32_t_shared(),
                                 0,
                                 arg_hipStream_t(),
                                 attributes,
                                 (uint32_t)ONE_OF(0, 0, 1, 3),
                                 0};
    return mostly(&config);
}
static const hipLaunchConfig_t *arg_const_hipLaunchConfig_t_p(void) {
    static hipLaunchConfig_t config;
    make_attributes();
    config = (hipLaunchConfig_t){arg_dim3_grid(),   arg_dim3_block(), arg_size_t_shared(),
                                 arg_hipStream_t(), attributes,       (uint32_t)ONE_OF(0, 0, 1, 3)};
    return mostly(&config);
}
#define show_dim3(name, value) say("%s=%u,%u,%u ", name, (value).x, (value).y, (value).z)

/* ---- The program's own kernels, as hipcc's code registers them before main ---- */

extern void **__hipRegisterFatBinary(const void *);
extern void __hipRegisterFunction(void **, const void *, char *, const char *, unsigned, void *, void *, void *, void *,
                                  int *);
static void **register_kernels(void) {
    static struct {
        uint32_t magic, version;
        const void *data, *unused;
    } wrapper = {0x48495046, 1, code, NULL};
    void **binary = __hipRegisterFatBinary(&wrapper);
    for (int i = 0; binary && i < KERNELS; i++)
        __hipRegisterFunction(binary, &host_kernels[i], (char *)(uintptr_t)kernel_names[i], kernel_names[i], 0, NULL,
                              NULL, NULL, NULL, NULL);
    return binary;
}
#define arg_void_p_p_modules() register_kernels()

static void enter_block(int first) {
    static int registered;
    (void)first;
    const int file = registered++ ? -1 : open(getenv("DIFFER_IMAGE"), O_RDONLY);
    if (file < 0)
        return;
    if (read(file, code, sizeof code) <= 0 || !register_kernels())
        abort();
    close(file);
}
/* The error that is pending is "not ready", or not. */
extern int hipGetLastError(void);
static void after_timed(void) {
    hipGetLastError();
}

/* ---- What a block of calls is about ---- */

static const struct theme themes[] = {
    {"load",
     {"hipModuleLoadData*", "hipModuleGetFunction", "hipModuleGetFunction", "hipLibraryLoadData", "hipLibraryGetKernel",
      "hipStreamCreate*", "hipEventCreate*", "hipMalloc", "hipGraphCreate", "hipGetFuncBySymbol"},
     {NULL}},
    {"any", {"*"}, {NULL}},
    {"launch",
     {"hip*Launch*Kernel*", "hipLaunchKernel*", "hipModuleLaunchKernel", "hipEvent*", "hipStreamWaitEvent*",
      "hip*Occupancy*", "hipModuleGetFunction", "hip*LastError"},
     {NULL}},
    {"capture",
     {"hip*Launch*Kernel*", "hipLaunchKernel*", "hipEventRecord*", "hipStreamWaitEvent*", "hipMemcpyDtoHAsync",
      "hipStream*", "hipModuleUnload"},
     {"hipStreamBeginCapture*", [11] = "hipStreamEndCapture*", "hipGraphInstantiate*", "hipGraphLaunch*",
      "hipGraphGetNodes"}},
    {"update",
     {"hipLaunchKernel*", "hipModuleLaunchKernel"},
     {"hipStreamBeginCapture", [4] = "hipStreamEndCapture", "hipGraphInstantiateWithFlags", "hipGraphLaunch",
      "hipStreamBeginCapture", [11] = "hipStreamEndCapture", "hipGraphExecUpdate", "hipGraphLaunch"}},
    {"graph", {"hipGraph*", "hipGraphExec*"}, {"hipGraphCreate", [12] = "hipGraphInstantiate*", "hipGraphLaunch*"}},
    {"order", {"hipEvent*", "hipStream*", "hip*Synchronize*", "hipLaunchKernel", "hipMem*"}, {NULL}},
    {"copy", {"hipMem*", "hipLaunchKernel*"}, {NULL}},
    {"life",
     {"hipModule*", "hipLibrary*", "hipStream*", "hipSetDevice", "hipGetDevice", "hipLaunchKernel*", "__hip*"},
     {NULL}},
};
static const char *const rare[] = {"hipDeviceReset", "__hipUnregisterFatBinary"};
static const char *const timed[] = {"*Query*", "*ElapsedTime*"};
static const char *const ends[] = {"hipDeviceReset"};
#define DRIVER_FILE DIFFER_RUNTIME
