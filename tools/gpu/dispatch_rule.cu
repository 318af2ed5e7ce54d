// Which rule does the block scheduler follow while a high-priority block fits nowhere?
//   hold      no lower-priority block starts anywhere until the high-priority one is placed
//   drain     lower-priority starts stop on some multiprocessors only
//   backfill  lower-priority blocks keep taking freed slots; the high-priority one waits for the grid's end
//
// Low: 40 waves of blocks, `k` on each multiprocessor by their shared memory, 200 us each, give or take a half. High:
// launched 3 ms later, behind a marker on the same stream at the same priority: one thread that says, by the GPU's own
// clock, when the high kernel could have started. Counted are the blocks of the low kernel that ended and that started
// between the marker and the first block of the high one.
//
//   nvcc -O2 -arch=sm_90 dispatch_rule.cu -o dispatch_rule && ./dispatch_rule [REPETITIONS [TRACE.csv [VARIANT]]]
//
// One JSON line a run; the trace has every low block around the window, of the first repetition of each variant. VARIANT: only
// those whose name has this in it.
#include "gpu.h"

#include <cstring>
#include <set>
#include <string>
#include <thread>

static const int WAVES = 40, MAXIMUM_HIGH = 1024;
static const double BLOCK_US = 200;

enum class Raise {
    No,            // both at the same priority
    Stream,        // a stream created with the greatest priority
    Launch,        // the launch attribute, on a stream of the least priority
    LaunchByOne,   // the launch attribute, one above the least priority
    Lowered,       // the launch attribute, the least priority, on a stream created with the greatest
    TooGreat,      // the launch attribute, three beyond the greatest priority
    LegacyLaunch,  // the launch attribute, on the legacy default stream
    LowThenHigh,   // the attribute twice: the least priority, then the greatest
    HighThenLow,   // the attribute twice, the other way round
    StreamSetIdle, // cudaStreamSetAttribute on a stream without work
    StreamSetBusy, // cudaStreamSetAttribute on a stream with work
    LegacySet,     // cudaStreamSetAttribute on the legacy default stream
    Graph,         // the launch attribute, captured into a graph
    GraphByNode,   // likewise, and the graph is told to look at the priorities of its nodes
};

struct Variant {
    const char *name;
    Raise raise;
    int blocks, cluster, threads;
    double need; // of a multiprocessor's shared memory
    int k, carveout;
    int low_cluster;
    bool by_threads;      // low: k blocks on each multiprocessor by their threads, without shared memory
    size_t low_bytes = 0; // low: so much instead; high has no preference for a carve-out then
};

static const Variant VARIANTS[] = {
    {"equal priority", Raise::No, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"stream priority", Raise::Stream, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"launch priority", Raise::Launch, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"launch priority, legacy stream", Raise::LegacyLaunch, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"launch priority twice, low then high", Raise::LowThenHigh, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"launch priority twice, high then low", Raise::HighThenLow, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"stream priority set while idle", Raise::StreamSetIdle, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"stream priority set while busy", Raise::StreamSetBusy, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"legacy stream, priority set", Raise::LegacySet, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"graph, captured priority", Raise::Graph, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"graph, captured priority, node priorities used", Raise::GraphByNode, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"stream priority, fits at once", Raise::Stream, 1, 1, 128, 0.0, 4, 100, 1, false},
    {"stream priority, a quarter", Raise::Stream, 1, 1, 128, 0.25, 4, 100, 1, false},
    {"stream priority, half", Raise::Stream, 1, 1, 128, 0.5, 4, 100, 1, false},
    {"stream priority, k 1", Raise::Stream, 1, 1, 128, 1.0, 1, 100, 1, false},
    {"stream priority, k 2", Raise::Stream, 1, 1, 128, 1.0, 2, 100, 1, false},
    {"stream priority, k 8", Raise::Stream, 1, 1, 128, 1.0, 8, 100, 1, false},
    {"stream priority, 24 blocks", Raise::Stream, 24, 1, 128, 1.0, 4, 100, 1, false},
    {"stream priority, 24 blocks, k 1", Raise::Stream, 24, 1, 128, 1.0, 1, 100, 1, false},
    {"stream priority, 24 blocks, clusters of 4", Raise::Stream, 24, 4, 128, 1.0, 4, 100, 1, false},
    {"stream priority, 24 blocks, clusters of 4, k 1", Raise::Stream, 24, 4, 128, 1.0, 1, 100, 1, false},
    {"launch priority, 24 blocks, clusters of 4", Raise::Launch, 24, 4, 128, 1.0, 4, 100, 1, false},
    {"stream priority, 64 blocks like NCCL's", Raise::Stream, 64, 1, 640, 0.45, 4, 100, 1, false},
    {"stream priority, 64 blocks like NCCL's, clusters of 4", Raise::Stream, 64, 4, 640, 0.45, 4, 100, 1, false},
    {"stream priority, 64 blocks like NCCL's, k 1", Raise::Stream, 64, 1, 640, 0.45, 1, 100, 1, false},
    {"stream priority, 64 blocks like NCCL's, k 2", Raise::Stream, 64, 1, 640, 0.45, 2, 100, 1, false},
    {"stream priority, carve-out left to the driver", Raise::Stream, 1, 1, 128, 1.0, 4, -1, 1, false},
    {"stream priority, low in clusters of 2, k 1", Raise::Stream, 24, 1, 128, 1.0, 1, 100, 2, false},
    {"stream priority, low without shared memory", Raise::Stream, 1, 1, 128, 1.0, 8, 100, 1, true},
    {"stream priority, low without shared memory, carve-out left to the driver", Raise::Stream, 1, 1, 128, 1.0, 8, -1,
     1, true},
    {"stream priority, low without shared memory, a quarter, carve-out left to the driver", Raise::Stream, 1, 1, 128,
     0.25, 8, -1, 1, true},
    {"stream priority, low without shared memory, a quarter", Raise::Stream, 1, 1, 128, 0.25, 8, 100, 1, true},
    {"launch priority greater by one", Raise::LaunchByOne, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"launch priority least, stream priority greatest", Raise::Lowered, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"launch priority beyond the greatest", Raise::TooGreat, 1, 1, 128, 1.0, 4, 100, 1, false},
    {"shaped to 1, 64 blocks like NCCL's, carve-out left to the driver", Raise::Stream, 64, 1, 640, 0.45, 1, -1, 1,
     false, 115713},
    {"shaped to 1, 64 blocks like NCCL's, largest carve-out", Raise::Stream, 64, 1, 640, 0.45, 1, 100, 1, false,
     115713},
    {"shaped to 1, 64 blocks like NCCL's, clusters of 4, largest carve-out", Raise::Stream, 64, 4, 640, 0.45, 1, 100, 1,
     false, 115713},
    {"stream priority, 200 blocks", Raise::Stream, 200, 1, 128, 1.0, 4, 100, 1, false},
};

static Mark *low_marks, *high_marks;
static Nanoseconds *seen, *marker_time;
static cudaStream_t low, plain, high;
static int least, greatest;
static double offset;

static void configure(cudaLaunchConfig_t *config, cudaLaunchAttribute *attributes, const Variant &variant,
                      cudaStream_t stream, int cluster) {
    int count = 0;
    auto add_priority = [&](int value) {
        attributes[count].id = cudaLaunchAttributePriority;
        attributes[count++].val.priority = value;
    };
    if (cluster > 1) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count].val.clusterDim.x = (unsigned)cluster;
        attributes[count].val.clusterDim.y = attributes[count].val.clusterDim.z = 1;
        count++;
    }
    if (variant.raise == Raise::LowThenHigh)
        add_priority(least);
    if (variant.raise == Raise::Launch || variant.raise == Raise::LegacyLaunch || variant.raise == Raise::LowThenHigh ||
        variant.raise == Raise::HighThenLow || variant.raise == Raise::Graph || variant.raise == Raise::GraphByNode)
        add_priority(greatest);
    if (variant.raise == Raise::HighThenLow || variant.raise == Raise::Lowered)
        add_priority(least);
    if (variant.raise == Raise::LaunchByOne)
        add_priority(least - 1);
    if (variant.raise == Raise::TooGreat)
        add_priority(greatest - 3);
    config->stream = stream;
    config->attrs = attributes;
    config->numAttrs = (unsigned)count;
}

// The stream of the high kernel; *own: made for this run. *error: what setting its priority answered.
static cudaStream_t stream_for(const Variant &variant, bool *own, int *error) {
    cudaStream_t stream = plain;
    *own = false;
    *error = 0;
    if (variant.raise == Raise::Stream || variant.raise == Raise::Lowered)
        stream = high;
    if (variant.raise == Raise::LegacyLaunch || variant.raise == Raise::LegacySet)
        stream = cudaStreamLegacy;
    if (variant.raise == Raise::StreamSetIdle || variant.raise == Raise::StreamSetBusy) {
        CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, least));
        *own = true;
        if (variant.raise == Raise::StreamSetBusy) { // with a kernel that starts at once, and lasts for a millisecond
            cudaLaunchAttribute attribute = {};
            attribute.id = cudaLaunchAttributePriority;
            attribute.val.priority = greatest;
            cudaLaunchConfig_t config = {};
            config.gridDim = config.blockDim = dim3(1);
            config.stream = stream;
            config.attrs = &attribute;
            config.numAttrs = 1;
            CHECK(cudaLaunchKernelEx(&config, spin, high_marks + MAXIMUM_HIGH, (Nanoseconds)1000000, 0));
        }
    }
    if (variant.raise == Raise::StreamSetIdle || variant.raise == Raise::StreamSetBusy ||
        variant.raise == Raise::LegacySet) {
        cudaLaunchAttributeValue value = {};
        value.priority = greatest;
        *error = (int)cudaStreamSetAttribute(stream, cudaLaunchAttributePriority, &value);
        cudaGetLastError();
    }
    return stream;
}

static void launch_captured(cudaStream_t stream, unsigned long long flags) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, flags));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaGraphExecDestroy(executable)); // freed when it has run
    CHECK(cudaGraphDestroy(graph));
}

struct Window {
    int ends = 0, starts = 0, starts_late = 0, starts_on_its_sm = 0;
    std::set<unsigned> ended, refilled;
    double last_start = -1;
};

// Ends and starts of low blocks in [from, to); late: from 10 us behind `from` on.
static Window look(const std::vector<Mark> &marks, double from, double to, unsigned sm) {
    Window window;
    for (const Mark &mark : marks) {
        if ((double)mark.end >= from && (double)mark.end < to) {
            window.ends++;
            window.ended.insert(mark.sm);
        }
        if ((double)mark.start >= from && (double)mark.start < to) {
            window.starts++;
            window.starts_late += (double)mark.start >= from + 10e3;
            window.starts_on_its_sm += mark.sm == sm;
            window.refilled.insert(mark.sm);
            window.last_start = std::max(window.last_start, ((double)mark.start - from) / 1e3);
        }
    }
    return window;
}

// How long a freed place stays empty before the marker: from the end of a block to the next start on its multiprocessor.
static double refill_ns(const std::vector<Mark> &marks, double marker) {
    std::vector<std::vector<Nanoseconds>> starts(1024);
    std::vector<double> gaps;
    for (const Mark &mark : marks)
        starts[mark.sm].push_back(mark.start);
    for (auto &list : starts)
        std::sort(list.begin(), list.end());
    for (const Mark &mark : marks) {
        if ((double)mark.end < marker - 1e6 || (double)mark.end > marker - 1e5)
            continue;
        auto next = std::lower_bound(starts[mark.sm].begin(), starts[mark.sm].end(), mark.end);
        if (next != starts[mark.sm].end())
            gaps.push_back((double)(*next - mark.end));
    }
    return median(gaps);
}

static void write_trace(FILE *file, const Variant &variant, const std::vector<Mark> &lows,
                        const std::vector<Mark> &highs, double marker, double first) {
    for (const Mark &mark : highs)
        fprintf(file, "\"%s\",high,%u,%.2f,%.2f\n", variant.name, mark.sm, ((double)mark.start - marker) / 1e3,
                ((double)mark.end - marker) / 1e3);
    for (const Mark &mark : lows)
        if ((double)mark.end > marker - 20e3 && (double)mark.start < first + 60e3)
            fprintf(file, "\"%s\",low,%u,%.2f,%.2f\n", variant.name, mark.sm, ((double)mark.start - marker) / 1e3,
                    ((double)mark.end - marker) / 1e3);
}

static void run(const Variant &variant, int repetition, const cudaDeviceProp &device, FILE *trace) {
    int sms = device.multiProcessorCount;
    size_t whole = device.sharedMemPerMultiprocessor, optin = device.sharedMemPerBlockOptin;
    size_t low_bytes = variant.by_threads ? 0 : std::min((whole / (size_t)variant.k - 1024) / 128 * 128, optin);
    size_t high_bytes = variant.need == 1.0   ? optin
                        : variant.need == 0.0 ? 0
                                              : (size_t)((double)whole * variant.need) - 2048;
    if (variant.low_bytes)
        low_bytes = variant.low_bytes;
    int grid = WAVES * variant.k * sms;
    std::vector<Mark> lows((size_t)grid), highs((size_t)variant.blocks);
    CHECK(cudaFuncSetAttribute(spin, cudaFuncAttributePreferredSharedMemoryCarveout, variant.carveout));
    CHECK(cudaFuncSetAttribute(stamp, cudaFuncAttributePreferredSharedMemoryCarveout, variant.carveout));
    CHECK(cudaMemset(low_marks, 0, sizeof(Mark) * (size_t)grid));
    CHECK(cudaMemset(high_marks, 0, sizeof(Mark) * MAXIMUM_HIGH));
    CHECK(cudaMemset(marker_time, 0, sizeof *marker_time));
    CHECK(cudaDeviceSynchronize());

    cudaLaunchAttribute attributes[4], low_attributes[4];
    cudaLaunchConfig_t config = {}, low_config = {};
    Variant unraised = variant;
    unraised.raise = Raise::No;
    low_config.gridDim = dim3((unsigned)grid);
    low_config.blockDim = dim3(variant.by_threads ? (unsigned)(device.maxThreadsPerMultiProcessor / variant.k) : 128u);
    low_config.dynamicSmemBytes = low_bytes;
    configure(&low_config, low_attributes, unraised, low, variant.low_cluster);
    CHECK(cudaLaunchKernelEx(&low_config, spin, low_marks, (Nanoseconds)(BLOCK_US * 1e3), 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (variant.low_bytes)
        CHECK(cudaFuncSetAttribute(spin, cudaFuncAttributePreferredSharedMemoryCarveout, -1));
    bool own;
    int error;
    cudaStream_t stream = stream_for(variant, &own, &error);
    bool graph = variant.raise == Raise::Graph || variant.raise == Raise::GraphByNode;
    if (graph)
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
    configure(&config, attributes, variant, stream, 1);
    CHECK(cudaLaunchKernelEx(&config, stamp, (volatile Nanoseconds *)marker_time));
    config.gridDim = dim3((unsigned)variant.blocks);
    config.blockDim = dim3((unsigned)variant.threads);
    config.dynamicSmemBytes = high_bytes;
    configure(&config, attributes, variant, stream, variant.cluster);
    CHECK(cudaLaunchKernelEx(&config, spin, high_marks, (Nanoseconds)50000, 0));
    if (graph)
        launch_captured(stream, variant.raise == Raise::GraphByNode ? cudaGraphInstantiateFlagUseNodePriority : 0);
    double arrival = host_clock() + offset;
    CHECK(cudaDeviceSynchronize());
    int priority = 99;
    cudaStreamGetPriority(stream, &priority);

    Nanoseconds marker;
    CHECK(cudaMemcpy(lows.data(), low_marks, sizeof(Mark) * lows.size(), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(highs.data(), high_marks, sizeof(Mark) * highs.size(), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&marker, marker_time, sizeof marker, cudaMemcpyDeviceToHost));
    if (own)
        CHECK(cudaStreamDestroy(stream));
    double first = 1e30, last = 0, low_end = 0, low_start = 1e30;
    unsigned sm = 0;
    for (const Mark &mark : highs) {
        if ((double)mark.start < first) {
            first = (double)mark.start;
            sm = mark.sm;
        }
        last = std::max(last, (double)mark.start);
    }
    for (const Mark &mark : lows) {
        low_end = std::max(low_end, (double)mark.end);
        low_start = std::min(low_start, (double)mark.start);
    }
    double from = (double)marker;
    Window before = look(lows, from - 100e3, from, sm), during = look(lows, from, first, sm);
    Window spreading = look(lows, first, last, sm);
    printf("{\"variant\":\"%s\",\"repetition\":%d,\"marker_after_launch_us\":%.1f,\"wait_first_us\":%.1f,"
           "\"wait_last_us\":%.1f,\"wait_first_after_launch_us\":%.1f,\"low_total_us\":%.1f,"
           "\"low_left_at_marker_us\":%.1f,\"refill_ns\":%.0f,"
           "\"before_100us\":{\"ends\":%d,\"starts\":%d},"
           "\"while_waiting\":{\"ends\":%d,\"starts\":%d,\"starts_after_10us\":%d,\"last_start_us\":%.1f,"
           "\"sms_with_end\":%zu,\"sms_refilled\":%zu,\"starts_on_its_sm\":%d},"
           "\"from_first_to_last\":{\"ends\":%d,\"starts\":%d,\"sms_with_end\":%zu,\"sms_refilled\":%zu},"
           "\"set_attribute_error\":%d,\"stream_priority\":%d}\n",
           variant.name, repetition, (from - arrival) / 1e3, (first - from) / 1e3, (last - from) / 1e3,
           (first - arrival) / 1e3, (low_end - low_start) / 1e3, (low_end - from) / 1e3, refill_ns(lows, from),
           before.ends, before.starts, during.ends, during.starts, during.starts_late, during.last_start,
           during.ended.size(), during.refilled.size(), during.starts_on_its_sm, spreading.ends, spreading.starts,
           spreading.ended.size(), spreading.refilled.size(), error, priority);
    fflush(stdout);
    if (trace && repetition == 0)
        write_trace(trace, variant, lows, highs, from, first);
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? atoi(argv[1]) : 10;
    FILE *trace = argc > 2 ? fopen(argv[2], "w") : nullptr;
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&plain, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
    CHECK(cudaMalloc(&low_marks, sizeof(Mark) * (size_t)(WAVES * 8 * device.multiProcessorCount)));
    CHECK(cudaMalloc(&high_marks, sizeof(Mark) * (MAXIMUM_HIGH + 1)));
    CHECK(cudaMalloc(&marker_time, sizeof *marker_time));
    CHECK(cudaHostAlloc(&seen, sizeof *seen, cudaHostAllocMapped));
    CHECK(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)device.sharedMemPerBlockOptin));
    describe_machine("dispatch rule");
    if (trace)
        fprintf(trace, "variant,kernel,sm,start_us,end_us\n");
    for (int repetition = 0; repetition < repetitions; repetition++) {
        offset = clock_offset(seen, high);
        for (const Variant &variant : VARIANTS)
            if (argc < 4 || strstr(variant.name, argv[3]))
                run(variant, repetition, device, trace);
    }
    if (trace)
        fclose(trace);
    return 0;
}
