// When did the kernels of a program really run? For windows_check.py, which compares that with what the library says of them.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 windows.cu -o windows -lcuda
//   nvcc -cubin -arch=sm_90 question_kernels.cu -o question_kernels.cubin
//   [overlap-run --policy P --report DIR --trace] ./windows question_kernels.cubin [large] < programs.txt
//
// A program is one line, as tests/windows/operations.py describes it; one GPU, without values in memory to wait for. Each
// is run with several durations of its kernels (REPETITIONS), and answered by one line of JSON a time: what each call
// returned, and [operation, start, end] in nanoseconds for each time that one of its kernels ran. Kernels are of one block;
// large: computation of more than two waves, which a policy can shape.
#include "questions.h"

#include <algorithm>
#include <map>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

// The entry points for default streams of threads, which cuda.h declares for none but its own use.
#define OF_THREADS(X)                                                                                                  \
    X(cuLaunchKernel)                                                                                                  \
    X(cuLaunchKernelEx)                                                                                                \
    X(cuEventRecord)                                                                                                   \
    X(cuEventRecordWithFlags)                                                                                          \
    X(cuStreamWaitEvent)                                                                                               \
    X(cuStreamSynchronize)                                                                                             \
    X(cuStreamQuery)                                                                                                   \
    X(cuLaunchHostFunc)                                                                                                \
    X(cuGraphLaunch)                                                                                                   \
    X(cuStreamEndCapture)                                                                                              \
    X(cuMemsetD32Async)
#define DECLARE(name) extern "C" decltype(name) name##_ptsz;
OF_THREADS(DECLARE)
extern "C" CUresult cuStreamBeginCapture_v2_ptsz(CUstream, CUstreamCaptureMode);
extern "C" CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr, CUdeviceptr, size_t, CUstream);
extern "C" CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr, const void *, size_t);
extern "C" CUresult cuMemcpyDtoH_v2_ptds(void *, CUdeviceptr, size_t);
extern "C" CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr, CUdeviceptr, size_t);
extern "C" CUresult cuMemsetD32_v2_ptds(CUdeviceptr, unsigned, size_t);

struct Ran { // as in question_kernels.cu
    unsigned long long start, end;
    unsigned operation, multiprocessor;
};
struct Op {
    char kind, how, slot;
    int index, other, thread;
};
struct Stream {
    CUstream handle;
    bool per_thread;
};
struct Kernel {
    CUfunction function;
    unsigned blocks, threads;
    unsigned long long least, most; // nanoseconds
};

static const unsigned MOST = 1 << 18, REPETITIONS = 3;
static const int NO_SUCH = -1;
static const size_t MOST_COPIED = 8 << 20;
static Kernel kernels[2];
static std::map<char, CUstream> streams;
static std::map<int, CUevent> events;
static std::map<int, std::pair<CUgraph, CUgraphExec>> graphs;
static CUdeviceptr memory, ran, counter;
static unsigned operation, repetition;
static size_t copied = 4;
static std::string running;

static int launch(const Op &op, Stream stream) {
    const Kernel &kernel = kernels[op.kind == 'c'];
    unsigned most = MOST, hash = (operation * 31 + repetition) * 2654435761u;
    unsigned long long time = kernel.least + (hash >> 8) % 1024 * (kernel.most - kernel.least) / 1024;
    void *parameters[] = {&ran, &counter, &most, &operation, &time};
    if (!op.other)
        return (stream.per_thread ? cuLaunchKernel_ptsz : cuLaunchKernel)(
            kernel.function, kernel.blocks, 1, 1, kernel.threads, 1, 1, 0, stream.handle, parameters, nullptr);
    CUlaunchConfig config = {};
    config.gridDimX = kernel.blocks;
    config.blockDimX = kernel.threads;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream.handle;
    return (stream.per_thread ? cuLaunchKernelEx_ptsz : cuLaunchKernelEx)(&config, kernel.function, parameters,
                                                                          nullptr);
}

static int instantiate(int slot, CUgraph graph) {
    CUgraphExec exec = nullptr;
    int result = cuGraphInstantiateWithFlags(&exec, graph, 0);
    graphs[slot] = {graph, exec};
    return result;
}

static int destroy_graph(int slot) {
    if (!graphs.count(slot))
        return NO_SUCH;
    auto [graph, exec] = graphs[slot];
    graphs.erase(slot);
    if (exec)
        cuGraphExecDestroy(exec);
    return cuGraphDestroy(graph);
}

static int by_hand(const Op &op) {
    CUgraph graph;
    CUgraphNode node;
    MUST(cuGraphCreate(&graph, 0));
    const Kernel &kernel = kernels[op.other & 1];
    unsigned most = MOST;
    unsigned long long time = kernel.least;
    void *parameters[] = {&ran, &counter, &most, &operation, &time};
    CUDA_KERNEL_NODE_PARAMS node_parameters = {};
    node_parameters.func = kernel.function;
    node_parameters.gridDimX = kernel.blocks;
    node_parameters.blockDimX = kernel.threads;
    node_parameters.gridDimY = node_parameters.gridDimZ = node_parameters.blockDimY = node_parameters.blockDimZ = 1;
    node_parameters.kernelParams = parameters;
    int result = cuGraphAddKernelNode(&node, graph, nullptr, 0, &node_parameters);
    return result ? result : instantiate(op.index, graph);
}

static int copy(const Op &op) {
    static std::vector<char> pageable(copied);
    char *const host = pageable.data();
    const bool per_thread = op.how == 'p';
    switch (op.kind) {
    case 'h':
        return (per_thread ? cuMemcpyHtoD_v2_ptds : cuMemcpyHtoD)(memory, host, copied);
    case 'd':
        return (per_thread ? cuMemcpyDtoH_v2_ptds : cuMemcpyDtoH)(host, memory, copied);
    case 'D':
        return (per_thread ? cuMemcpyDtoD_v2_ptds : cuMemcpyDtoD)(memory, memory + MOST_COPIED, copied);
    default:
        return (per_thread ? cuMemsetD32_v2_ptds : cuMemsetD32)(memory, 0, copied / 4);
    }
}

static void CUDA_CB nothing(void *) {}

static int add_dependencies(const Op &op, Stream stream) {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    const CUgraphNode *nodes;
    size_t count;
    int result =
        cuStreamGetCaptureInfo(streams[(char)('0' + op.index)], &status, &id, nullptr, &nodes, nullptr, &count);
    return result ? result
                  : cuStreamUpdateCaptureDependencies(stream.handle, (CUgraphNode *)nodes, nullptr, count,
                                                      (unsigned)op.other);
}

#define ON_STREAM(name, ...) (stream.per_thread ? name##_ptsz : name)(__VA_ARGS__)

static int on_stream(const Op &op) {
    Stream stream = {nullptr, op.how == 't' || op.how == 'M' || op.how == 'p' || op.how == 'Q'};
    if (op.how == 's' || op.how == 't') {
        if (!streams.count(op.slot))
            return NO_SUCH;
        stream.handle = streams[op.slot];
    } else if (op.how != 'l' && op.how != 'p') {
        stream.handle = op.how == 'L' || op.how == 'M' ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
    }
    CUevent event = events.count(op.index) ? events[op.index] : nullptr;
    CUgraph graph;
    int result;
    switch (op.kind) {
    case 'k':
    case 'c':
        return launch(op, stream);
    case 'r':
        return op.other ? ON_STREAM(cuEventRecordWithFlags, event, stream.handle,
                                    op.other == 2 ? CU_EVENT_RECORD_EXTERNAL : CU_EVENT_RECORD_DEFAULT)
                        : ON_STREAM(cuEventRecord, event, stream.handle);
    case 'w':
        return ON_STREAM(cuStreamWaitEvent, stream.handle, event, op.other != 0);
    case 'y':
        return ON_STREAM(cuStreamSynchronize, stream.handle);
    case 'q':
        return ON_STREAM(cuStreamQuery, stream.handle);
    case 'a':
        return (stream.per_thread ? cuMemcpyDtoDAsync_v2_ptsz : cuMemcpyDtoDAsync)(memory, memory + 64, 4,
                                                                                   stream.handle);
    case 'f':
        return ON_STREAM(cuMemsetD32Async, memory, 0, 1, stream.handle);
    case 'H':
        return ON_STREAM(cuLaunchHostFunc, stream.handle, nothing, nullptr);
    case 'b':
        return (stream.per_thread ? cuStreamBeginCapture_v2_ptsz
                                  : cuStreamBeginCapture)(stream.handle, CU_STREAM_CAPTURE_MODE_RELAXED);
    case 'g':
        return graphs.count(op.index) ? ON_STREAM(cuGraphLaunch, graphs[op.index].second, stream.handle) : NO_SUCH;
    case 'u':
        return add_dependencies(op, stream);
    default:
        result = ON_STREAM(cuStreamEndCapture, stream.handle, &graph);
        return result ? result : instantiate(op.index, graph);
    }
}

static int one(const Op &op) {
    float milliseconds;
    int result;
    switch (op.kind) {
    case 'n':
        return cuStreamCreate(&streams[op.slot], (unsigned)op.index);
    case 'x':
        result = cuStreamDestroy(streams[op.slot]);
        streams.erase(op.slot);
        return result;
    case 'e':
        return cuEventCreate(&events[op.index], 0);
    case 'z':
        result = cuEventDestroy(events[op.index]);
        events.erase(op.index);
        return result;
    case 'Y':
        return cuEventSynchronize(events[op.index]);
    case 'Q':
        return cuEventQuery(events[op.index]);
    case 'T':
        return cuEventElapsedTime(&milliseconds, events[op.index], events[op.other]);
    case 'S':
        return cuCtxSynchronize();
    case 'h':
    case 'd':
    case 'D':
    case 'm':
        return copy(op);
    case 'G':
        return destroy_graph(op.index);
    case 'N':
        return by_hand(op);
    default:
        return on_stream(op);
    }
}

// The second thread of a program, which takes its turn like the first.
static struct {
    sem_t wanted, done;
    const Op *op;
    int result;
} other;

static void *other_thread(void *) {
    MUST(cuCtxSetCurrent(context));
    for (;;) {
        sem_wait(&other.wanted);
        other.result = one(*other.op);
        sem_post(&other.done);
    }
}

static int by_thread(const Op &op) {
    static bool started;
    pthread_t made;
    if (op.thread == 0)
        return one(op);
    if (!started) {
        sem_init(&other.wanted, 0, 0);
        sem_init(&other.done, 0, 0);
        started = true;
        pthread_create(&made, nullptr, other_thread, nullptr);
    }
    other.op = &op;
    sem_post(&other.wanted);
    sem_wait(&other.done);
    return other.result;
}

static void destroy_all() {
    while (!graphs.empty())
        destroy_graph(graphs.begin()->first);
    for (auto &[slot, stream] : streams)
        cuStreamDestroy(stream);
    for (auto &[slot, event] : events)
        cuEventDestroy(event);
    streams.clear();
    events.clear();
}

// Each kernel from its first block's start to its last block's end. Kernels of one operation follow each other.
static void print(const std::vector<Op> &ops) {
    static std::vector<Ran> blocks;
    unsigned count;
    MUST(cuMemcpyDtoH(&count, counter, 4));
    MUST(cuMemsetD32(counter, 0, 1));
    blocks.resize(std::min(count, MOST));
    if (count)
        MUST(cuMemcpyDtoH(blocks.data(), ran, blocks.size() * sizeof(Ran)));
    std::sort(blocks.begin(), blocks.end(), [](const Ran &a, const Ran &b) { return a.start < b.start; });
    std::map<unsigned, std::vector<Ran>> by_operation;
    for (const Ran &block : blocks)
        by_operation[block.operation].push_back(block);
    printf("],\"lost\":%u,\"ran\":[", count > MOST ? count - MOST : 0);
    const char *comma = "";
    for (auto &[number, its] : by_operation) {
        const Op &op = ops[number];
        size_t each = kernels[op.kind == 'c' || (op.kind == 'N' && op.other == 1)].blocks;
        for (size_t at = 0; at < its.size(); at += each) {
            Ran whole = its[at];
            for (size_t i = at; i < std::min(at + each, its.size()); i++)
                whole.end = std::max(whole.end, its[i].end);
            printf("%s[%u,%llu,%llu]", comma, number, whole.start - blocks[0].start, whole.end - blocks[0].start);
            comma = ",";
        }
    }
    puts("]}");
    fflush(stdout);
}

static void run(unsigned number, const std::string &text) {
    std::vector<Op> ops;
    for (size_t at = 0; at < text.size();) {
        Op op;
        int length;
        if (sscanf(text.c_str() + at, "%c%c%c,%d,%d,%d%n", &op.kind, &op.how, &op.slot, &op.index, &op.other,
                   &op.thread, &length) != 6)
            break;
        ops.push_back(op);
        at += (size_t)length + 1;
    }
    alarm(10);
    running = text;
    printf("{\"program\":%u,\"repetition\":%u,\"results\":[", number, repetition);
    for (operation = 0; operation < ops.size(); operation++)
        printf("%s%d", operation ? "," : "", by_thread(ops[operation]));
    if (number % 2) {
        destroy_all();
        MUST(cuCtxSynchronize());
    } else {
        MUST(cuCtxSynchronize());
        destroy_all();
    }
    print(ops);
    alarm(0);
}

static void too_long(int) {
    if (write(STDERR_FILENO, running.c_str(), running.size()) < 0)
        _exit(6);
    _exit(7);
}

int main(int argc, char **argv) {
    bool large = argc > 2;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); // or streams that share one follow each other
    begin("windows", argc > 1 ? argv[1] : "question_kernels.cubin");
    CUmodule module = load();
    kernels[0] = {function_of(module, "k"), large ? 1200u : 1u, large ? 512u : 32u, large ? 10000u : 20000u,
                  large ? 20000u : 80000u};
    kernels[1] = {function_of(module, "ncclDevKernel_of_windows"), large ? 8u : 1u, large ? 512u : 32u, 100000, 400000};
    if (const char *bytes = getenv("COPY_BYTES"))
        copied = std::min((size_t)atoll(bytes), MOST_COPIED);
    MUST(cuMemAlloc(&memory, 2 * MOST_COPIED));
    MUST(cuMemAlloc(&counter, 256));
    MUST(cuMemAlloc(&ran, MOST * sizeof(Ran)));
    MUST(cuMemsetD32(counter, 0, 1));
    signal(SIGALRM, too_long);
    static char line[1 << 20];
    for (unsigned number = 0; fgets(line, sizeof line, stdin); number++)
        for (repetition = 0; repetition < REPETITIONS; repetition++)
            run(number, line);
    return 0;
}
