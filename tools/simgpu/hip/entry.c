/* The exported functions, made from api.def, and the tables through which they go.
 *
 * Since 6.1 every function of HIP calls what stands in a table (HipDispatchTable), which ROCm's profilers may be
 * handed and may change (table.c). Here 5 does the same, and hands its table to nobody.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "hip.h"

typedef void (*any_function)(void);

static void enter(const char *name) {
    sim_entry = name;
}

static hipError_t unsupported(const char *name, atomic_flag *said) {
    if (!atomic_flag_test_and_set(said))
        sim_say("%s is not simulated; it answers hipErrorNotSupported", name);
    return hip_done(hipErrorNotSupported);
}

/* ---- what stands in the tables ---- */

#define PUT_OTHER(type, name, parameters, ...)                                                                         \
    static type table_##name parameters {                                                                              \
        enter(#name);                                                                                                  \
        return hip_##name(__VA_ARGS__);                                                                                \
    }
#define PUT(name, parameters, call)                                                                                    \
    static hipError_t table_##name parameters {                                                                        \
        enter(#name);                                                                                                  \
        return hip_done(call);                                                                                         \
    }
#define PUT_ENGINE(name, parameters, call)                                                                             \
    static hipError_t table_##name parameters {                                                                        \
        enter(#name);                                                                                                  \
        hipError_t result = hip_ready();                                                                               \
        if (result == hipSuccess)                                                                                      \
            result = call;                                                                                             \
        return hip_done(result);                                                                                       \
    }
#define HIP(name, parameters, ...) PUT(name, parameters, hip_##name(__VA_ARGS__))
#define HIP_BOTH(name, parameters, ...)                                                                                \
    PUT(name, parameters, hip_##name(false, __VA_ARGS__))                                                              \
    PUT(name##_spt, parameters, hip_##name(true, __VA_ARGS__))
#define ENGINE(name, parameters, arguments, call) PUT_ENGINE(name, parameters, call)
#define ENGINE_BOTH(name, parameters, arguments, function, suffix, given)                                              \
    PUT_ENGINE(name, parameters, function given)                                                                       \
    PUT_ENGINE(name##_spt, parameters, function##suffix given)
#define OTHER PUT_OTHER
#define COMPILER PUT_OTHER
#define OUTSIDE PUT_OTHER
#include "api.def"
#undef HIP
#undef HIP_BOTH
#undef ENGINE
#undef ENGINE_BOTH
#undef OTHER
#undef COMPILER
#undef OUTSIDE

#define STUB(name)                                                                                                     \
    static hipError_t table_##name(void) {                                                                             \
        static atomic_flag said = ATOMIC_FLAG_INIT;                                                                    \
        return unsupported(#name, &said);                                                                              \
    }
#define MEMBER(name, step)
#define COMPILER_MEMBER(name)
#include "names.def"
#undef STUB
#undef MEMBER
#undef COMPILER_MEMBER

/* ---- the tables ---- */

#define STUB(name)
#define MEMBER(name, step) MEMBER_##name,
#define COMPILER_MEMBER(name)
enum {
#include "names.def"
    MEMBERS
};
#undef MEMBER
#undef COMPILER_MEMBER
#define MEMBER(name, step)
#define COMPILER_MEMBER(name) MEMBER_##name,
enum {
#include "names.def"
    COMPILER_MEMBERS
};
#undef MEMBER
#undef COMPILER_MEMBER

/* A release has the members up to a step. */
enum { LAST_STEP = HIP_RELEASE < 700 ? 10 : 18 };
#define MEMBER(name, step) +((step) <= LAST_STEP)
#define COMPILER_MEMBER(name)
enum {
    OWN_MEMBERS = 0
#include "names.def"
};
#undef MEMBER

#define MEMBER(name, step) (any_function) table_##name,
static struct {
    size_t bytes;
    any_function member[MEMBERS];
} runtime = {(1 + OWN_MEMBERS) * sizeof(any_function),
             {
#include "names.def"
             }};
#undef MEMBER
#undef COMPILER_MEMBER
#define MEMBER(name, step)
#define COMPILER_MEMBER(name) (any_function) table_##name,
static struct {
    size_t bytes;
    any_function member[COMPILER_MEMBERS];
} compiler = {(1 + COMPILER_MEMBERS) * sizeof(any_function),
              {
#include "names.def"
              }};
#undef MEMBER
#undef COMPILER_MEMBER
#undef STUB

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void hand_out(void) {
    void *of_runtime = &runtime, *of_compiler = &compiler;
    hip_tables_register(&of_runtime, &of_compiler);
}

static any_function in_runtime(int member) {
    pthread_once(&once, hand_out);
    return runtime.member[member];
}

static any_function in_compiler(int member) {
    pthread_once(&once, hand_out);
    return compiler.member[member];
}

/* ---- the exported functions ---- */

#define EXPORT(type, name, parameters, where, arguments)                                                               \
    HIP_API type name parameters;                                                                                      \
    type name parameters {                                                                                             \
        return ((type(*) parameters)where(MEMBER_##name))arguments;                                                    \
    }
#define HIP(name, parameters, ...) EXPORT(hipError_t, name, parameters, in_runtime, (__VA_ARGS__))
#define HIP_BOTH(name, parameters, ...)                                                                                \
    EXPORT(hipError_t, name, parameters, in_runtime, (__VA_ARGS__))                                                    \
    EXPORT(hipError_t, name##_spt, parameters, in_runtime, (__VA_ARGS__))
#define ENGINE(name, parameters, arguments, call) EXPORT(hipError_t, name, parameters, in_runtime, arguments)
#define ENGINE_BOTH(name, parameters, arguments, function, suffix, given)                                              \
    EXPORT(hipError_t, name, parameters, in_runtime, arguments)                                                        \
    EXPORT(hipError_t, name##_spt, parameters, in_runtime, arguments)
#define OTHER(type, name, parameters, ...) EXPORT(type, name, parameters, in_runtime, (__VA_ARGS__))
#define COMPILER(type, name, parameters, ...) EXPORT(type, name, parameters, in_compiler, (__VA_ARGS__))
#define OUTSIDE(type, name, parameters, ...)                                                                           \
    HIP_API type name parameters;                                                                                      \
    type name parameters {                                                                                             \
        return table_##name(__VA_ARGS__);                                                                              \
    }
#include "api.def"

/* `nm -D` shows them as W, as those of the CUDA driver. */
#define STUB(name)                                                                                                     \
    HIP_API __attribute__((weak)) hipError_t name(void);                                                               \
    hipError_t name(void) {                                                                                            \
        return table_##name();                                                                                         \
    }
#define MEMBER(name, step)
#define COMPILER_MEMBER(name)
#include "names.def"
