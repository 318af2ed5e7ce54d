/* System calls without libc. A program may define names like `open` or `poll` (ISO C 7.1.3 reserves only C's own), and
 * the loader would bind our calls to such a function. Each function returns the kernel's result, a negative errno on
 * failure, and does not change errno. libc's structures are the kernel's on the processors that we support.
 */
#pragma once

#include <fcntl.h>
#include <linux/limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "system.h"

static inline long kernel6(long number, long a, long b, long c, long d, long e, long f) {
#ifdef __x86_64__
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}
static inline long kernel4(long number, long a, long b, long c, long d) {
    return kernel6(number, a, b, c, d, 0, 0);
}
static inline long kernel3(long number, long a, long b, long c) {
    return kernel6(number, a, b, c, 0, 0, 0);
}
static inline long kernel0(long number) {
    return kernel6(number, 0, 0, 0, 0, 0, 0);
}

/* Between two looks at a word that another processor changes soon. */
static inline void kernel_relax(void) {
#ifdef __x86_64__
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

/* Keeps signal handlers out until kernel_unblock(). Returns the mask of before; the kernel's has 64 bits. */
static inline uint64_t kernel_block(void) {
    const uint64_t all = UINT64_MAX;
    uint64_t before = 0;
    kernel4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&all, (long)&before, sizeof all);
    return before;
}
static inline void kernel_unblock(uint64_t before) {
    kernel4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&before, 0, sizeof before);
}

static inline int kernel_openat(int folder, const char *path, int flags, int mode) {
    return (int)kernel4(SYS_openat, folder, (long)path, flags, mode);
}
static inline int kernel_open(const char *path, int flags) {
    return kernel_openat(AT_FDCWD, path, flags, 0);
}
static inline void kernel_close(int file) {
    kernel3(SYS_close, file, 0, 0);
}
static inline long kernel_read(int file, void *bytes, size_t size) {
    return kernel3(SYS_read, file, (long)bytes, (long)size);
}
static inline long kernel_write(int file, const void *bytes, size_t size) {
    return kernel3(SYS_write, file, (long)bytes, (long)size);
}
/* Returns how many bytes it wrote, without a NUL. */
static inline long kernel_readlink(const char *path, char *out, size_t size) {
    return kernel4(SYS_readlinkat, AT_FDCWD, (long)path, (long)out, (long)size);
}
static inline void kernel_unlinkat(int folder, const char *name) {
    kernel3(SYS_unlinkat, folder, (long)name, 0);
}
/* NULL: the call failed. */
static inline void *kernel_mmap(size_t size, int protection, int flags, int file) {
    const long result = kernel6(SYS_mmap, 0, (long)size, protection, flags, file, 0);
    return result < 0 && result > -4096 ? NULL : (void *)result;
}
static inline void kernel_munmap(void *memory, size_t size) {
    kernel3(SYS_munmap, (long)memory, (long)size, 0);
}
