// What does a call cost on a stream of raised priority, by the way in which it was raised?
//
//   nvcc -O2 -std=c++17 -arch=sm_90 raise_cost.cu -o raise_cost
//   ./raise_cost [REPETITIONS]
//
// Prints one line a way: microseconds a call, the median of the repetitions, of launches in a burst, of a launch and a wait
// of the host, of an exchange of events with a plain stream, and of a launch, a small copy and a wait. The ways: a plain
// stream; created at the greatest priority; raised by its attribute; each launch raised by an attribute of its own; created
// at the greatest priority and given priority 0 by its attribute. Each way is measured twice, in turns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        const cudaError_t error = (call);                                                                              \
        if (error) {                                                                                                   \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                                        \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

enum Way { PLAIN, CREATED, ATTRIBUTE, LAUNCH, LOWERED, WAYS };
static const char *const names[] = {"plain", "created", "attribute", "launch-attribute", "created-lowered"};
static int greatest;

__global__ void nothing() {}

static void set_priority(cudaStream_t stream, int priority) {
    cudaStreamAttrValue value{};
    value.priority = priority;
    CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributePriority, &value));
}

static cudaStream_t make(Way way) {
    cudaStream_t stream;
    const bool created = way == CREATED || way == LOWERED;
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, created ? greatest : 0));
    if (way == ATTRIBUTE)
        set_priority(stream, greatest);
    if (way == LOWERED)
        set_priority(stream, 0);
    return stream;
}

static void launch(cudaStream_t stream, Way way) {
    cudaLaunchAttribute raised{};
    raised.id = cudaLaunchAttributePriority;
    raised.val.priority = greatest;
    cudaLaunchConfig_t config{};
    config.gridDim = 1;
    config.blockDim = 32;
    config.stream = stream;
    config.attrs = &raised;
    config.numAttrs = way == LAUNCH ? 1 : 0;
    CHECK(cudaLaunchKernelEx(&config, nothing));
}

template <class Calls> static double each(int repetitions, int calls, Calls make_calls) {
    std::vector<double> taken;
    for (int r = 0; r < repetitions; r++) {
        CHECK(cudaDeviceSynchronize());
        const auto begun = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; i++)
            make_calls();
        CHECK(cudaDeviceSynchronize());
        taken.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count() / calls);
    }
    std::sort(taken.begin(), taken.end());
    return taken[taken.size() / 2];
}

int main(int count, char **words) {
    const int repetitions = count > 1 ? std::atoi(words[1]) : 21;
    int least, *device, *host;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaMalloc(&device, 64));
    CHECK(cudaMallocHost(&host, 64));
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < WAYS; i++) {
            const Way way = static_cast<Way>(i);
            const cudaStream_t raised = make(way), plain = make(PLAIN);
            cudaEvent_t there, back;
            CHECK(cudaEventCreateWithFlags(&there, cudaEventDisableTiming));
            CHECK(cudaEventCreateWithFlags(&back, cudaEventDisableTiming));
            const double burst = each(repetitions, 2000, [&] { launch(raised, way); });
            const double waited = each(repetitions, 300, [&] {
                launch(raised, way);
                CHECK(cudaStreamSynchronize(raised));
            });
            const double exchanged = each(repetitions, 500, [&] {
                launch(plain, PLAIN);
                CHECK(cudaEventRecord(there, plain));
                CHECK(cudaStreamWaitEvent(raised, there, 0));
                launch(raised, way);
                CHECK(cudaEventRecord(back, raised));
                CHECK(cudaStreamWaitEvent(plain, back, 0));
            });
            const double copied = each(repetitions, 300, [&] {
                launch(raised, way);
                CHECK(cudaMemcpyAsync(host, device, 64, cudaMemcpyDeviceToHost, raised));
                CHECK(cudaStreamSynchronize(raised));
            });
            std::printf("{\"way\": \"%s\", \"turn\": %d, \"burst_us\": %.2f, \"wait_us\": %.2f, \"exchange_us\": %.2f, "
                        "\"copy_us\": %.2f}\n",
                        names[way], turn, burst, waited, exchanged, copied);
            CHECK(cudaEventDestroy(there));
            CHECK(cudaEventDestroy(back));
            CHECK(cudaStreamDestroy(raised));
            CHECK(cudaStreamDestroy(plain));
        }
    return 0;
}
