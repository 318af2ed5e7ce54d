/* A runtime that has the names of runtime.def and nothing else: every call answers ANSWER, and no driver is asked.
 *
 * NEXT: a profiler instead: every function says so on stderr and calls the next of its name.
 * NESTED: cudaLaunchKernel calls cudaLaunchKernelExC, by the name that everybody sees.
 */
#include "runtime_rows.h"

#ifndef ANSWER
#define ANSWER 0
#endif

#ifdef NESTED
#define cudaLaunchKernel not_nested
#endif
#ifdef NEXT
#define EACH_ROW(name, parameters, ...)                                                                                \
    int name parameters {                                                                                              \
        int(*next) parameters = (int(*) parameters)dlsym(RTLD_NEXT, #name);                                            \
        fprintf(stderr, "profiler: %s\n", #name);                                                                      \
        int result = next ? next(__VA_ARGS__) : -1;                                                                    \
        return result;                                                                                                 \
    }
#else
static int answer(int first, ...) {
    (void)first;
    return ANSWER;
}
#define EACH_ROW(name, parameters, ...)                                                                                \
    int name parameters {                                                                                              \
        return answer(0, __VA_ARGS__);                                                                                 \
    }
#endif
#include "../../shim/cuda/runtime.def"
#undef EACH_ROW

#ifdef NESTED
#undef cudaLaunchKernel
int cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, CUstream stream) {
    const struct { /* cudaLaunchConfig_t */
        dim3 grid, block;
        size_t dynamic;
        void *stream, *attributes;
        unsigned count;
    } config = {grid, block, shared, stream, NULL, 0};
    int result = cudaLaunchKernelExC(&config, function, arguments);
    return result;
}
#endif
