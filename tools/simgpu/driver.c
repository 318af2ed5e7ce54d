/* The driver as a whole: cuInit, the lock, the virtual clock of the host, fork and exit.
 *
 * Every entry point costs 2 us of virtual host time, so a program that polls always ends and results depend on
 * the order of calls alone. A forked child of a process that used the driver gets CUDA_ERROR_NOT_INITIALIZED from
 * everything, as on a real GPU. At exit the remaining work is run, so that its timeline is complete.
 *
 * With SIMGPU_CLOCK=real the virtual time is the real time since cuInit: a call that waits sleeps until then, and what the program
 * does between two calls takes time of the GPU, too. Results then depend on the machine.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim.h"

static const double API_CALL_US = 2.0;
static const double SHORTEST_SLEEP_US = 200; /* a sleep may last 60 us longer than asked for */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialized, forked, at_fork_installed;
static double real_start_us;
double sim_host_us;
bool sim_queue_died;

void sim_lock(void) {
    pthread_mutex_lock(&lock);
}

void sim_unlock(void) {
    pthread_mutex_unlock(&lock);
}

static double real_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

CUresult sim_enter(void) {
    sim_lock();
    if (!initialized || forked) {
        sim_unlock();
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    sim_host_us += API_CALL_US;
    if (sim_config.real_time)
        sim_host_us = fmax(sim_host_us, real_us() - real_start_us);
    return CUDA_SUCCESS;
}

void sim_leave(const int *guard) {
    (void)guard;
    const double until = real_start_us + sim_host_us;
    const bool sleeps = sim_config.real_time && until > real_us() + SHORTEST_SLEEP_US;
    sim_unlock();
    const time_t seconds = (time_t)(until / 1e6);
    const struct timespec then = {.tv_sec = seconds, .tv_nsec = (long)((until - 1e6 * (double)seconds) * 1e3)};
    while (sleeps && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) == EINTR)
        continue;
}

bool sim_is_initialized(void) {
    return __atomic_load_n(&initialized, __ATOMIC_ACQUIRE) && !forked; /* without the lock */
}

static void after_fork_in_child(void) {
    forked = initialized;
    sim_log_forget();
    sim_unlock();
}

static __attribute__((destructor)) void finish(void) {
    sim_lock();
    if (initialized && !forked) {
        sim_engine_run_to(1e300);
        sim_log_close();
    }
    sim_unlock();
}

SIM_API CUresult cuInit(unsigned int flags) {
    sim_lock();
    CUresult result = CUDA_SUCCESS;
    if (forked)
        result = CUDA_ERROR_NOT_INITIALIZED;
    else if (flags != 0)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (!initialized) {
        result = sim_config_read();
        real_start_us = real_us();
        if (result == CUDA_SUCCESS && !at_fork_installed)
            at_fork_installed = pthread_atfork(sim_lock, sim_unlock, after_fork_in_child) == 0;
        __atomic_store_n(&initialized, result == CUDA_SUCCESS, __ATOMIC_RELEASE);
    }
    sim_unlock();
    return result;
}

int sim_driver_version(void) {
    if (initialized)
        return sim_config.driver_version;
    const char *const text = getenv("SIMGPU_DRIVER_VERSION");
    const long version = text != NULL ? strtol(text, NULL, 10) : 0;
    return version >= 1000 && version < 100000 ? (int)version : 13000;
}

SIM_API CUresult cuDriverGetVersion(int *version) {
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = sim_driver_version();
    return CUDA_SUCCESS;
}

SIM_API CUresult cuProfilerStart(void) {
    SIM_CALL();
    return CUDA_SUCCESS;
}

SIM_API CUresult cuProfilerStop(void) {
    SIM_CALL();
    return CUDA_SUCCESS;
}
