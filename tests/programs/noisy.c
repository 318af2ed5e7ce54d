/* A library to preload whose functions succeed and set errno, as POSIX allows. NOISY_REFUSES: dlopen finds nothing that is loaded
 * already (RTLD_NOLOAD), and dlerror says so. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

int gethostname(char *name, size_t size) {
    const int result = NEXT(gethostname)(name, size);
    errno = EINTR;
    return result;
}

int statfs(const char *path, struct statfs *info) {
    const int result = NEXT(statfs)(path, info);
    errno = EINTR;
    return result;
}

int clock_gettime(clockid_t which, struct timespec *now) {
    const int result = NEXT(clock_gettime)(which, now);
    errno = EINTR;
    return result;
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    void *result = NEXT(mmap)(address, size, protection, flags, file, offset);
    errno = EINTR;
    return result;
}

void *dlopen(const char *path, int mode) {
    void *result = NEXT(dlopen)(mode & RTLD_NOLOAD && getenv("NOISY_REFUSES") ? "/no/such/library" : path, mode);
    errno = EINTR;
    return result;
}
