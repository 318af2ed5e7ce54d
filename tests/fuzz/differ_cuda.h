/* Arguments for NVIDIA's driver API: makers that differ_rows.py finds by their names. */
#pragma once

#include "cuda/cuda_abi.h"

/* ---- What of cuda.h 13.0 the library does not need ---- */

typedef union {
    int operation;
    uint64_t pad[6];
} CUstreamBatchMemOpParams;
_Static_assert(sizeof(CUstreamBatchMemOpParams) == 48, "as in cuda.h");

typedef struct {
    char reserved[64];
} CUipcEventHandle;

enum kind {
    NO_KIND,
    CONTEXT,
    GREEN,
    MODULE,
    LIBRARY,
    FUNCTION,
    KERNEL,
    STREAM,
    EVENT,
    GRAPH,
    NODE,
    EXEC,
    ADDRESS,
    KINDS
};
static const char code_text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                ".visible .entry gemm(.param .u64 a, .param .u32 b)\n{\n ret;\n}\n"
                                ".visible .entry elementwise(.param .u64 a, .param .u32 b)\n{\n ret;\n}\n"
                                ".visible .entry bounded(.param .u64 a, .param .u32 b).maxntid 128, 1, 1\n{\n ret;\n}\n"
                                ".visible .entry ncclDevKernel_AllReduce(.param .u64 a, .param .u32 b)\n{\n ret;\n}\n"
                                ".visible .entry ncclDevKernel_Broadcast(.param .u64 a, .param .u32 b)\n{\n ret;\n}\n";
enum { KERNELS = 5 };
static const char *const kernel_names[KERNELS] = {"gemm", "elementwise", "bounded", "ncclDevKernel_AllReduce",
                                                  "ncclDevKernel_Broadcast"};
#include "differ.h"
#include "differ_arguments.h"

static struct {
    uint64_t a;
    uint32_t b, pad;
} packed;
static size_t packed_size = 12;
static void *packed_parameters[] = {(void *)1, &packed, (void *)2, &packed_size, NULL};

/* ---- Handles ---- */

#define arg_CUcontext() use(CONTEXT)
#define arg_CUcontext_p() make(CONTEXT)
#define arg_cuCtxSetCurrent_context() (roll(3) ? use(CONTEXT) : NULL)
#define arg_CUgreenCtx() use(GREEN)
#define arg_CUgreenCtx_p() make(GREEN)
#define arg_CUmodule() use(MODULE)
#define arg_CUmodule_p() make(MODULE)
#define arg_CUlibrary() use(LIBRARY)
#define arg_CUlibrary_p() make(LIBRARY)
#define arg_CUkernel() use(KERNEL)
#define arg_CUkernel_p() make(KERNEL)
#define arg_CUfunction_p() make(FUNCTION)
#define arg_CUevent() use(EVENT)
#define arg_CUevent_p() make(EVENT)
#define arg_CUgraph() use(GRAPH)
#define arg_CUgraph_p() make(GRAPH)
#define arg_CUgraphNode() use(NODE)
#define arg_CUgraphNode_p() make(NODE)
#define arg_CUgraphExec() use(EXEC)
#define arg_CUgraphExec_p() make(EXEC)
#define arg_CUstream_p() make(STREAM)
#define arg_uint64_t_p_address() make(ADDRESS)

#define arg_cuStreamDestroy_stream() end(STREAM)
#define arg_cuEventDestroy_event() end(EVENT)
#define arg_cuModuleUnload_module() end(MODULE)
#define arg_cuLibraryUnload_library() end(LIBRARY)
#define arg_cuCtxDestroy_context() end(CONTEXT)
#define arg_cuCtxDetach_context() end(CONTEXT)
#define arg_cuGreenCtxDestroy_context() end(GREEN)
#define arg_cuGraphDestroy_graph() end(GRAPH)
#define arg_cuGraphExecDestroy_exec() end(EXEC)
#define arg_cuMemFree_address() (uint64_t)(uintptr_t)end(ADDRESS)

/* Told again, not made: its number is that of its making. */
#define arg_CUcontext_p_again() told(OF_HANDLE)
#define arg_CUmodule_p_again() told(OF_HANDLE)
#define arg_CUgraphNode_p_error() told_after_failure()

static CUstream arg_CUstream(void) {
    return roll(8) ? use(STREAM) : (CUstream)(uintptr_t)roll(3);
}
/* What takes a CUfunction takes a CUkernel, too. */
static CUfunction arg_CUfunction(void) {
    return roll(4) ? use(FUNCTION) : use(KERNEL);
}
#define arg_CUfunction_p_functions() make_many(FUNCTION)
#define arg_CUkernel_p_kernels() make_many(KERNEL)
#define arg_CUgraphNode_p_nodes() make_many(NODE)
#define arg_const_CUgraphNode_p() some_nodes()
static CUDA_GRAPH_INSTANTIATE_PARAMS *arg_CUDA_GRAPH_INSTANTIATE_PARAMS_p(void) {
    static CUDA_GRAPH_INSTANTIATE_PARAMS given;
    given = (CUDA_GRAPH_INSTANTIATE_PARAMS){.flags = (uint64_t)ONE_OF(0, 0, 8, 99)};
    return mostly(&given);
}
#define arg_size_t_count() (size_t)ONE_OF(0, 0, 0, 1, 1, 2)
static const CUgraphEdgeData *arg_const_CUgraphEdgeData_p(void) {
    static CUgraphEdgeData edges[2];
    memset(edges, 0, sizeof edges);
    if (roll(4))
        return NULL;
    edges[0].from_port = edges[0].type = (unsigned char)roll(2);
    return edges;
}

/* ---- Numbers ---- */

#define arg_CUdevice() (CUdevice) ONE_OF(0, 0, 0, 0, 1, 1, 2, -1)
#define arg_cuGraphCreate_flags() (uint32_t)OFTEN(1, 0)
#define arg_cuEventRecordWithFlags_flags() (uint32_t)OFTEN(77, 0, 0, 1)
#define arg_cuStreamWaitEvent_flags() (uint32_t)OFTEN(77, 0, 0, 1)
#define arg_cuStreamCreate_flags() (uint32_t)OFTEN(77, 0, 1, 1)
#define arg_cuStreamCreateWithPriority_flags() (uint32_t)OFTEN(77, 0, 1, 1)
#define arg_cuInit_flags() (uint32_t)ONE_OF(0, 0, 1)
#define arg_cuGreenCtxCreate_flags() 1
#define arg_int_config() (int)ONE_OF(0, 1, 2, 3, 4, -1)
#define arg_int_width() (int)ONE_OF(1, 40, 40, 300, 0)
#define arg_int_height() (int)ONE_OF(1, 1, 2)
#define arg_int_x() (int)ONE_OF(256, 256, 128, 1024, 0)
#define arg_int_y() 1
#define arg_int_z() 1
#define arg_int_count() 0
#define arg_cuModuleEnumerateFunctions_count() (uint32_t)ONE_OF(5, 5, 1, 0)
#define arg_cuLibraryEnumerateKernels_count() (uint32_t)ONE_OF(5, 5, 1, 0)
#define arg_cuLibraryLoadData_count() 0
#define arg_uint32_t_more_count() 0
#define arg_cuEventCreate_flags() (uint32_t)OFTEN(77, 0, 0, 1, 2, 6)
#define arg_size_t_size() (sizeof log_text)

/* Attributes of functions have other numbers than those of launches. */
#define arg_int_attribute() (int)ONE_OF(2, 4, 8, 8, 8, 11, 14, 14, 1, 3, 6, 99)
#define FUNCTION_ATTRIBUTE (int)ONE_OF(8, 8, 8, 9, 9, 0, 1, 4, 11, 14, 99)
#define arg_cuFuncSetAttribute_attribute() FUNCTION_ATTRIBUTE
#define arg_cuKernelSetAttribute_attribute() FUNCTION_ATTRIBUTE
#define arg_cuFuncGetAttribute_attribute() FUNCTION_ATTRIBUTE
#define arg_cuKernelGetAttribute_attribute() FUNCTION_ATTRIBUTE
#define arg_int_value() (int)(roll(2) ? a_size() : ONE_OF(-1, 0, 1, 2, 25, 50, 100, 101, -2))

/* ---- Memory ---- */

#define MEMORY (uint64_t)(uintptr_t)use(ADDRESS)
#define arg_uint64_t() MEMORY
#define arg_uint8_t() (uint8_t)roll(3)
#define arg_size_t() (size_t)ONE_OF(0, 1, 4, 64, 256)
#define arg_size_t_width() (size_t)ONE_OF(1, 2, 4)
#define arg_size_t_height() (size_t)ONE_OF(0, 1, 4)
#define arg_size_t_to_offset() 0
#define arg_size_t_from_offset() 0
#define arg_cuMemAlloc_bytes() (size_t)ONE_OF(4096, 4096, 4096, 0)
#define arg_void_p() (void *)host
#define arg_const_void_p_from() (const void *)host
#define arg_const_void_p_image() (const void *)code_text
#define arg_void_p_parameters() NULL
#define arg_void_p_affinities() NULL
#define arg_void_p_options() NULL
#define arg_void_p_more() NULL
#define arg_void_p_p_values() NULL
#define arg_void_p_p_more_values() NULL

#define arg_void_p_function() (void *)(uintptr_t)host_function

static const char *arg_const_char_p_symbol(void) {
    static const char *const symbols[] = {"cuLaunchKernel", "cuLaunchKernelEx", "cuStreamCreate",  "cuGraphLaunch",
                                          "cuMemcpyAsync",  "cuGetProcAddress", "cuNobodyHasThis", ""};
    return symbols[roll(8)];
}
static size_t size_of_block(int threads) {
    return (size_t)threads * 16;
}
#define arg_CUoccupancyB2DSize() (roll(2) ? size_of_block : NULL)

/* ---- Launches, nodes ---- */

/* One or the other is given, rarely both. */
#define arg_void_p_p_extra() (roll(30) ? NULL : packed_parameters)

static CUlaunchAttributeValue value_of(int attribute) {
    CUlaunchAttributeValue value;
    memset(&value, 0, sizeof value);
    switch (attribute) {
    case 4:
    case 11:
        value.cluster.x = (uint32_t)ONE_OF(1, 2, 2, 3);
        value.cluster.y = value.cluster.z = 1;
        break;
    case 7:
    case 12:
        value.event = use(EVENT);
        break;
    case 8:
        value.priority = arg_int_priority();
        break;
    case 14:
        value.priority = (int)ONE_OF(-1, 0, 25, 50, 100, 101);
        break;
    default:
        value.priority = (int)roll(2);
    }
    return value;
}
static const CUlaunchAttributeValue *arg_const_CUlaunchAttributeValue_p(void) {
    static CUlaunchAttributeValue value; /* the attribute has been chosen before, and not to be had here: any will do */
    value = value_of((int)ONE_OF(4, 8, 8, 14));
    return &value;
}
#define arg_const_CUstreamAttrValue_p() arg_const_CUlaunchAttributeValue_p()
/* As far as anything is known of what a driver writes there. */
static CUlaunchAttributeValue *arg_CUlaunchAttributeValue_p_shown(void) {
    return (CUlaunchAttributeValue *)shows(12);
}

static const CUlaunchConfig *arg_const_CUlaunchConfig_p(void) {
    static CUlaunchAttribute attributes[3];
    static CUlaunchConfig config;
    memset(attributes, 0, sizeof attributes);
    config = (CUlaunchConfig){.gridDimX = arg_uint32_t_grid_x(),
                              .gridDimY = arg_uint32_t_grid_y(),
                              .gridDimZ = arg_uint32_t_grid_z(),
                              .blockDimX = arg_uint32_t_block_x(),
                              .blockDimY = arg_uint32_t_block_y(),
                              .blockDimZ = arg_uint32_t_block_z(),
                              .sharedMemBytes = arg_uint32_t_shared(),
                              .hStream = arg_CUstream(),
                              .attrs = mostly(attributes),
                              .numAttrs = (uint32_t)ONE_OF(0, 0, 0, 1, 1, 2, 3)};
    for (int i = 0; i < 3; i++) {
        attributes[i].id = (uint32_t)ONE_OF(0, 2, 4, 6, 7, 8, 8, 11, 12, 14, 14, 99);
        attributes[i].value = value_of((int)attributes[i].id);
    }
    return mostly(&config);
}

static const void *copy_2d(void) {
    static struct {
        size_t from_x, from_y;
        int from_type;
        const void *from_host;
        uint64_t from_device;
        void *from_array;
        size_t from_pitch, to_x, to_y;
        int to_type;
        void *to_host;
        uint64_t to_device;
        void *to_array;
        size_t to_pitch, width, height;
    } copy;
    memset(&copy, 0, sizeof copy);
    copy.from_type = 1 + (int)roll(2);
    copy.to_type = 1 + (int)roll(2);
    copy.from_host = zeros;
    copy.to_host = host;
    copy.from_device = MEMORY;
    copy.to_device = MEMORY;
    copy.from_pitch = copy.to_pitch = 16;
    copy.width = arg_size_t_width();
    copy.height = arg_size_t_height();
    return &copy;
}
#define arg_const_void_p_copy() copy_2d()

static void *split(void) {
    static char all[1024], part[1024];
    unsigned groups = 1;
    void *description = NULL;
    extern CUresult cuDeviceGetDevResource(int, void *, int), cuDevResourceGenerateDesc(void **, void *, unsigned);
    extern CUresult cuDevSmResourceSplitByCount(void *, unsigned *, const void *, void *, unsigned, unsigned);
    if (cuDeviceGetDevResource(0, all, 1) || cuDevSmResourceSplitByCount(part, &groups, all, NULL, 0, 8) ||
        cuDevResourceGenerateDesc(&description, part, 1))
        return NULL;
    return description;
}
#define arg_void_p_description() split()
#define arg_void_p_result() shows(0)

#include "differ_cuda_run.h"
