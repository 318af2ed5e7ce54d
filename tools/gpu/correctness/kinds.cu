// Every kind of kernel and launch that a program may make through cudart, and a digest of what each computes: the same bare
// and behind overlap-run. One JSON line.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 correctness/kinds.cu -o kinds
//   nvcc -O2 -std=c++17 -arch=sm_90 -cudart shared correctness/kinds.cu -o kinds_shared
//   ./kinds [KIND ...]         all of ALL without a KIND; `trapped` and `leaves` end the process in their own way
//
// Blocks that wait for others (persistent, resident, cooperative) end the process with status 4 where one waits for
// seconds, instead of hanging. KINDS_SEED: another one computes something else, which a comparison must see.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call) check((call), #call, __LINE__)

static void check(cudaError_t error, const char *call, int line) {
    if (error != cudaSuccess) {
        fprintf(stderr, "kinds.cu:%d: %s: %s\n", line, call, cudaGetErrorName(error));
        exit(error == cudaErrorLaunchFailure || error == cudaErrorIllegalInstruction ? 4 : 1);
    }
}

static const int THREADS = 128, BLOCKS = 132 * 16 * 6; // six waves of small blocks on an H200
static const size_t COUNT = (size_t)BLOCKS * THREADS;
static uint32_t seed = 1;

__device__ __host__ inline uint32_t mixed(uint32_t value) {
    value ^= value >> 16;
    value *= 0x7feb352du;
    value ^= value >> 15;
    value *= 0x846ca68bu;
    return value ^ value >> 16;
}

// ---- kernels ----

__global__ void fill(uint32_t *data, size_t count, uint32_t with) {
    size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        data[at] = mixed((uint32_t)at + with);
}

// Each block turns its part around through dynamic shared memory.
__global__ void turn(const uint32_t *from, uint32_t *to) {
    extern __shared__ uint32_t part[];
    size_t base = (size_t)blockIdx.x * blockDim.x;
    part[threadIdx.x] = from[base + threadIdx.x];
    __syncthreads();
    to[base + threadIdx.x] = mixed(part[blockDim.x - 1 - threadIdx.x] + blockIdx.x);
}

__device__ inline void wait_for(volatile unsigned *counter, unsigned wanted) {
    long long begun = clock64();
    while (*counter < wanted)
        if (clock64() - begun > 6000000000ll) // some seconds: a block is missing
            __trap();
}

// All blocks must be resident: each round reads what another block wrote in the round before.
__global__ void rounds(uint32_t *data, unsigned *arrived, int count) {
    extern __shared__ uint32_t part[];
    size_t size = (size_t)gridDim.x * blockDim.x, at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < count; round++) {
        part[threadIdx.x] = data[(size_t)(round % 2) * size + (at + blockDim.x) % size];
        data[(size_t)((round + 1) % 2) * size + at] = mixed(part[threadIdx.x] + (uint32_t)round);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicAdd(arrived, 1);
            wait_for(arrived, gridDim.x * (unsigned)(round + 1));
        }
        __syncthreads();
    }
}

__global__ void synchronised(uint32_t *data, int count) {
    cg::grid_group grid = cg::this_grid();
    size_t size = grid.size(), at = grid.thread_rank();
    for (int round = 0; round < count; round++) {
        uint32_t seen = data[(size_t)(round % 2) * size + (at + blockDim.x) % size];
        data[(size_t)((round + 1) % 2) * size + at] = mixed(seen + (uint32_t)round);
        grid.sync();
    }
}

// Distributed shared memory: each block reads what all blocks of its cluster hold.
__device__ inline void shared_by_cluster(const uint32_t *from, uint32_t *to, uint32_t *part) {
    cg::cluster_group cluster = cg::this_cluster();
    size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = from[at];
    cluster.sync();
    uint32_t sum = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); rank++)
        sum += mixed(cluster.map_shared_rank(part, rank)[blockDim.x - 1 - threadIdx.x] + rank);
    to[at] = sum;
    cluster.sync();
}

__global__ void __cluster_dims__(4, 1, 1) cluster_of_four(const uint32_t *from, uint32_t *to) {
    extern __shared__ uint32_t part[];
    shared_by_cluster(from, to, part);
}

__global__ void cluster_of_any(const uint32_t *from, uint32_t *to) {
    extern __shared__ uint32_t part[];
    shared_by_cluster(from, to, part);
}

// Programmatic dependent launch: begins before the kernel in front of it has ended, waits for its writes.
__global__ void dependent_turn(const uint32_t *from, uint32_t *to) {
    extern __shared__ uint32_t part[];
    size_t base = (size_t)blockIdx.x * blockDim.x;
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
    part[threadIdx.x] = from[base + threadIdx.x];
    __syncthreads();
    to[base + threadIdx.x] = mixed(part[blockDim.x - 1 - threadIdx.x]);
}

__global__ void trap() {
    __trap();
}

// ---- what the host does ----

struct Two {
    uint32_t *from, *to;
};

static Two made(size_t count = COUNT) {
    Two two;
    CHECK(cudaMalloc(&two.from, count * sizeof(uint32_t)));
    CHECK(cudaMalloc(&two.to, count * sizeof(uint32_t)));
    fill<<<(unsigned)((count + THREADS - 1) / THREADS), THREADS>>>(two.from, count, seed);
    CHECK(cudaGetLastError());
    CHECK(cudaMemset(two.to, 0, count * sizeof(uint32_t)));
    CHECK(cudaDeviceSynchronize()); // streams of others do not wait for the legacy stream
    return two;
}

static std::string digest(const uint32_t *data, size_t count) {
    std::vector<uint32_t> values(count);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(values.data(), data, count * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    uint64_t hash = 14695981039346656037ull;
    for (uint32_t value : values)
        hash = (hash ^ value) * 1099511628211ull;
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return text;
}

static std::string done(Two two, const uint32_t *result, size_t count = COUNT) {
    std::string text = digest(result, count);
    CHECK(cudaFree(two.from));
    CHECK(cudaFree(two.to));
    return text;
}

static const size_t PART = THREADS * sizeof(uint32_t);

static std::string plain() {
    Two two = made();
    for (int i = 0; i < 4; i++) {
        turn<<<BLOCKS, THREADS, PART>>>(two.from, two.to);
        turn<<<BLOCKS, THREADS, PART, cudaStreamPerThread>>>(two.to, two.from);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
    }
    return done(two, two.from);
}

// cudaLaunchKernelExC, with attributes.
template <typename... Arguments>
static void extended(void (*kernel)(Arguments...), int blocks, size_t dynamic, cudaStream_t stream,
                     std::vector<cudaLaunchAttribute> attributes, Arguments... arguments) {
    cudaLaunchConfig_t config = {};
    void *pointers[] = {&arguments...};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = dynamic;
    config.stream = stream;
    config.attrs = attributes.data();
    config.numAttrs = (unsigned)attributes.size();
    CHECK(cudaLaunchKernelExC(&config, (const void *)kernel, pointers));
}

static cudaLaunchAttribute attribute(cudaLaunchAttributeID id, std::function<void(cudaLaunchAttributeValue &)> set) {
    cudaLaunchAttribute one = {};
    one.id = id;
    set(one.val);
    return one;
}

static std::string extended() {
    int least, greatest;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    auto priority = attribute(cudaLaunchAttributePriority, [&](auto &value) { value.priority = greatest; });
    Two two = made();
    extended<const uint32_t *, uint32_t *>(turn, BLOCKS, PART, nullptr, {}, two.from, two.to);
    extended<const uint32_t *, uint32_t *>(turn, BLOCKS, PART, nullptr, {priority}, two.to, two.from);
    return done(two, two.from);
}

static std::string waiting(int blocks) {
    size_t size = (size_t)blocks * THREADS;
    Two two = made(2 * size);
    CHECK(cudaMemset(two.to, 0, sizeof(unsigned)));
    rounds<<<(unsigned)blocks, THREADS, PART>>>(two.from, two.to, 20);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return done(two, two.from, 2 * size);
}

static int multiprocessors() {
    int count;
    CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    return count;
}

// As many blocks as the occupancy functions say are resident. The answer is part of the digest.
static std::string persistent() {
    int resident;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, rounds, THREADS, PART));
    return std::to_string(resident) + " " + waiting(resident * multiprocessors());
}

// One wave, by a number that the program simply knows: nobody was asked.
static std::string resident() {
    return waiting(8 * multiprocessors());
}

static std::string cooperative() {
    int fit, count = 20;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, synchronised, THREADS, 0));
    int blocks = fit * multiprocessors();
    size_t size = (size_t)blocks * THREADS;
    Two two = made(2 * size);
    void *arguments[] = {&two.from, &count};
    CHECK(cudaLaunchCooperativeKernel((const void *)synchronised, dim3((unsigned)blocks), dim3(THREADS), arguments, 0));
    return done(two, two.from, 2 * size);
}

static std::string cluster() {
    Two two = made();
    for (int i = 0; i < 3; i++) {
        cluster_of_four<<<BLOCKS, THREADS, PART>>>(two.from, two.to);
        cluster_of_four<<<BLOCKS, THREADS, PART>>>(two.to, two.from);
    }
    CHECK(cudaGetLastError());
    return done(two, two.from);
}

static std::string cluster_by_attribute() {
    Two two = made();
    std::string fit;
    for (unsigned size : {2u, 8u, 16u}) {
        auto clusters = attribute(cudaLaunchAttributeClusterDimension, [&](auto &value) {
            value.clusterDim.x = size;
            value.clusterDim.y = value.clusterDim.z = 1;
        });
        cudaLaunchConfig_t config = {};
        int count = 0;
        config.gridDim = dim3(BLOCKS);
        config.blockDim = dim3(THREADS);
        config.dynamicSmemBytes = PART;
        config.attrs = &clusters;
        config.numAttrs = 1;
        if (size > 8)
            CHECK(cudaFuncSetAttribute(cluster_of_any, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
        if (size == 8) // the others nobody asked about
            CHECK(cudaOccupancyMaxActiveClusters(&count, cluster_of_any, &config));
        fit += std::to_string(count) + " ";
        extended<const uint32_t *, uint32_t *>(cluster_of_any, BLOCKS, PART, nullptr, {clusters}, two.from, two.to);
        std::swap(two.from, two.to);
    }
    return fit + done(two, two.from);
}

static std::string dependent() {
    auto early = attribute(cudaLaunchAttributeProgrammaticStreamSerialization,
                           [](auto &value) { value.programmaticStreamSerializationAllowed = 1; });
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    Two two = made();
    for (int i = 0; i < 8; i++) {
        extended<const uint32_t *, uint32_t *>(dependent_turn, BLOCKS, PART, stream, {early}, two.from, two.to);
        extended<const uint32_t *, uint32_t *>(dependent_turn, BLOCKS, PART, stream, {early}, two.to, two.from);
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
    return done(two, two.from);
}

// A graph of plain and cluster launches: captured, replayed, a node of it changed, replayed.
static std::string captured() {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t runnable;
    Two two = made(), other = made();
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    turn<<<BLOCKS, THREADS, PART, stream>>>(two.from, two.to);
    cluster_of_four<<<BLOCKS, THREADS, PART, stream>>>(two.to, two.from);
    turn<<<BLOCKS, THREADS, PART, stream>>>(two.from, two.to);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&runnable, graph, 0));
    for (int i = 0; i < 3; i++)
        CHECK(cudaGraphLaunch(runnable, stream));
    size_t count = 3;
    cudaGraphNode_t nodes[3];
    CHECK(cudaGraphGetNodes(graph, nodes, &count));
    cudaKernelNodeParams node;
    CHECK(cudaGraphKernelNodeGetParams(nodes[0], &node));
    void *arguments[] = {&other.from, &two.to};
    node.kernelParams = arguments;
    CHECK(cudaGraphExecKernelNodeSetParams(runnable, nodes[0], &node));
    CHECK(cudaGraphLaunch(runnable, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(runnable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
    return done(other, other.from) + " " + done(two, two.to);
}

// What the driver refuses keeps its code, and what comes after it runs.
static std::string refused() {
    Two two = made();
    std::string codes;
    auto code = [&] { codes += std::string(cudaGetErrorName(cudaGetLastError())) + " "; };
    turn<<<BLOCKS, 2048, PART>>>(two.from, two.to), code();
    turn<<<BLOCKS, THREADS, 300000>>>(two.from, two.to), code();
    turn<<<0, THREADS, PART>>>(two.from, two.to), code();
    turn<<<BLOCKS, THREADS, 60000>>>(two.from, two.to), code(); // nobody opted in
    CHECK(cudaFuncSetAttribute(turn, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
    turn<<<BLOCKS, THREADS, 60000>>>(two.from, two.to), code();
    CHECK(cudaFuncSetAttribute(turn, cudaFuncAttributeMaxDynamicSharedMemorySize, 49152));
    return codes + done(two, two.to);
}

static std::string threads() {
    std::vector<std::string> found(8);
    std::vector<std::thread> running;
    for (size_t i = 0; i < found.size(); i++)
        running.emplace_back([&found, i] {
            cudaStream_t stream;
            CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            Two two = made();
            for (int round = 0; round < 10; round++) {
                turn<<<BLOCKS, THREADS, PART, stream>>>(two.from, two.to);
                turn<<<BLOCKS, THREADS, PART, stream>>>(two.to, two.from);
                CHECK(cudaGetLastError());
            }
            CHECK(cudaStreamSynchronize(stream));
            found[i] = done(two, two.from);
        });
    std::string all;
    for (size_t i = 0; i < found.size(); i++)
        running[i].join(), all += found[i].substr(0, 4);
    return all;
}

static std::string trapped() {
    trap<<<BLOCKS, THREADS>>>();
    cudaError_t error = cudaDeviceSynchronize();
    printf("{\"trapped\": \"%s\"}\n", cudaGetErrorName(error));
    exit(3);
}

static std::string leaves() {
    Two two = made();
    turn<<<BLOCKS, THREADS, PART>>>(two.from, two.to);
    printf("{\"leaves\": \"in the middle of it\"}\n");
    exit(7);
}

int main(int argc, char **argv) {
    const std::map<std::string, std::string (*)()> kinds = {
        {"plain", plain},         {"extended", extended}, {"persistent", persistent},
        {"resident", resident},   {"cluster", cluster},   {"cluster-by-attribute", cluster_by_attribute},
        {"dependent", dependent}, {"captured", captured}, {"cooperative", cooperative},
        {"refused", refused},     {"threads", threads},   {"trapped", trapped},
        {"leaves", leaves}};
    std::vector<std::string> wanted(argv + 1, argv + argc);
    if (const char *given = getenv("KINDS_SEED"))
        seed = (uint32_t)atoi(given);
    for (auto &kind : kinds)
        if (argc == 1 && kind.first != "trapped" && kind.first != "leaves")
            wanted.push_back(kind.first);
    std::string line;
    for (const std::string &name : wanted) {
        auto found = kinds.find(name);
        if (found == kinds.end()) {
            fprintf(stderr, "kinds: %s: no such kind\n", name.c_str());
            return 2;
        }
        line += (line.empty() ? "{\"" : ", \"") + name + "\": \"" + found->second() + "\"";
    }
    printf("%s}\n", line.c_str());
    return 0;
}
