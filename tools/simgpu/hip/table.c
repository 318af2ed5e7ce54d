/* The tables of functions that ROCm (6.1 and newer) hands to its profilers: SIMGPU_HIP_TABLE=register does so, once,
 * by rocprofiler_register_library_api_table() of librocprofiler-register.so.0, where that is installed. Debian's builds
 * of the real runtime do not; AMD's do. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"

/* What rocprofiler-register wants: 10000 * major + 100 * minor + patch, and who says so. */
static uint32_t import_version(void) {
    return 10000 * (HIP_RELEASE / 100) + 100 * (HIP_RELEASE % 100);
}

typedef int register_table(const char *name, uint32_t (*import)(void), uint32_t version, void **tables, uint64_t count,
                           uint64_t *identifier);

static void hand_out(register_table *call, const char *name, void **table) {
    uint64_t identifier[4] = {0};
    const int result = call(name, import_version, import_version(), table, 1, identifier);
    if (result != 0)
        sim_say("rocprofiler-register did not take the table %s (%d)", name, result);
}

void hip_tables_register(void **runtime, void **compiler) {
    const char *const text = getenv("SIMGPU_HIP_TABLE");
    if (SIMGPU_HIP < 6 || text == NULL || strcmp(text, "off") == 0)
        return;
    if (strcmp(text, "register") != 0) {
        sim_say("SIMGPU_HIP_TABLE: `%s` is neither `register` nor `off`", text);
        return;
    }
    void *const library = dlopen("librocprofiler-register.so.0", RTLD_LAZY | RTLD_GLOBAL);
    void *const found = library != NULL ? dlsym(library, "rocprofiler_register_library_api_table") : NULL;
    register_table *call;
    memcpy(&call, &found, sizeof call);
    if (call == NULL) {
        sim_say("SIMGPU_HIP_TABLE: librocprofiler-register.so.0 cannot be loaded");
        return;
    }
    hand_out(call, "hip", runtime);
    hand_out(call, "hip_compiler", compiler);
}
