/* Many kernels, sizes, grids or threads, against a driver that does nothing (many_driver.c).
 *
 *   many KERNELS SIZES THREADS [killed]
 * Each thread launches every kernel with every dynamic size and four grids, three times; no thread ends before all have launched.
 * Prints how many launches were made, and how often the driver was asked about kernels during the last round. killed: by SIGKILL.
 */
#define WAY_LINKED
#include "driver.h"

#include <pthread.h>
#include <signal.h>

extern long many_asked(void);

enum { MOST = 1 << 17, ROUNDS = 3, GRIDS = 4, SIZE = 16 };
static void *functions[MOST];
static long kernels, sizes, threads, launched, asked;
static pthread_barrier_t barrier;

static void *work(void *unused) {
    static const unsigned grids[GRIDS] = {8, 1000, 1200, 100000}; /* more intervals than a line of the cache holds */
    long mine = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        if (round == ROUNDS - 1)
            __atomic_store_n(&asked, many_asked(), __ATOMIC_RELAXED);
        pthread_barrier_wait(&barrier);
        for (long kernel = 0; kernel < kernels; kernel++)
            for (long size = 0; size < sizes; size++)
                for (int grid = 0; grid < GRIDS; grid++, mine++)
                    cuLaunchKernel(functions[kernel], grids[grid], 1, 1, 128, 1, 1, (unsigned)(size * SIZE),
                                   (void *)0x1000, NULL, NULL);
    }
    __atomic_fetch_add(&launched, mine, __ATOMIC_RELAXED);
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 4 || atol(argv[1]) > MOST)
        return 2;
    kernels = atol(argv[1]), sizes = atol(argv[2]), threads = atol(argv[3]);
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    cuInit(0);
    for (long i = 0; i < kernels; i++)
        cuModuleGetFunction(&functions[i], NULL, "plain");
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, work, NULL))
            return 3;
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    printf("launches: %ld\nasked: %ld\n", launched, many_asked() - asked);
    fflush(stdout);
    if (argc > 4)
        raise(SIGKILL);
    return 0;
}
