// Communication on one stream and GEMMs on others, and says of each GEMM whether it can overlap communication by the order of the
// program: one JSON line a launch. Each has a grid of its own, by which its packet is known.
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels.h"

static int *data;
static hipStream_t comm, comp, other, blocking[2];
static hipEvent_t event, joined;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const hipError_t result_ = (call);                                                                             \
        if (result_ != hipSuccess) {                                                                                   \
            fprintf(stderr, "%s: %d\n", #call, (int)result_);                                                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void gemm(const char *what, hipStream_t stream, bool overlaps) {
    static unsigned blocks = 2001;
    Cijk_Ailk_Bljk_SB_MT64x64x16<<<blocks, 256, 0, stream>>>(data);
    TRY(hipGetLastError());
    printf("{\"case\": \"%s\", \"blocks\": %u, \"overlaps\": %s}\n", what, blocks++, overlaps ? "true" : "false");
}

static void communicate(hipStream_t stream) {
    ncclDevKernel_Generic_2<<<16, 256, 0, stream>>>(data);
    TRY(hipGetLastError());
}

static void waits() {
    gemm("before all communication", comp, false);
    communicate(comm);
    gemm("nothing orders", comp, true);
    gemm("same stream", comm, false);
    TRY(hipEventRecord(event, comm));
    TRY(hipStreamWaitEvent(comp, event, 0));
    gemm("behind hipStreamWaitEvent", comp, false);
    gemm("beside a stream that waits", other, true);
    TRY(hipStreamSynchronize(comm));
    gemm("behind hipStreamSynchronize", other, false);
    communicate(comm);
    TRY(hipEventRecord(event, comm));
    TRY(hipEventSynchronize(event));
    gemm("behind hipEventSynchronize", comp, false);
    communicate(comm);
    gemm("communication again", comp, true);
    TRY(hipDeviceSynchronize());
    gemm("behind hipDeviceSynchronize", comp, false);
}

// As RCCL launches.
static void events_of_launches() {
    void *arguments[] = {&data};
    TRY(hipExtLaunchKernel((const void *)ncclDevKernel_Generic_2, dim3(16), dim3(256), arguments, 0, comm, NULL, event, 0));
    gemm("beside hipExtLaunchKernel", comp, true);
    TRY(hipStreamWaitEvent(comp, event, 0));
    gemm("behind the event of hipExtLaunchKernel", comp, false);
    TRY(hipDeviceSynchronize());
}

static void default_stream() {
    int host = 0;
    communicate(comm);
    gemm("null stream beside a non-blocking one", NULL, true);
    TRY(hipDeviceSynchronize());
    communicate(blocking[0]);
    gemm("blocking streams", blocking[1], true);
    gemm("null stream behind a blocking one", NULL, false);
    gemm("blocking behind the null stream", blocking[1], false);
    TRY(hipDeviceSynchronize());
    communicate(blocking[0]);
    TRY(hipMemcpy(&host, data, sizeof host, hipMemcpyDeviceToHost));
    gemm("behind hipMemcpy", comp, false);
}

static void captured() {
    hipGraph_t graph;
    hipGraphExec_t exec;
    TRY(hipStreamBeginCapture(comp, hipStreamCaptureModeGlobal));
    TRY(hipEventRecord(event, comp));
    TRY(hipStreamWaitEvent(comm, event, 0));
    communicate(comm);
    gemm("captured, nothing orders", comp, true);
    TRY(hipEventRecord(joined, comm));
    TRY(hipStreamWaitEvent(comp, joined, 0));
    gemm("captured, behind communication", comp, false);
    TRY(hipStreamEndCapture(comp, &graph));
    TRY(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    gemm("before the graph is launched", other, false);
    TRY(hipGraphLaunch(exec, comp));
    gemm("beside a graph that communicates", other, true);
    TRY(hipStreamSynchronize(comp));
    gemm("behind the graph", other, false);
}

int main() {
    TRY(hipMalloc(&data, 4096));
    for (hipStream_t *stream : {&comm, &comp, &other})
        TRY(hipStreamCreateWithFlags(stream, hipStreamNonBlocking));
    for (hipStream_t &stream : blocking)
        TRY(hipStreamCreate(&stream));
    TRY(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    TRY(hipEventCreateWithFlags(&joined, hipEventDisableTiming));
    waits();
    events_of_launches();
    default_stream();
    captured();
    return hipDeviceSynchronize();
}
