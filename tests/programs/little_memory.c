/* mmap for a process that gets no large pieces of memory any more: preloaded behind the library. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGE = 16 << 20 };

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    if (length >= LARGE && flags & MAP_ANONYMOUS && file == -1 && protection == (PROT_READ | PROT_WRITE)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}
