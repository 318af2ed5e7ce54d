// Launches kernels by every entry point that HIP has, and says of each what was asked for: one JSON line a launch.
//
//     launches CODE_OBJECT
//
// Built with -fgpu-default-stream=per-thread, `<<<>>>` means hipLaunchKernel_spt.
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>
#include <stdio.h>

#include "kernels.h"

static int *data;

static void say(const char *way, const char *kernel, unsigned blocks, unsigned threads, unsigned dynamic, int priority,
                hipError_t result) {
    printf("{\"way\": \"%s\", \"kernel\": \"%s\", \"blocks\": %u, \"threads\": %u, \"dynamic\": %u, \"priority\": %d, "
           "\"result\": %d}\n",
           way, kernel, blocks, threads, dynamic, priority, (int)result);
}

#define GEMM Cijk_Ailk_Bljk_SB_MT64x64x16
static const char gemm_name[] = "Cijk_Ailk_Bljk_SB_MT64x64x16";
static const char large_name[] = "Cijk_Ailk_Bljk_SB_MT128x128x16";
static const char mfma_name[] = "Cijk_Ailk_Bljk_SB_MFMA";
static const char comm_name[] = "ncclDevKernel_Generic_2";

static void by_the_runtime() {
    void *arguments[] = {&data};
    ncclDevKernel_Generic_2<<<16, 256>>>(data);
    say("<<<>>>", comm_name, 16, 256, 0, 0, hipGetLastError());
    GEMM<<<2001, 256, 512>>>(data);
    say("<<<>>>", gemm_name, 2001, 256, 512, 0, hipGetLastError());
    Cijk_Ailk_Bljk_SB_MT128x128x16<<<dim3(1001, 2, 1), dim3(64, 4, 1)>>>(data);
    say("<<<>>>", large_name, 2002, 256, 0, 0, hipGetLastError());
    Cijk_Ailk_Bljk_SB_MFMA<<<2003, 256>>>(data);
    say("<<<>>>", mfma_name, 2003, 256, 0, 0, hipGetLastError());
    say("hipLaunchKernel", gemm_name, 2004, 256, 1024, 0,
        hipLaunchKernel((const void *)GEMM, dim3(2004), dim3(256), arguments, 1024, 0));
    say("hipExtLaunchKernel", comm_name, 17, 256, 0, 0,
        hipExtLaunchKernel((const void *)ncclDevKernel_Generic_2, dim3(17), dim3(256), arguments, 0, 0, NULL, NULL, 0));
    say("hipExtLaunchKernel", gemm_name, 2005, 256, 0, 0,
        hipExtLaunchKernel((const void *)GEMM, dim3(2005), dim3(256), arguments, 0, 0, NULL, NULL, 0));
    say("hipLaunchCooperativeKernel", gemm_name, 106, 256, 0, 0,
        hipLaunchCooperativeKernel((const void *)GEMM, dim3(106), dim3(256), arguments, 0, 0));
    hipError_t result = hipConfigureCall(dim3(2007), dim3(256), 256, 0);
    if (result == hipSuccess)
        result = hipSetupArgument(&data, sizeof data, 0);
    if (result == hipSuccess)
        result = hipLaunchByPtr((const void *)GEMM);
    say("hipLaunchByPtr", gemm_name, 2007, 256, 256, 0, result);
    hipLaunchParams one = {(void *)GEMM, dim3(108), dim3(256), arguments, 0, 0};
    hipStreamCreate(&one.stream);
    say("hipExtLaunchMultiKernelMultiDevice", gemm_name, 108, 256, 0, 0, hipExtLaunchMultiKernelMultiDevice(&one, 1, 0));
    hipStreamSynchronize(one.stream);
}

static void by_module(const char *path) {
    hipModule_t module;
    hipFunction_t gemm;
    void *arguments[] = {&data};
    hipError_t result = hipModuleLoad(&module, path);
    if (result == hipSuccess)
        result = hipModuleGetFunction(&gemm, module, gemm_name);
    if (result != hipSuccess) {
        say("hipModuleGetFunction", gemm_name, 0, 0, 0, 0, result);
        return;
    }
    say("hipModuleLaunchKernel", gemm_name, 2009, 256, 2048, 0,
        hipModuleLaunchKernel(gemm, 2009, 1, 1, 256, 1, 1, 2048, 0, arguments, NULL));
    struct {
        int *data;
    } packed = {data};
    size_t size = sizeof packed;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END};
    say("hipModuleLaunchKernel, extra", gemm_name, 2010, 256, 0, 0,
        hipModuleLaunchKernel(gemm, 2010, 1, 1, 256, 1, 1, 0, 0, NULL, extra));
    // Its grid is in work-items.
    say("hipExtModuleLaunchKernel", gemm_name, 2011, 256, 4096, 0,
        hipExtModuleLaunchKernel(gemm, 2011 * 256, 1, 1, 256, 1, 1, 4096, 0, arguments, NULL, NULL, NULL, 0));
    say("hipHccModuleLaunchKernel", gemm_name, 2012, 256, 128, 0,
        hipHccModuleLaunchKernel(gemm, 2012 * 256, 1, 1, 256, 1, 1, 128, 0, arguments, NULL, NULL, NULL));
    hipDeviceSynchronize();
    hipModuleUnload(module);
}

static void by_graph() {
    void *arguments[] = {&data};
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t node;
    hipStream_t stream;
    hipKernelNodeParams parameters = {dim3(256), NULL, (void *)Cijk_Ailk_Bljk_SB_MFMA, dim3(2013), arguments, 0};
    hipError_t result = hipGraphCreate(&graph, 0);
    if (result == hipSuccess)
        result = hipGraphAddKernelNode(&node, graph, NULL, 0, &parameters);
    if (result == hipSuccess)
        result = hipGraphInstantiate(&exec, graph, NULL, NULL, 0);
    hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
    if (result == hipSuccess)
        result = hipGraphLaunch(exec, stream);
    hipStreamSynchronize(stream);
    say("hipGraphAddKernelNode", mfma_name, 2013, 256, 0, 0, result);

    result = hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal);
    GEMM<<<2014, 256, 32, stream>>>(data);
    if (result == hipSuccess)
        result = hipStreamEndCapture(stream, &graph);
    if (result == hipSuccess)
        result = hipGraphInstantiate(&exec, graph, NULL, NULL, 0);
    if (result == hipSuccess)
        result = hipGraphLaunch(exec, stream);
    hipStreamSynchronize(stream);
    say("capture", gemm_name, 2014, 256, 32, 0, result);
}

static void by_priority() {
    int least, greatest;
    hipDeviceGetStreamPriorityRange(&least, &greatest);
    for (int priority = greatest; priority <= least; priority++) {
        hipStream_t stream;
        hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, priority);
        ncclDevKernel_Generic_2<<<18, 256, 0, stream>>>(data);
        say("priority", comm_name, 18, 256, 0, priority, hipGetLastError());
        hipStreamSynchronize(stream);
    }
}

int main(int count, char **words) {
    if (count < 2 || hipMalloc(&data, 4096) != hipSuccess)
        return 1;
    by_the_runtime();
    by_module(words[1]);
    by_graph();
    by_priority();
    return hipDeviceSynchronize();
}
