/* The runtime's own dispatch table, through which every exported function goes (ROCm 6.1 and newer).
 * librocprofiler-register passes it once to the library that defines the two names below in the global scope. We insert
 * our functions, then pass the table on to the profiler behind us, if there is one; the profiler's functions thus run
 * before ours.
 *
 * From then on calls arrive that none of our symbols has seen. Those that one has seen pass through (hip_passes).
 * librocprofiler-register: source/lib/rocprofiler-register/rocprofiler_register.cpp.
 */
#include <dlfcn.h>
#include <string.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "../gpu/page.h"
#include "hip.h"

/* Plausible sizes in bytes: every table ever handed out reaches beyond LEAST, and none comes near MOST. */
enum { LEAST = 64 * 8, MOST = 1 << 16 };
#define PROFILER "librocprofiler-sdk.so"

static const struct {
    uint16_t hook, position;
} members[] = {
#define TABLE(name, position) {HOOK_##name, position},
#include "dispatch_table.def"
#undef TABLE
};

static bool is_function(const void *address) {
    struct overlap_object object;
    const uintptr_t at = (uintptr_t)address;
    return in_driver(VENDOR_HIP, at) || (address && !overlap_is_ours(at) && overlap_object_at(at, &object));
}

/* Check size and members as far as possible. *count: number of members. */
static bool is_table(void *const *table, uint64_t *count) {
    const uint64_t size = table ? (uint64_t)(uintptr_t)table[0] : 0;
    *count = size / sizeof *table;
    if (size < LEAST || size > MOST || size % sizeof *table)
        return false;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i].position < *count && !is_function(table[members[i].position]))
            return false;
    return true;
}

static void take(void **table) {
    uint64_t count = 0;
    if (!overlap_page_prepare() || real_cached(HOOK_hipLaunchKernel, ROUTE_TABLE)) /* it is handed out twice */
        return;
    if (!is_table(table, &count)) {
        overlap_say(
            "the table of functions that HIP hands out is not one that we know: launches are seen by their names", NULL,
            NULL);
        return;
    }
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const enum hook hook = (enum hook)members[i].hook;
        void *before = members[i].position < count ? table[members[i].position] : NULL;
        if (!before || !real_remember(ROUTE_TABLE, hook, before))
            continue;
        adopt_driver_of(VENDOR_HIP, before);
        __atomic_store_n(&table[members[i].position], hip_thunk(ROUTE_TABLE, hook), __ATOMIC_RELEASE);
    }
}

/* ---- The two exported names ---- */

typedef int set_table(const char *name, uint64_t version, uint64_t instance, void **tables, uint64_t count);
typedef void *configure(uint32_t version, const char *runtime, uint32_t priority, void *client);

/* Registers nothing: we need no service of the profiler. */
OVERLAP_EXPORT configure rocprofiler_configure;
OVERLAP_EXPORT void *rocprofiler_configure(uint32_t version, const char *runtime, uint32_t priority, void *client) {
    (void)version, (void)runtime, (void)priority, (void)client;
    return NULL;
}

/* True if a tool waits for the profiler, before or after us in search order. (RTLD_DEFAULT would find us first.) */
static bool is_wanted(void) {
    void *(*open)(const char *, int) = (void *(*)(const char *, int))overlap_dlsym(RTLD_NEXT, "dlopen");
    void *const everything = open ? open(NULL, RTLD_LAZY) : NULL;
    const void *first = everything ? overlap_dlsym(everything, "rocprofiler_configure") : NULL;
    return (first && !overlap_is_ours((uintptr_t)first)) || overlap_next_symbol("rocprofiler_configure", PROFILER) ||
           overlap_variable("ROCP_TOOL_LIBRARIES");
}

/* The profiler behind us, or NULL. If a loaded tool waits for it, load it here: librocprofiler-register would have
 * done so had it not found us. */
static set_table *profiler(void) {
    void *found = overlap_next_symbol("rocprofiler_set_api_table", PROFILER);
    if (!found && is_wanted() && (overlap_open(PROFILER ".1") || overlap_open(PROFILER ".0") || overlap_open(PROFILER)))
        found = overlap_next_symbol("rocprofiler_set_api_table", PROFILER);
    return (set_table *)found;
}

OVERLAP_EXPORT set_table rocprofiler_set_api_table;
OVERLAP_EXPORT int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables,
                                             uint64_t count) {
    if (overlap_armed() && name && strcmp(name, "hip") == 0 && instance == 0 && tables && count > 0)
        take(tables[0]);
    set_table *next = profiler();
    return next ? next(name, version, instance, tables, count) : 0;
}
