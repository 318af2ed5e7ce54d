// What do graphs cost the calling thread, bare and behind the library? Captured from a stream, of 1, 100 and 1,000 launches.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 graph_cost.cu -o graph_cost -lcuda
//   nvcc -cubin -arch=sm_90 question_kernels.cu -o question_kernels.cubin
//   [overlap-run --policy P] ./graph_cost question_kernels.cubin [REPETITIONS]
//
// `computation`: empty kernels of 8,448 blocks on one stream. `beside communication`: of 100 and of 1,000, every tenth is
// communication on a second stream, between an event of the first and one that the first waits for at the end. One JSON line
// a kind and size: of every repetition, the capture, cuGraphInstantiateWithFlags, the first cuGraphLaunch, a later one, and a later
// one until it has run, in us of wall time.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

static void must(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, (int)result);
        exit(1);
    }
}
#define MUST(call) must((call), #call)

static double now_us() {
    auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(time).count();
}

static CUfunction computation, communication;
static CUstream stream, beside;
static CUevent fork_event, join_event;

static void launch(CUfunction function, unsigned blocks, CUstream on) {
    MUST(cuLaunchKernel(function, blocks, 1, 1, 128, 1, 1, 0, on, nullptr, nullptr));
}

static CUgraph capture(int launches, bool both) {
    CUgraph graph;
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (both) {
        MUST(cuEventRecord(fork_event, stream));
        MUST(cuStreamWaitEvent(beside, fork_event, 0));
    }
    for (int i = 0; i < launches; i++)
        if (both && i % 10 == 0)
            launch(communication, 32, beside);
        else
            launch(computation, 8448, stream);
    if (both) {
        MUST(cuEventRecord(join_event, beside));
        MUST(cuStreamWaitEvent(stream, join_event, 0));
    }
    MUST(cuStreamEndCapture(stream, &graph));
    return graph;
}

static void print(const char *name, const std::vector<double> &values) {
    printf(",\"%s\":[", name);
    for (size_t i = 0; i < values.size(); i++)
        printf("%s%.2f", i ? "," : "", values[i]);
    printf("]");
}

static void measure(int launches, bool both, int repetitions) {
    std::vector<double> captured, instantiated, first, later, finished;
    for (int repetition = -3; repetition < repetitions; repetition++) { // three to warm up
        CUgraphExec executable;
        double times[7];
        MUST(cuCtxSynchronize());
        times[0] = now_us();
        CUgraph graph = capture(launches, both);
        times[1] = now_us();
        MUST(cuGraphInstantiate(&executable, graph, 0));
        times[2] = now_us();
        MUST(cuGraphLaunch(executable, stream));
        times[3] = now_us();
        MUST(cuCtxSynchronize());
        times[4] = now_us();
        MUST(cuGraphLaunch(executable, stream));
        times[5] = now_us();
        MUST(cuStreamSynchronize(stream));
        times[6] = now_us();
        MUST(cuGraphExecDestroy(executable));
        MUST(cuGraphDestroy(graph));
        if (repetition < 0)
            continue;
        captured.push_back(times[1] - times[0]);
        instantiated.push_back(times[2] - times[1]);
        first.push_back(times[3] - times[2]);
        later.push_back(times[5] - times[4]);
        finished.push_back(times[6] - times[4]);
    }
    printf("{\"question\":\"graph cost\",\"kind\":\"%s\",\"launches\":%d",
           both ? "beside communication" : "computation", launches);
    print("capture_us", captured);
    print("instantiate_us", instantiated);
    print("first_launch_us", first);
    print("later_launch_us", later);
    print("later_until_done_us", finished);
    printf("}\n");
    fflush(stdout);
}

int main(int argc, char **argv) {
    int repetitions = argc > 2 ? atoi(argv[2]) : 20;
    std::ifstream file(argc > 1 ? argv[1] : "question_kernels.cubin", std::ios::binary);
    std::vector<char> image(std::istreambuf_iterator<char>(file), {});
    CUdevice device;
    CUcontext context;
    CUmodule module;
    image.push_back(0);
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, image.data()));
    MUST(cuModuleGetFunction(&computation, module, "empty"));
    MUST(cuModuleGetFunction(&communication, module, "ncclDevKernel_empty"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&fork_event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&join_event, CU_EVENT_DISABLE_TIMING));
    launch(communication, 32, beside); // from now on a policy knows what communication needs
    for (int launches : {1, 100, 1000})
        for (bool both : {false, true})
            if (launches > 1 || !both)
                measure(launches, both, repetitions);
    return 0;
}
