// Programs of one process that use NCCL and two GPUs, or the only one, which is then its own neighbour. NCCL's header is
// not on every machine: declarations as in nccl.h.
#pragma once
#include "program.h"

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

bool program_is_asked() {
    return true;
}

void program_share(int (&)[3]) {}
