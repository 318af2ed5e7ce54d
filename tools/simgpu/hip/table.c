/* The tables of functions through which all of HIP goes.
 *
 * Since 6.1 every function of HIP calls what stands in a table (HipDispatchTable), which ROCm's profilers may be handed and may
 * change. SIMGPU_HIP_TABLE=register hands them out, once, by
 * rocprofiler_register_library_api_table() of librocprofiler-register.so.0, where that is installed. Debian's builds of the real
 * runtime do not; AMD's do.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"

/* What stands in the tables for all other names. */
static hipError_t other(void) {
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&said))
        sim_say("a function of ROCm's table is not simulated; it answers hipErrorNotSupported");
    return hip_done(hipErrorNotSupported);
}

/* ---- the tables ---- */

#define MEMBER(at, name) [at - 1] = (any_function)table_##name,
#define HIP(at, node, name, ...) MEMBER(at, name)
#define HIP_BOTH(at, node, at_spt, node_spt, name, ...) MEMBER(at, name) MEMBER(at_spt, name##_spt)
#define ENGINE HIP
#define ENGINE_BOTH HIP_BOTH
#define CALL HIP
#define OTHER(at, node, type, name, ...) MEMBER(at, name)
#define OUTSIDE(...)
static struct {
    size_t bytes;
    any_function member[MEMBERS];
} runtime = {sizeof runtime,
             {
#include "api.def"
             }};
/* Of what the code that hipcc makes calls; here it calls that directly. */
static struct {
    size_t bytes;
    any_function member[9];
} compiler = {sizeof compiler, {NULL}};

static void fill(any_function *members, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (members[i] == NULL)
            members[i] = (any_function)other;
}

/* ---- handed out ---- */

/* What rocprofiler-register wants: 10000 * major + 100 * minor + patch, and who says so. */
static uint32_t import_version(void) {
    return 70200;
}

typedef int register_table(const char *name, uint32_t (*import)(void), uint32_t version, void **tables, uint64_t count,
                           uint64_t *identifier);

static void hand_out(register_table *call, const char *name, void *table) {
    uint64_t identifier[4] = {0};
    const int result = call(name, import_version, import_version(), &table, 1, identifier);
    if (result != 0)
        sim_say("rocprofiler-register did not take the table %s (%d)", name, result);
}

static void hand_out_if_asked(void) {
    fill(runtime.member, MEMBERS);
    fill(compiler.member, sizeof compiler.member / sizeof *compiler.member);
    const char *const text = getenv("SIMGPU_HIP_TABLE");
    if (text == NULL)
        return;
    if (strcmp(text, "register") != 0) {
        sim_say("SIMGPU_HIP_TABLE: `%s` is not `register`", text);
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
    hand_out(call, "hip", &runtime);
    hand_out(call, "hip_compiler", &compiler);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

any_function hip_in_runtime(int position) {
    pthread_once(&once, hand_out_if_asked);
    return runtime.member[position - 1];
}
