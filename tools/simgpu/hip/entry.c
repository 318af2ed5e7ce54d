/* The functions of HIP that are simulated, made from api.def: what stands in the tables (table.c), and what is exported. */
#include "hip.h"

static void enter(const char *name) {
    sim_entry = name;
}

/* ---- what stands in the tables ---- */

#define PUT_OTHER(type, name, parameters, ...)                                                                         \
    type table_##name parameters {                                                                                     \
        enter(#name);                                                                                                  \
        return hip_##name(__VA_ARGS__);                                                                                \
    }
#define PUT(name, parameters, call)                                                                                    \
    hipError_t table_##name parameters {                                                                               \
        enter(#name);                                                                                                  \
        return hip_done(call);                                                                                         \
    }
#define PUT_IN_CONTEXT(name, parameters, call)                                                                         \
    hipError_t table_##name parameters {                                                                               \
        enter(#name);                                                                                                  \
        hipError_t result = hip_ready();                                                                               \
        if (result == hipSuccess)                                                                                      \
            result = call;                                                                                             \
        return hip_done(result);                                                                                       \
    }
#define HIP(at, node, name, parameters, ...) PUT(name, parameters, hip_##name(__VA_ARGS__))
#define HIP_BOTH(at, node, at_spt, node_spt, name, parameters, ...)                                                    \
    PUT(name, parameters, hip_##name(false, __VA_ARGS__))                                                              \
    PUT(name##_spt, parameters, hip_##name(true, __VA_ARGS__))
#define ENGINE(at, node, name, function, parameters, ...) PUT_IN_CONTEXT(name, parameters, function(__VA_ARGS__))
#define ENGINE_BOTH(at, node, at_spt, node_spt, name, function, parameters, ...)                                       \
    PUT_IN_CONTEXT(name, parameters, function(__VA_ARGS__))                                                            \
    PUT_IN_CONTEXT(name##_spt, parameters, function##_ptsz(__VA_ARGS__))
#define CALL(at, node, name, parameters, arguments, call) PUT_IN_CONTEXT(name, parameters, call)
#define OTHER(at, node, type, name, parameters, ...) PUT_OTHER(type, name, parameters, __VA_ARGS__)
#define OUTSIDE OTHER
#include "api.def"
#undef HIP
#undef HIP_BOTH
#undef ENGINE
#undef ENGINE_BOTH
#undef CALL
#undef OTHER
#undef OUTSIDE

/* ---- the exported functions ---- */

#define EXPORT(type, name, parameters, where, arguments)                                                               \
    HIP_API type name parameters;                                                                                      \
    type name parameters {                                                                                             \
        return ((type(*) parameters)where)arguments;                                                                   \
    }
#define HIP(at, node, name, parameters, ...) EXPORT(hipError_t, name, parameters, hip_in_runtime(at), (__VA_ARGS__))
#define HIP_BOTH(at, node, at_spt, node_spt, name, parameters, ...)                                                    \
    HIP(at, node, name, parameters, __VA_ARGS__)                                                                       \
    HIP(at_spt, node_spt, name##_spt, parameters, __VA_ARGS__)
#define ENGINE(at, node, name, function, parameters, ...) HIP(at, node, name, parameters, __VA_ARGS__)
#define ENGINE_BOTH(at, node, at_spt, node_spt, name, function, parameters, ...)                                       \
    HIP_BOTH(at, node, at_spt, node_spt, name, parameters, __VA_ARGS__)
#define CALL(at, node, name, parameters, arguments, call)                                                              \
    EXPORT(hipError_t, name, parameters, hip_in_runtime(at), arguments)
#define OTHER(at, node, type, name, parameters, ...) EXPORT(type, name, parameters, hip_in_runtime(at), (__VA_ARGS__))
#define OUTSIDE(at, node, type, name, parameters, ...) EXPORT(type, name, parameters, table_##name, (__VA_ARGS__))
#include "api.def"
