/* mmap for a process that gets no pieces of memory as large as the library's model of windows any more: preloaded behind
 * it. The simulated driver's own piece is larger. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGE = 16 << 20, LARGEST = 128 << 20 };

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    if (length >= LARGE && length <= LARGEST && flags & MAP_ANONYMOUS && file == -1 &&
        protection == (PROT_READ | PROT_WRITE)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}
