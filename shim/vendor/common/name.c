/* Names of hooks. These functions are pure, because sanitizers' runtimes call dlsym before they have started. */
#include <string.h>

#include "../../core/core.h"
#include "../../sys/sys.h"
#include "resolve.h"
#include "vendor_ops.h"

/* Reads the name from our own symbol table, because a second copy of all names would be locked in every process. */
const char *hook_name(enum hook hook) {
    return overlap_own_name((uintptr_t)OPERATION_OF(hook_vendor(hook), thunk)(ROUTE_SYMBOL, hook));
}

int hook_named(enum vendor vendor, const char *name) {
    const void *const own = overlap_own_symbol(name);
    for (int hook = hook_first(vendor); own && hook < hook_end(vendor); hook++)
        if (OPERATION_OF(vendor, thunk)(ROUTE_SYMBOL, (enum hook)hook) == own)
            return hook;
    return -1;
}

const char runtime_names[][40] = {
#define RUNTIME(name, ...) #name,
#include "../cuda/runtime.def"
#undef RUNTIME
};

const char table_names[2][32] = {"rocprofiler_set_api_table", "rocprofiler_configure"};

static int table_named(const char *name) {
    for (int i = 0; i < 2; i++)
        if (strcmp(name, table_names[i]) == 0)
            return TABLE_NAMES + i;
    return -1;
}

static int runtime_named(const char *name) {
    for (int hook = 0; hook < (int)(sizeof runtime_names / sizeof *runtime_names); hook++)
        if (strcmp(runtime_names[hook], name) == 0)
            return HOOK_COUNT + hook;
    return -1;
}

int hook_number(const char *name) {
    if (name[0] == 'c' && name[2] != 'd')
        return name[2] >= 'A' && name[2] <= 'Z' ? hook_named(VENDOR_CUDA, name) : -1;
    if (name[0] == 'r')
        return table_named(name);
    if (name[0] == 'h' || name[1] == 'Z' || (name[0] == '_' && name[2] == 'h'))
        return hook_named(VENDOR_HIP, name);
    return runtime_named(name);
}
