/* The names of the driver API that are there, and which symbol each version of them is.
 *
 * A name that no other file implements is a weak stub here that answers CUDA_ERROR_NOT_SUPPORTED and says so once:
 * nothing pretends to work. `nm -D` shows stubs as W. The table is api.def.
 */
#include <stdatomic.h>
#include <string.h>

#include "sim.h"

static CUresult unsupported(const char *name, atomic_flag *said) {
    if (!atomic_flag_test_and_set(said))
        sim_say("%s is not simulated; it answers CUDA_ERROR_NOT_SUPPORTED", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define ENTRY(symbol, base, version, per_thread)                                                                       \
    SIM_API __attribute__((weak)) CUresult symbol(void);                                                               \
    CUresult symbol(void) {                                                                                            \
        static atomic_flag said = ATOMIC_FLAG_INIT;                                                                    \
        return unsupported(#symbol, &said);                                                                            \
    }
#include "api.def"
#undef ENTRY

struct proc {
    const char *name;
    int version, per_thread;
    CUresult (*address)(void);
};

#define ENTRY(symbol, base, version, per_thread) {#base, version, per_thread, symbol},
static const struct proc procs[] = {
#include "api.def"
};
#undef ENTRY

enum { PROCS = sizeof procs / sizeof *procs };
enum { FOUND = 0, NOT_FOUND = 1, VERSION_NOT_SUFFICIENT = 2 };
enum { PER_THREAD_DEFAULT_STREAM = 2 };

/* The first row of a name, or PROCS. */
static size_t first_row(const char *name) {
    size_t low = 0, high = PROCS;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(procs[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < PROCS && strcmp(procs[low].name, name) == 0 ? low : PROCS;
}

void *sim_proc_find(const char *name, int version, uint64_t flags, int *status) {
    const int driver = sim_driver_version();
    const bool per_thread = (flags & PER_THREAD_DEFAULT_STREAM) != 0;
    const struct proc *best = NULL;
    bool known = false;
    for (size_t i = first_row(name); i < PROCS && strcmp(procs[i].name, name) == 0; i++) {
        const struct proc *const row = &procs[i];
        if (row->version > driver || (row->per_thread && !per_thread))
            continue;
        known = true;
        if (row->version > version)
            continue;
        if (best == NULL || row->per_thread > best->per_thread ||
            (row->per_thread == best->per_thread && row->version > best->version))
            best = row;
    }
    *status = best != NULL ? FOUND : known ? VERSION_NOT_SUFFICIENT : NOT_FOUND;
    void *address = NULL;
    if (best != NULL)
        memcpy(&address, &best->address, sizeof address);
    return address;
}
