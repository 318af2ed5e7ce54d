// The stencil as two ranks of MPI, a GPU each: the planes at the edge go through the host.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 whole/mpi_stencil.cu -o mpi_stencil
//   mpiexec -n 2 ./mpi_stencil N RAISED       RAISED: 1 if the program raises its halo stream
//
// MPI is opened by its name, libmpi.so.12, with the constants of MPICH's mpi.h (the ABI that MPICH, Intel and Cray share),
// so that no header is needed. Rank 0 reads the turns.
#include "jacobi.h"
#include "program.h"

#include <utility>

namespace {

constexpr int MPI_WORLD = 0x44000000, MPI_INT = 0x4c000405, MPI_DOUBLE = 0x4c00080b;
struct {
    int (*Init)(int *, char ***);
    int (*Comm_rank)(int, int *);
    int (*Comm_size)(int, int *);
    int (*Bcast)(void *, int, int, int, int);
    int (*Isend)(const void *, int, int, int, int, int, int *);
    int (*Irecv)(void *, int, int, int, int, int, int *);
    int (*Waitall)(int, int *, void *);
    int (*Barrier)(int);
    int (*Finalize)();
} mpi;

Real *from, *to, *sent, *received; // the latter two: two planes each, pinned
cudaStream_t computing, halo;
cudaEvent_t computed, exchanged;
int rank, points;
size_t plane;

void relax(int first, int end, cudaStream_t stream) {
    const dim3 threads(32, 8, 1), blocks((points + 31) / 32, (points + 7) / 8, end - first);
    jacobi<<<blocks, threads, 0, stream>>>(from, to, points, first, end);
    TRY(cudaGetLastError());
}

void open_mpi() {
    void *const library = opened("libmpi.so.12");
    find(library, "MPI_Init", &mpi.Init);
    find(library, "MPI_Comm_rank", &mpi.Comm_rank);
    find(library, "MPI_Comm_size", &mpi.Comm_size);
    find(library, "MPI_Bcast", &mpi.Bcast);
    find(library, "MPI_Isend", &mpi.Isend);
    find(library, "MPI_Irecv", &mpi.Irecv);
    find(library, "MPI_Waitall", &mpi.Waitall);
    find(library, "MPI_Barrier", &mpi.Barrier);
    find(library, "MPI_Finalize", &mpi.Finalize);
}

// Both planes are exchanged with the other rank, which lies above and below.
void exchange() {
    const size_t bytes = plane * sizeof(Real), top = (points - 1) * plane;
    int requests[4], at = 0;
    TRY(cudaMemcpyAsync(sent, to + plane, bytes, cudaMemcpyDeviceToHost, halo));
    TRY(cudaMemcpyAsync(sent + plane, to + top - plane, bytes, cudaMemcpyDeviceToHost, halo));
    TRY(cudaStreamSynchronize(halo));
    for (const int tag : {0, 1}) {
        TRY(mpi.Irecv(received + tag * plane, (int)plane, MPI_DOUBLE, 1 - rank, tag, MPI_WORLD, &requests[at++]));
        TRY(mpi.Isend(sent + tag * plane, (int)plane, MPI_DOUBLE, 1 - rank, tag, MPI_WORLD, &requests[at++]));
    }
    TRY(mpi.Waitall(at, requests, (void *)1)); // MPI_STATUSES_IGNORE
    TRY(cudaMemcpyAsync(to, received, bytes, cudaMemcpyHostToDevice, halo));
    TRY(cudaMemcpyAsync(to + top, received + plane, bytes, cudaMemcpyHostToDevice, halo));
    TRY(cudaStreamSynchronize(halo)); // `received` is used again
}

} // namespace

void program_step() {
    TRY(cudaStreamWaitEvent(halo, computed, 0));
    relax(1, 2, halo);
    relax(points - 2, points - 1, halo);
    if (part != COMMUNICATION)
        relax(2, points - 2, computing);
    if (part != COMPUTATION)
        exchange();
    after(computing, exchanged, halo);
    TRY(cudaEventRecord(computed, computing));
    std::swap(from, to);
}

void program_wait() {
    TRY(cudaDeviceSynchronize());
    TRY(mpi.Barrier(MPI_WORLD));
}

void program_reset() {
    set_grids(from, to, points, rank);
    program_wait();
}

// Each rank goes on where the one before it ended: as stencil.cu's for the same n.
uint64_t program_digest() {
    uint64_t hash = HASH;
    for (const int turn : {0, 1}) {
        if (turn == rank)
            hash = hashed_planes(hash, from, points);
        TRY(mpi.Bcast(&hash, sizeof hash / sizeof(int), MPI_INT, turn, MPI_WORLD));
    }
    return hash;
}

bool program_is_asked() {
    return rank == 0;
}

void program_share(int (&turn)[3]) {
    TRY(mpi.Bcast(turn, 3, MPI_INT, 0, MPI_WORLD));
    if (turn[1] <= 0) // the end; what follows exchanges, too
        atexit([] { mpi.Finalize(); });
}

int program_open(int count, char **arguments) {
    int ranks = 0;
    points = count == 3 ? atoi(arguments[1]) : 0;
    if (points < 8) {
        fprintf(stderr, "usage: mpi_stencil N RAISED\n");
        return 2;
    }
    plane = (size_t)points * points;
    open_mpi();
    TRY(mpi.Init(&count, &arguments));
    TRY(mpi.Comm_rank(MPI_WORLD, &rank));
    TRY(mpi.Comm_size(MPI_WORLD, &ranks));
    if (ranks != 2) {
        fprintf(stderr, "mpi_stencil: %d ranks instead of 2\n", ranks);
        return 2;
    }
    TRY(cudaSetDevice(rank));
    for (Real **grid : {&from, &to})
        TRY(cudaMalloc(grid, plane * points * sizeof(Real)));
    for (Real **planes : {&sent, &received})
        TRY(cudaMallocHost(planes, 2 * plane * sizeof(Real)));
    computing = new_stream(cudaStreamNonBlocking, false);
    halo = new_stream(cudaStreamNonBlocking, atoi(arguments[2]) != 0);
    for (cudaEvent_t *event : {&computed, &exchanged})
        TRY(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    return 0;
}
