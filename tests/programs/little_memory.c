/* mmap for a process that gets no pieces of memory from LARGE to LARGEST KiB any more: preloaded behind the library. The
 * simulated driver's own piece is larger than 128 MiB. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef LARGE
#define LARGE 128
#define LARGEST 131071
#endif

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    if (length >= (size_t)LARGE << 10 && length <= (size_t)LARGEST << 10 && flags & MAP_ANONYMOUS && file == -1 &&
        protection == (PROT_READ | PROT_WRITE)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}
