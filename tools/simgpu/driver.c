/* The driver as a whole: cuInit, the lock, the virtual clock of the host, fork and exit.
 *
 * Every entry point costs 2 us of virtual host time, so a program that polls always ends and results depend on
 * the order of calls alone. A forked child of a process that used the driver gets CUDA_ERROR_NOT_INITIALIZED from
 * everything, as on a real GPU. At exit the remaining work is run, so that its timeline is complete.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

static const double API_CALL_US = 2.0;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialized, forked, at_fork_installed;
double sim_host_us;
struct sim_call sim_call;
bool sim_queue_died;

static void *there(void *memory) {
    if (memory == NULL) {
        sim_say("out of memory");
        abort();
    }
    return memory;
}

void *sim_new(size_t count, size_t size) {
    return there(calloc(count > 0 ? count : 1, size));
}

void *sim_grow(void *memory, size_t count, size_t size) {
    return there(realloc(memory, (count > 0 ? count : 1) * size));
}

char *sim_text(const char *text) {
    return there(strdup(text));
}

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
    sim_call = (struct sim_call){.start_us = sim_host_us, .number = sim_call.number + 1};
    sim_host_us += API_CALL_US;
    return CUDA_SUCCESS;
}

void sim_leave(const int *guard) {
    (void)guard;
    sim_trace_call();
    sim_unlock();
}

bool sim_is_initialized(void) {
    return __atomic_load_n(&initialized, __ATOMIC_ACQUIRE) && !forked; /* without the lock */
}

static void after_fork_in_child(void) {
    forked = initialized;
    sim_trace_forget();
    sim_unlock();
}

static __attribute__((destructor)) void finish(void) {
    sim_lock();
    if (initialized && !forked) {
        sim_engine_run_to(1e300);
        sim_trace_flush();
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

/* ---- handles: addresses of cells in one reserved region ----
 *
 * A handle is good if it lies in the region, on a cell's border, and the cell holds the kind asked for; so whatever
 * a program passes, it is found out without following it. Cells given back are handed out again, last first, for
 * objects of the same kind: handles come back with another meaning, as on the real driver. The region asks for a
 * fixed address, so that two runs print the same numbers.
 */
struct sim_cell {
    enum kind kind;
    uint32_t turn; /* how often it was handed out */
    void *object;
    struct sim_cell *next_free;
    char padding[40]; /* handles of the real driver are far apart, too */
};

_Static_assert(sizeof(struct sim_cell) == 64, "cells are 64 bytes");

enum { CELLS = 1 << 22 };
/* Below position-independent programs, and where AddressSanitizer and ThreadSanitizer let a program map memory. */
#define WISHED_ADDRESS ((void *)0x550000000000)

static struct sim_cell *cells;
static size_t used;
static struct sim_cell *free_cells[KINDS];

struct sim_cell *sim_handle_new(enum kind kind, void *object) {
    if (cells == NULL) {
        void *const region = mmap(WISHED_ADDRESS, CELLS * sizeof *cells, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        cells = there(region != MAP_FAILED ? region : NULL);
        used = 1; /* cell 0 is never a handle */
    }
    struct sim_cell *cell = free_cells[kind];
    if (cell != NULL)
        free_cells[kind] = cell->next_free;
    else
        cell = there(used < CELLS ? &cells[used++] : NULL);
    cell->kind = kind;
    cell->turn++;
    cell->object = object;
    return cell;
}

void *sim_handle_get(const void *handle, enum kind kind) {
    const uintptr_t address = (uintptr_t)handle, base = (uintptr_t)cells;
    if (cells == NULL || address <= base || address >= base + used * sizeof *cells)
        return NULL;
    if ((address - base) % sizeof *cells != 0)
        return NULL;
    const struct sim_cell *const cell = handle;
    return cell->kind == kind ? cell->object : NULL;
}

uint32_t sim_handle_turn(const void *handle, enum kind kind) {
    return sim_handle_get(handle, kind) != NULL ? ((const struct sim_cell *)handle)->turn : 0;
}

void sim_handle_free(struct sim_cell *handle) {
    if (handle == NULL)
        return;
    const enum kind kind = handle->kind;
    handle->kind = KIND_FREE;
    handle->object = NULL;
    if (sim_config.fresh_handles)
        return;
    handle->next_free = free_cells[kind];
    free_cells[kind] = handle;
}

unsigned long long sim_handle_number(const void *handle) {
    return (unsigned long long)(uintptr_t)handle;
}
