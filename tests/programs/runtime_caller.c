/* Calls every name of runtime.def from here, so that this object is the caller: runtime_caller(name) is the function that
 * does it. By the names that it is linked to; ASKS: by what dlsym answers for this handle; THROUGH: a library that is another
 * such caller. */
#include "runtime_rows.h"

void *runtime_caller(const char *name);

#ifdef THROUGH
static void *target(const char *name) {
    static void *(*inner)(const char *);
    if (!inner)
        inner = (void *(*)(const char *))dlsym(dlopen(THROUGH, RTLD_NOW | RTLD_LOCAL), "runtime_caller");
    return inner(name);
}
#elif defined ASKS
static void *target(const char *name) {
    return dlsym(ASKS, name);
}
#endif

#if defined THROUGH || defined ASKS
#define EACH_ROW(name, parameters, ...)                                                                                \
    static int call_##name parameters {                                                                                \
        int(*found) parameters = (int(*) parameters)target(#name);                                                     \
        int result = found ? found(__VA_ARGS__) : -1;                                                                  \
        return result; /* no sibling call: the return address must be in here */                                       \
    }
#else
#define EACH_ROW(name, parameters, ...)                                                                                \
    static int call_##name parameters {                                                                                \
        int result = name(__VA_ARGS__);                                                                                \
        return result;                                                                                                 \
    }
#endif
#include "../../shim/cuda/runtime.def"
#undef EACH_ROW

void *runtime_caller(const char *name) {
#define EACH_ROW(row, ...)                                                                                             \
    if (strcmp(name, #row) == 0)                                                                                       \
        return (void *)call_##row;
#include "../../shim/cuda/runtime.def"
#undef EACH_ROW
    return NULL;
}
