/* A library that launches kernels and creates streams on its own, as communication libraries do; it is linked to the
 * driver. */
#define WAY_LINKED
#include "driver.h"

extern int cuGreenCtxStreamCreate(void **, void *, unsigned, int);
int test_launch(void *, unsigned, unsigned, unsigned, void *, void **);
int test_stream(void **);
int test_stream_of(void **, void *, int);

int test_launch(void *function, unsigned blocks, unsigned threads, unsigned shared, void *stream, void **parameters) {
    int result = cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters, 0);
    return result; /* no sibling call: the return address must be in this library */
}

int test_stream(void **stream) {
    int result = cuStreamCreate(stream, 1);
    return result;
}

/* Of a green context, or of none, with a priority. */
int test_stream_of(void **stream, void *green, int priority) {
    int result =
        green ? cuGreenCtxStreamCreate(stream, green, 1, priority) : cuStreamCreateWithPriority(stream, 1, priority);
    return result;
}
