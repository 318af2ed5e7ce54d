/* The functions of HIP that are simulated, made from api.def: what stands in the tables (table.c), and what is exported. */
#include "hip.h"

static void enter(const char *name) {
    sim_entry = name;
}

/* ---- what stands in the tables ---- */

#define PUT_OTHER(type, name, parameters, ...)                                                                         \
    type table_##name parameters;                                                                                      \
    type table_##name parameters {                                                                                     \
        enter(#name);                                                                                                  \
        return hip_##name(__VA_ARGS__);                                                                                \
    }
#define PUT(name, parameters, call)                                                                                    \
    hipError_t table_##name parameters;                                                                                \
    hipError_t table_##name parameters {                                                                               \
        enter(#name);                                                                                                  \
        return hip_done(call);                                                                                         \
    }
#define PUT_ENGINE(name, parameters, call)                                                                             \
    hipError_t table_##name parameters;                                                                                \
    hipError_t table_##name parameters {                                                                               \
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

/* ---- the exported functions ---- */

#define EXPORT(type, name, parameters, where, arguments)                                                               \
    HIP_API type name parameters;                                                                                      \
    type name parameters {                                                                                             \
        return ((type(*) parameters)where(MEMBER_##name))arguments;                                                    \
    }
#define HIP(name, parameters, ...) EXPORT(hipError_t, name, parameters, hip_in_runtime, (__VA_ARGS__))
#define HIP_BOTH(name, parameters, ...)                                                                                \
    EXPORT(hipError_t, name, parameters, hip_in_runtime, (__VA_ARGS__))                                                \
    EXPORT(hipError_t, name##_spt, parameters, hip_in_runtime, (__VA_ARGS__))
#define ENGINE(name, parameters, arguments, call) EXPORT(hipError_t, name, parameters, hip_in_runtime, arguments)
#define ENGINE_BOTH(name, parameters, arguments, function, suffix, given)                                              \
    EXPORT(hipError_t, name, parameters, hip_in_runtime, arguments)                                                    \
    EXPORT(hipError_t, name##_spt, parameters, hip_in_runtime, arguments)
#define OTHER(type, name, parameters, ...) EXPORT(type, name, parameters, hip_in_runtime, (__VA_ARGS__))
#define COMPILER(type, name, parameters, ...) EXPORT(type, name, parameters, hip_in_compiler, (__VA_ARGS__))
#define OUTSIDE(type, name, parameters, ...)                                                                           \
    HIP_API type name parameters;                                                                                      \
    type name parameters {                                                                                             \
        return table_##name(__VA_ARGS__);                                                                              \
    }
#include "api.def"
