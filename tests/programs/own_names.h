/* Names of libc's that a preloaded library may well call. OWN(name) each. */
/* clang-format off */
OWN(clock_gettime)
OWN(clock_nanosleep)
OWN(close) OWN(dl_iterate_phdr) OWN(dladdr) OWN(dup) OWN(dup2) OWN(fallocate) OWN(fchmod) OWN(fcntl) OWN(fstat)
    OWN(ftruncate) OWN(getauxval) OWN(getcwd) OWN(getegid) OWN(geteuid) OWN(getgid) OWN(gethostname) OWN(getpagesize)
        OWN(getpid) OWN(getppid) OWN(getrandom) OWN(getrlimit) OWN(gettid) OWN(gettimeofday) OWN(getuid) OWN(isatty)
            OWN(kill) OWN(lseek) OWN(madvise) OWN(memmem) OWN(mmap) OWN(mprotect) OWN(mremap) OWN(munmap) OWN(nanosleep)
                OWN(open) OWN(openat) OWN(poll) OWN(posix_fallocate) OWN(ppoll) OWN(pread) OWN(prlimit)
                    OWN(pthread_atfork) OWN(pwrite) OWN(read) OWN(readlink) OWN(readlinkat) OWN(rename) OWN(sched_yield)
                        OWN(select) OWN(sigaction) OWN(sigaddset) OWN(sigaltstack) OWN(sigemptyset) OWN(sigfillset)
                            OWN(sigismember) OWN(sigpending) OWN(sigprocmask) OWN(sigtimedwait) OWN(stat) OWN(statfs)
                                OWN(stpcpy) OWN(strdup) OWN(strnlen) OWN(syscall) OWN(sysconf) OWN(uname) OWN(unlink)
                                    OWN(unlinkat) OWN(usleep) OWN(write) OWN(writev)
