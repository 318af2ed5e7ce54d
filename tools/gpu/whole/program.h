// What the compiled programs of this folder share: errors, NCCL, turns, and what each of them gives. A program is one
// process that uses two GPUs, or the only one, which is then its own neighbour.
//
// A program defines the functions declared under "of each program", once. Built as it is, it answers turns: each line of
// stdin is ["PART", batches, iterations], and its answer has the milliseconds of an iteration by batch (host's clock,
// from an idle GPU to an idle GPU). PART: "whole", "computation" (nothing is exchanged) or "communication" (nothing is
// computed but what is sent). The last answer is a digest of the results of DIGESTED whole iterations from the start.
#pragma once
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const int code = (int)(call);                                                                                  \
        if (code) {                                                                                                    \
            fprintf(stderr, "%s: %d\n", #call, code);                                                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum Part { WHOLE, COMPUTATION, COMMUNICATION };
constexpr int WARM = 10, DIGESTED = 50;
static Part part = WHOLE; // of the iterations that follow

// ---- of each program ----

int program_open(int count, char **arguments); // 2: the arguments are wrong, and it said so
void program_step();                           // one iteration of `part`
void program_reset();                          // back to the first values
void program_wait();                           // of all programs: until the GPUs are idle
uint64_t program_digest();                     // of the results

// ---- helpers ----

[[maybe_unused]] static void *opened(const char *path) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return library;
}

template <typename Function> void find(void *library, const char *name, Function *function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    if (!*function) {
        fprintf(stderr, "%s: no such function\n", name);
        exit(1);
    }
}

[[maybe_unused]] static void after(cudaStream_t stream, cudaEvent_t event, cudaStream_t before) {
    TRY(cudaEventRecord(event, before));
    TRY(cudaStreamWaitEvent(stream, event, 0));
}

// As unmodified programs create them, or as a careful programmer would.
[[maybe_unused]] static cudaStream_t new_stream(unsigned flags, bool raised) {
    cudaStream_t stream;
    int least = 0, greatest = 0;
    TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    if (raised)
        TRY(cudaStreamCreateWithPriority(&stream, flags, greatest));
    else
        TRY(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
}

// FNV-1a over the bits of what lies on the GPU.
[[maybe_unused]] static uint64_t hashed(uint64_t hash, const void *device, size_t bytes) {
    std::vector<uint32_t> words(bytes / sizeof(uint32_t));
    TRY(cudaMemcpy(words.data(), device, bytes, cudaMemcpyDeviceToHost));
    for (const uint32_t word : words)
        hash = (hash ^ word) * 1099511628211u;
    return hash;
}
constexpr uint64_t HASH = 14695981039346656037u;

// ---- NCCL, whose header is not on every machine: declarations as in nccl.h ----

constexpr int MOST = 2;                                      // GPUs
constexpr int NCCL_FLOAT = 7, NCCL_DOUBLE = 8, NCCL_SUM = 0; // ncclFloat32, ncclFloat64, ncclSum

typedef struct ncclComm *ncclComm_t;
static struct {
    int (*CommInitAll)(ncclComm_t *communicators, int count, const int *devices);
    int (*GroupStart)();
    int (*GroupEnd)();
    int (*Send)(const void *from, size_t count, int type, int peer, ncclComm_t communicator, cudaStream_t stream);
    int (*Recv)(void *to, size_t count, int type, int peer, ncclComm_t communicator, cudaStream_t stream);
    int (*AllReduce)(const void *from, void *to, size_t count, int type, int operation, ncclComm_t communicator,
                     cudaStream_t stream);
} nccl;

static int gpus_used() {
    static int count;
    if (!count) {
        TRY(cudaGetDeviceCount(&count));
        count = count < MOST ? count : MOST;
    }
    return count;
}

static int neighbour(int device) {
    return (device + 1) % gpus_used();
}

// One communicator for each GPU.
static void open_nccl(const char *path, ncclComm_t (&communicators)[MOST]) {
    static void *library;
    const int devices[MOST] = {0, 1};
    if (!library) {
        library = opened(path);
        find(library, "ncclCommInitAll", &nccl.CommInitAll);
        find(library, "ncclGroupStart", &nccl.GroupStart);
        find(library, "ncclGroupEnd", &nccl.GroupEnd);
        find(library, "ncclSend", &nccl.Send);
        find(library, "ncclRecv", &nccl.Recv);
        find(library, "ncclAllReduce", &nccl.AllReduce);
    }
    TRY(nccl.CommInitAll(communicators, gpus_used(), devices));
}

void program_wait() {
    for (int device = 0; device < gpus_used(); device++) {
        TRY(cudaSetDevice(device));
        TRY(cudaDeviceSynchronize());
    }
}

// ---- turns ----

static double milliseconds(int iterations) {
    program_wait();
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < iterations; i++)
        program_step();
    program_wait();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
    return took.count() / iterations;
}

static bool read_turn(int *batches, int *iterations) {
    const char *const names[] = {"whole", "computation", "communication"};
    char line[256], name[16];
    if (!fgets(line, sizeof line, stdin) || sscanf(line, "[\"%15[a-z]\", %d, %d]", name, batches, iterations) != 3 ||
        *batches <= 0)
        return false;
    for (int one = WHOLE; one <= COMMUNICATION; one++)
        if (strcmp(name, names[one]) == 0)
            part = (Part)one;
    return true;
}

static void answer_turns() {
    int batches, iterations;
    while (read_turn(&batches, &iterations)) {
        for (int i = 0; i < WARM; i++)
            program_step();
        printf("answer {\"ms\": [");
        for (int batch = 0; batch < batches; batch++)
            printf("%s%.6f", batch ? ", " : "", milliseconds(iterations));
        printf("]}\n");
        fflush(stdout);
        if (part != WHOLE) { // it leaves values that no whole iteration would meet
            part = WHOLE;
            program_reset();
        }
    }
}

int main(int count, char **arguments) {
    int runtime = 0, driver = 0;
    const int status = program_open(count, arguments);
    if (status)
        return status;
    program_reset();
    TRY(cudaRuntimeGetVersion(&runtime));
    TRY(cudaDriverGetVersion(&driver));
    program_wait();
    printf("answer {\"runtime\": %d, \"driver\": %d}\n", runtime, driver);
    fflush(stdout);
    answer_turns();
    part = WHOLE;
    program_reset();
    for (int i = 0; i < DIGESTED; i++)
        program_step();
    program_wait();
    const uint64_t digest = program_digest();
    printf("answer {\"digest\": \"%016llx\"}\n", (unsigned long long)digest);
    fflush(stdout);
    return 0;
}
