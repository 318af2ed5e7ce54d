// What does a launch cost on a stream of the greatest priority, by how it got it? What do waits and copies behind it?
//
//   nvcc -O2 -std=c++17 -arch=sm_90 raise_cost.cu -o raise_cost && ./raise_cost [REPETITIONS]
//
// Stream A has priority 0, stream B one of WAYS. An operation is, by name: `launch`: a small kernel on B, many in a row;
// `wait`: the same, and the host waits for it; `ping_pong`: a kernel on each, both behind each other by events; `turns`: a
// kernel on each, and every 20 times the host waits for B; `copy`: a kernel, a copy to the host, a wait; `beside`: as
// `wait`, while a long kernel of one block runs on A. One JSON line a way and repetition: microseconds an operation.
#include "gpu.h"

enum Way { PLAIN, CREATED, STREAM_ATTRIBUTE, LAUNCH_ATTRIBUTE, GIVEN_BACK, WAYS };
static const char *const NAMES[WAYS] = {"plain", "created", "stream attribute", "launch attribute",
                                        "created, attribute 0"};
static const int LONG_US = 3000, COPIED = 64;
static int greatest;
static cudaStream_t A, B;
static Way way;

__global__ void small() {}

static void set_priority(cudaStream_t stream, int priority) {
    cudaStreamAttrValue value = {};
    value.priority = priority;
    CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributePriority, &value));
}

static void make_streams() {
    const bool created = way == CREATED || way == GIVEN_BACK;
    CHECK(cudaStreamCreateWithFlags(&A, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithPriority(&B, cudaStreamNonBlocking, created ? greatest : 0));
    if (way == STREAM_ATTRIBUTE || way == GIVEN_BACK)
        set_priority(B, way == GIVEN_BACK ? 0 : greatest);
}

static void launch_b() {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributePriority;
    attribute.val.priority = greatest;
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = 1;
    config.stream = B;
    config.attrs = &attribute;
    config.numAttrs = way == LAUNCH_ATTRIBUTE;
    CHECK(cudaLaunchKernelEx(&config, small));
}

// Until all work is done, or with ALONE until the last operation has returned.
enum { DONE, ALONE };
template <typename Operation> static double each_us(int until, int count, Operation operation) {
    CHECK(cudaDeviceSynchronize());
    const double begun = host_clock();
    for (int i = 0; i < count; i++)
        operation(i);
    if (until == DONE)
        CHECK(cudaDeviceSynchronize());
    return (host_clock() - begun) / 1e3 / count;
}

static void wait_b() {
    launch_b();
    CHECK(cudaStreamSynchronize(B));
}

int main(int argc, char **argv) {
    const int repetitions = argc > 1 ? atoi(argv[1]) : 21;
    cudaEvent_t ready, done;
    Mark *mark;
    void *device, *host;
    CHECK(cudaDeviceGetStreamPriorityRange(nullptr, &greatest));
    CHECK(cudaMalloc(&mark, sizeof *mark));
    CHECK(cudaMalloc(&device, COPIED));
    CHECK(cudaMallocHost(&host, COPIED));
    CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    describe_machine("raise cost");
    for (int repetition = -1; repetition < repetitions; repetition++) // the first one only loads everything
        for (int i = 0; i < WAYS; i++) {
            way = (Way)((i + repetition + 1) % WAYS); // no way always follows the same one
            make_streams();
            const double launch = each_us(DONE, 2000, [](int) { launch_b(); });
            const double wait = each_us(DONE, 300, [](int) { wait_b(); });
            const double ping_pong = each_us(DONE, 500, [&](int) {
                small<<<1, 1, 0, A>>>();
                CHECK(cudaEventRecord(ready, A));
                CHECK(cudaStreamWaitEvent(B, ready, 0));
                launch_b();
                CHECK(cudaEventRecord(done, B));
                CHECK(cudaStreamWaitEvent(A, done, 0));
            });
            const double turns = each_us(DONE, 1000, [](int number) {
                small<<<1, 1, 0, A>>>();
                launch_b();
                if (number % 20 == 19)
                    CHECK(cudaStreamSynchronize(B));
            });
            const double copy = each_us(DONE, 300, [&](int) {
                launch_b();
                CHECK(cudaMemcpyAsync(host, device, COPIED, cudaMemcpyDeviceToHost, B));
                CHECK(cudaStreamSynchronize(B));
            });
            const double beside = each_us(ALONE, 100, [&](int number) {
                if (number == 0)
                    spin<<<1, 1, 0, A>>>(mark, (Nanoseconds)LONG_US * 1000, 0);
                wait_b();
            });
            if (repetition >= 0)
                printf("{\"way\":\"%s\",\"repetition\":%d,\"launch_us\":%.3f,\"wait_us\":%.3f,\"ping_pong_us\":%.3f,"
                       "\"turns_us\":%.3f,\"copy_us\":%.3f,\"beside_us\":%.3f}\n",
                       NAMES[way], repetition, launch, wait, ping_pong, turns, copy, beside);
            CHECK(cudaStreamDestroy(A));
            CHECK(cudaStreamDestroy(B));
        }
    return 0;
}
