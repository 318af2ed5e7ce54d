/* The driver that does nothing, which counts how often it is asked about a kernel: once for each decision, at least. */
#define cuFuncGetAttribute attribute_of_nothing
#include "../../tools/bench/null_driver.c"
#undef cuFuncGetAttribute

static long asked;
API long many_asked(void);
API long many_asked(void) {
    return __atomic_load_n(&asked, __ATOMIC_RELAXED);
}
API int cuFuncGetAttribute(int *value, int attribute, void *function);
API int cuFuncGetAttribute(int *value, int attribute, void *function) {
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    return attribute_of_nothing(value, attribute, function);
}
