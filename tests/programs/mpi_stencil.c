/* A stencil over a ring of MPI ranks that exchanges its boundary planes through memory of the host, as codes do whose
 * MPI knows nothing of GPUs: mpi_stencil ITERATIONS. It gives no stream a priority. Rank 0 prints the checksum of each
 * rank, and whether the program reads back another priority of the halo stream in any of them.
 *
 * The simulated GPU copies, but it runs no kernel: what a rank has received becomes its boundary by a copy, so that
 * planes wander around the ring.
 */
#include <mpi.h>

#define WAY_LINKED
#include "driver.h"

extern int cuMemAllocHost_v2(void **, size_t);

enum {
    POINTS = 64 * 64,
    NON_BLOCKING = 1,
    NO_TIMING = 2,
    BOUNDARY_BLOCKS = 128,
    INTERIOR_BLOCKS = 4096,
    MOST_RANKS = 64
};
static const size_t plane_bytes = POINTS * sizeof(double);

/* The outer planes on the GPU, two of them received from the neighbours; sent and received ones on the host. */
enum { GHOST_LOW, FIRST, LAST, GHOST_HIGH, PLANES };
static uint64_t planes[PLANES];
static double *sent[2], *received[2];
static void *compute, *halo, *computed, *exchanged, *interior, *boundary;
static int rank, ranks;

static void good(int result, const char *what) {
    if (result == 0)
        return;
    fprintf(stderr, "mpi_stencil: rank %d: %s: %d\n", rank, what, result);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void exchange(void) {
    const int low = (rank + ranks - 1) % ranks, high = (rank + 1) % ranks;
    MPI_Sendrecv(sent[0], POINTS, MPI_DOUBLE, low, 0, received[1], POINTS, MPI_DOUBLE, high, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(sent[1], POINTS, MPI_DOUBLE, high, 1, received[0], POINTS, MPI_DOUBLE, low, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void iterate(void) {
    good(CU(cuEventRecord)(computed, compute), "cuEventRecord");
    good(CU(cuStreamWaitEvent)(halo, computed, 0), "cuStreamWaitEvent");
    for (int i = 0; i < 2; i++) {
        const uint64_t edge = planes[i ? LAST : FIRST];
        good(launch_kernel(boundary, BOUNDARY_BLOCKS, 256, halo), "boundary");
        good(CU(cuMemcpyDtoDAsync_v2)(edge, planes[i ? GHOST_LOW : GHOST_HIGH], plane_bytes, halo), "cuMemcpyDtoD");
        good(cuMemcpyDtoHAsync_v2(sent[i], edge, plane_bytes, halo), "cuMemcpyDtoH");
    }
    good(launch_kernel(interior, INTERIOR_BLOCKS, 256, compute), "interior");
    good(CU(cuStreamSynchronize)(halo), "cuStreamSynchronize");
    exchange();
    for (int i = 0; i < 2; i++)
        good(cuMemcpyHtoDAsync_v2(planes[i ? GHOST_HIGH : GHOST_LOW], received[i], plane_bytes, halo), "cuMemcpyHtoD");
    good(CU(cuEventRecord)(exchanged, halo), "cuEventRecord");
    good(CU(cuStreamWaitEvent)(compute, exchanged, 0), "cuStreamWaitEvent");
}

static void open_all(void) {
    driver_start();
    interior = kernel_of("stencil_interior"), boundary = kernel_of("stencil_boundary");
    good(CU(cuStreamCreate)(&compute, NON_BLOCKING), "cuStreamCreate");
    good(CU(cuStreamCreate)(&halo, NON_BLOCKING), "cuStreamCreate");
    good(CU(cuEventCreate)(&computed, NO_TIMING), "cuEventCreate");
    good(CU(cuEventCreate)(&exchanged, NO_TIMING), "cuEventCreate");
    for (int i = 0; i < 2; i++) {
        good(cuMemAllocHost_v2((void **)&sent[i], plane_bytes), "cuMemAllocHost");
        good(cuMemAllocHost_v2((void **)&received[i], plane_bytes), "cuMemAllocHost");
    }
    for (int plane = 0; plane < PLANES; plane++) {
        for (int i = 0; i < POINTS; i++)
            sent[0][i] = (rank * PLANES + plane) * POINTS + i;
        good(CU(cuMemAlloc_v2)(&planes[plane], plane_bytes), "cuMemAlloc");
        good(CU(cuMemcpyHtoD_v2)(planes[plane], sent[0], plane_bytes), "cuMemcpyHtoD");
    }
}

static double checksum(void) {
    double sum = 0;
    for (int plane = 0; plane < PLANES; plane++) {
        good(CU(cuMemcpyDtoH_v2)(sent[0], planes[plane], plane_bytes), "cuMemcpyDtoH");
        for (int i = 0; i < POINTS; i++)
            sum += (plane * plane + 1) * sent[0][i];
    }
    return sum;
}

int main(int count, char **arguments) {
    double sums[MOST_RANKS];
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    good(count != 2 || ranks > MOST_RANKS, "usage: mpi_stencil ITERATIONS, and at most 64 ranks");
    open_all();
    for (int i = 0; i < atoi(arguments[1]); i++)
        iterate();
    good(CU(cuCtxSynchronize)(), "cuCtxSynchronize");
    int priority = 99, changed;
    good(CU(cuStreamGetPriority)(halo, &priority), "cuStreamGetPriority");
    MPI_Reduce(&(int){priority != 0}, &changed, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Gather(&(double){checksum()}, 1, MPI_DOUBLE, sums, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++)
        printf("rank %d of %d: %.0f\n", i, ranks, sums[i]);
    if (rank == 0)
        printf("priority of the halo stream: %s\n", changed ? "another one" : "the default one");
    return MPI_Finalize();
}
