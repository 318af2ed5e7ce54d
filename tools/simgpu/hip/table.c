/* Names that are hooked and not simulated, and the tables of functions through which all of HIP goes.
 *
 * Since 6.1 every function of HIP calls what stands in a table (HipDispatchTable), which ROCm's profilers may be handed and may
 * change. Here 5 does the same, and hands its table to nobody. SIMGPU_HIP_TABLE=register hands them out, once, by
 * rocprofiler_register_library_api_table() of librocprofiler-register.so.0, where that is installed. Debian's builds of the real
 * runtime do not; AMD's do.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"

/* ---- a weak function for each name: entry.c has those that are simulated; `nm -D` shows the others as W ---- */

static hipError_t unsupported(const char *name, atomic_flag *said) {
    if (!atomic_flag_test_and_set(said))
        sim_say("%s is not simulated; it answers hipErrorNotSupported", name);
    return hip_done(hipErrorNotSupported);
}

#define STUB(name)                                                                                                     \
    __attribute__((weak)) hipError_t table_##name(void);                                                               \
    hipError_t table_##name(void) {                                                                                    \
        static atomic_flag said = ATOMIC_FLAG_INIT;                                                                    \
        return unsupported(#name, &said);                                                                              \
    }                                                                                                                  \
    HIP_API __attribute__((weak)) hipError_t name(void);                                                               \
    hipError_t name(void) {                                                                                            \
        return table_##name();                                                                                         \
    }
#define MEMBER(name, node, releases, position) STUB(name)
#define COMPILER(name, node, releases, position) STUB(name)
#define OUTSIDE(name, node, releases) STUB(name)
#include "names.def"
#undef MEMBER
#undef COMPILER
#undef OUTSIDE

/* What stands in the tables for all other names. */
static hipError_t other(void) {
    static atomic_flag said = ATOMIC_FLAG_INIT;
    return unsupported("a function of ROCm's table", &said);
}

/* ---- the tables ---- */

#define MEMBER(name, node, releases, position) [MEMBER_##name] = (any_function)table_##name,
#define COMPILER(name, node, releases, position)
#define OUTSIDE(name, node, releases)
static struct {
    size_t bytes;
    any_function member[MEMBERS];
} runtime = {0,
             {
#include "names.def"
             }};
#undef MEMBER
#undef COMPILER
#define MEMBER(name, node, releases, position)
#define COMPILER(name, node, releases, position) [MEMBER_##name] = (any_function)table_##name,
static struct {
    size_t bytes;
    any_function member[COMPILER_MEMBERS];
} compiler = {sizeof compiler,
              {
#include "names.def"
              }};

static void fill(any_function *members, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (members[i] == NULL)
            members[i] = (any_function)other;
}

/* ---- handed out ---- */

/* What rocprofiler-register wants: 10000 * major + 100 * minor + patch, and who says so. */
static uint32_t import_version(void) {
    return hip_major() < 7 ? 60400 : 70200;
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
    runtime.bytes = (size_t)(1 + (hip_major() < 7 ? 474 : 506)) * sizeof(any_function);
    fill(runtime.member, MEMBERS);
    fill(compiler.member, COMPILER_MEMBERS);
    const char *const text = getenv("SIMGPU_HIP_TABLE");
    if (hip_major() < 6 || text == NULL || strcmp(text, "off") == 0)
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
    hand_out(call, "hip", &runtime);
    hand_out(call, "hip_compiler", &compiler);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

any_function hip_in_runtime(enum hip_member member) {
    pthread_once(&once, hand_out_if_asked);
    return runtime.member[member];
}

any_function hip_in_compiler(enum hip_compiler_member member) {
    pthread_once(&once, hand_out_if_asked);
    return compiler.member[member];
}
