/* Threads of one core, against the driver that does nothing (tools/bench/null_driver.c).
 *
 *   one_core REALTIME THREADS CALLS
 * Ordinary threads create a stream, load a module, launch, wait, destroy and unload. REALTIME 1: while a thread with real-time
 * priority (SCHED_FIFO) makes CALLS launches, one each 200 us, each of another size. 0: CALLS times each. Prints what went
 * wrong and how many calls the real-time thread made; on stderr how many launches were made, and the processor time of a
 * call of the real-time thread in nanoseconds: in the mean, and at most. Ends with 77 where the system refuses the priority.
 */
#define WAY_LINKED
#include "driver.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { MOST = 64, LAUNCHES = 30, PRIORITY = 50, PERIOD = 200000, REFUSED = 77 };
static int realtime, calls, stop, bad, launched;
static void *context;

static int launch(void *function, unsigned blocks, void *stream) {
    __atomic_fetch_add(&launched, 1, __ATOMIC_RELAXED);
    return launch_kernel(function, blocks, 128, stream);
}

static void *work(void *unused) {
    int wrong = cuCtxSetCurrent(context);
    for (int i = 0; realtime ? !__atomic_load_n(&stop, __ATOMIC_RELAXED) : i < calls; i++) {
        void *stream, *module, *function;
        wrong += cuStreamCreate(&stream, 1) + cuModuleLoadData(&module, "x");
        wrong += cuModuleGetFunction(&function, module, "kernel");
        for (unsigned k = 1; k < LAUNCHES; k++)
            wrong += launch(function, 4 + k, stream);
        wrong += cuStreamSynchronize(stream) + cuStreamDestroy_v2(stream) + cuModuleUnload(module);
    }
    __atomic_fetch_add(&bad, wrong, __ATOMIC_RELAXED);
    return unused;
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static int stay_on_one_core(void) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all))
        return -1;
    for (size_t core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all)) {
            CPU_SET(core, &one);
            break;
        }
    return sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    void *function, *stream;
    long sum = 0, most = 0;
    int made = 0;
    if (argc != 4)
        return 2;
    realtime = atoi(argv[1]), calls = atoi(argv[3]);
    const int count = atoi(argv[2]);
    if (stay_on_one_core())
        return 3;
    context = driver_start();
    if (cuStreamCreate(&stream, 1) || cuModuleGetFunction(&function, NULL, "k"))
        return 3;
    bad += launch(function, 4, stream);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    if (realtime && sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){PRIORITY}))
        return REFUSED;
    for (; realtime && made < calls; made++) {
        nanosleep(&(struct timespec){0, PERIOD}, NULL);
        const long begun = now();
        bad += launch(function, 4 + (unsigned)made % 3000, stream) + cuStreamQuery(stream);
        const long took = now() - begun;
        sum += took;
        most = took > most ? took : most;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("bad: %d\nmade: %d\n", bad, made);
    fprintf(stderr, "launches: %d\nmean: %ld\nmost: %ld\n", launched, sum / (made ? made : 1), most);
    return 0;
}
