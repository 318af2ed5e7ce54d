/* Which names are ours. Pure: sanitizers' runtimes ask dlsym for names before they have started. */
#include <string.h>

#include "vendor.h"

/* One behind the other, and where each begins: pointers would have to be filled in by the loader at the start of every process. */
static const struct names {
#define DRIVER(name, body, parameters, ...) char name[sizeof #name];
#include "../cuda/driver.def"
#include "../hip/driver.def"
#undef DRIVER
} names = {
#define DRIVER(name, body, parameters, ...) #name,
#include "../cuda/driver.def"
#include "../hip/driver.def"
#undef DRIVER
};
static const uint16_t places[HOOK_COUNT] = {
#define DRIVER(name, body, parameters, ...) offsetof(struct names, name),
#include "../cuda/driver.def"
#include "../hip/driver.def"
#undef DRIVER
};

const char *hook_name(enum hook hook) {
    return (const char *)&names + places[hook];
}

const char runtime_names[][40] = {
#define RUNTIME(name, ...) #name,
#include "../cuda/runtime.def"
#undef RUNTIME
};

const char table_names[2][32] = {"rocprofiler_set_api_table", "rocprofiler_configure"};

/* Most names that are asked for are not ours: two letters in their middle tell, before any comparison of strings. */
int hook_named(enum vendor vendor, const char *name) {
    const size_t at = vendor == VENDOR_HIP ? 3 : 2;
    for (int hook = hook_first(vendor); name[at] && hook < hook_end(vendor); hook++) {
        const char *const own = hook_name((enum hook)hook);
        if (own[at] == name[at] && own[at + 1] == name[at + 1] && strcmp(own, name) == 0)
            return hook;
    }
    return -1;
}

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

int overlap_vendor_name(const char *name) {
    if (name[0] == 'c' && name[2] != 'd')
        return name[2] >= 'A' && name[2] <= 'Z' ? hook_named(VENDOR_CUDA, name) : -1;
    if (name[0] == 'r')
        return table_named(name);
    if (name[0] == 'h' || name[1] == 'Z' || (name[0] == '_' && name[2] == 'h'))
        return hook_named(VENDOR_HIP, name);
    return runtime_named(name);
}
