/* Memory for what does not fit on a stack, from the system and not from malloc, which may be the program's. */
#include <errno.h>
#include <sys/mman.h>

#include "private.h"

void *overlap_map(size_t size) {
    const int saved = errno;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved;
    return memory == MAP_FAILED ? NULL : memory;
}

void overlap_unmap(void *memory, size_t size) {
    const int saved = errno;
    munmap(memory, size);
    errno = saved;
}
