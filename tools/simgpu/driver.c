/* The driver as a whole: cuInit, the lock, the virtual clock of the host, fork and exit.
 *
 * Every entry point costs 2 us of virtual host time, so a program that polls always ends and results depend on
 * the order of calls alone. A forked child of a process that used the driver gets CUDA_ERROR_NOT_INITIALIZED from
 * everything, as on a real GPU. At exit the remaining work is run, so that its timeline is complete.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

static const double API_CALL_US = 2.0;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialized, forked, at_fork_installed;
double sim_host_us;
bool sim_queue_died;

void sim_lock(void) {
    pthread_mutex_lock(&lock);
}

void sim_unlock(void) {
    pthread_mutex_unlock(&lock);
}

CUresult sim_enter(void) {
    sim_lock();
    if (!initialized || forked) {
        sim_unlock();
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    sim_host_us += API_CALL_US;
    return CUDA_SUCCESS;
}

void sim_leave(const int *guard) {
    (void)guard;
    sim_unlock();
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
