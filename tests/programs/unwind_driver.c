/* A driver of which some functions wait for ever: unwind.c ends the threads that are in them. */
#include <unistd.h>

#define cuStreamSynchronize cuStreamSynchronize_at_once
#include "../../tools/bench/null_driver.c"
#undef cuStreamSynchronize

static int waiting;
API int unwind_waiting(void);
API int unwind_waiting(void) {
    return __atomic_load_n(&waiting, __ATOMIC_SEQ_CST);
}

__attribute__((noreturn)) static int forever(void) {
    __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause(); /* where a thread may be cancelled */
}

/* Arguments in registers, and on the stack. */
API int cuStreamSynchronize(void *stream);
API int cuStreamSynchronize(void *stream) {
    (void)stream;
    return forever();
}
API int cuMemcpyDtoHAsync_v2(void *to, unsigned long from, unsigned long bytes, void *stream);
API int cuMemcpyDtoHAsync_v2(void *to, unsigned long from, unsigned long bytes, void *stream) {
    return to == (void *)1 && from == 2 && bytes == 3 && stream == (void *)4 ? forever() : 1;
}
API int cuMemcpyBatchAsync_v2(void *to, void *from, void *sizes, unsigned long count, void *attributes, void *indices,
                              unsigned long attribute_count, void *stream);
API int cuMemcpyBatchAsync_v2(void *to, void *from, void *sizes, unsigned long count, void *attributes, void *indices,
                              unsigned long attribute_count, void *stream) {
    return to == (void *)1 && from == (void *)2 && sizes == (void *)3 && count == 4 && attributes == (void *)5 &&
                   indices == (void *)6 && attribute_count == 7 && stream == (void *)8
               ? forever()
               : 1;
}
