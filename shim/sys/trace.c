/* The trace: one record per launch, each appended by one write(2). Records of different threads therefore never mix, a
 * kill at any moment leaves whole records, and a full disk loses records and leaves at most one torn record, which
 * readers skip. */
#include <string.h>

#include "kernel.h"

static int file = -1;
static struct overlap_identity made_as;
static uint64_t written, sequence;

void overlap_trace_open(int made) {
    made_as = overlap_identify(made);
    __atomic_store_n(&file, made, __ATOMIC_RELEASE);
}

void overlap_trace_forked(void) {
    if (overlap_is_still(file, &made_as))
        kernel_close(file); /* the parent's */
    file = -1;
    written = sequence = 0;
}

bool overlap_trace_write(struct overlap_trace *record, const char *kernel, const char *library) {
    char bytes[sizeof *record + 4096 + 256] = {0};
    size_t kernel_size = kernel ? strlen(kernel) : 0, library_size = library ? strlen(library) : 0;
    if (kernel_size > 4088)
        kernel_size = 4088;
    if (library_size > 240)
        library_size = 240;
    size_t size = (sizeof *record + kernel_size + library_size + 7) / 8 * 8;
    int to = __atomic_load_n(&file, __ATOMIC_ACQUIRE);
    record->magic = OVERLAP_TRACE_MAGIC;
    record->size = (uint32_t)size;
    record->sequence = __atomic_fetch_add(&sequence, 1, __ATOMIC_RELAXED);
    record->kernel_size = (uint16_t)kernel_size;
    record->library_size = (uint16_t)library_size;
    uint64_t total = to < 0 ? 0 : __atomic_add_fetch(&written, size, __ATOMIC_RELAXED);
    if (to < 0 || total > OVERLAP_TRACE_LIMIT || !overlap_may_grow(total) || !overlap_is_still(to, &made_as))
        return false;
    memcpy(bytes, record, sizeof *record);
    if (kernel_size)
        memcpy(bytes + sizeof *record, kernel, kernel_size);
    if (library_size)
        memcpy(bytes + sizeof *record + kernel_size, library, library_size);
    return kernel_write(to, bytes, size) == (long)size;
}
