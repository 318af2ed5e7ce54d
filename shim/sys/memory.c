/* Memory too large for the stack. Taken from the system, because malloc may be the program's. */
#include <errno.h>
#include <sys/mman.h>

#include "kernel.h"

/* Orders a mapping after the unmapping whose address it gets: race detectors do not see that order in system calls. */
static uint32_t given_back;

static void say_refused(void) {
    static uint32_t said;
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        overlap_say("the system refuses memory for the library's tables: what finds no room there is left as it is",
                    NULL, NULL);
}

void *overlap_map(size_t size) {
    typedef void *map(void *, size_t, int, int, int, off_t);
    map *ask = (map *)overlap_behind_us("mmap");
    const int saved = errno;
    void *memory = ask ? ask(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    errno = saved;
    (void)__atomic_load_n(&given_back, __ATOMIC_ACQUIRE);
    if (memory != MAP_FAILED)
        return memory;
    say_refused();
    return NULL;
}

void overlap_unmap(void *memory, size_t size) {
    __atomic_fetch_add(&given_back, 1, __ATOMIC_RELEASE);
    kernel_munmap(memory, size);
}
