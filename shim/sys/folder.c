/* Files of ours in folders of others: pages and traces. Nothing of another user is followed, opened or replaced. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include "../text.h"
#include "kernel.h"

enum { MOST_FILES = 1000 /* of one host name and process id */ };

bool overlap_may_grow(uint64_t size) {
    struct rlimit limit = {0};
    return kernel4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           size <= limit.rlim_cur;
}

int overlap_folder_open_any(const char *folder) {
    return kernel_open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The folder of a name, held open: what is checked is what is written to, whatever is renamed meanwhile. A negative errno:
 * EPERM where it is another user's, who could put files of his in the place of ours. */
int overlap_folder_open(const char *path) {
    int folder = overlap_folder_open_any(path);
    if (folder < 0 || overlap_is_trusted(folder))
        return folder;
    kernel_close(folder);
    return -EPERM;
}

/* New, not through a link, for the user only, whatever the umask; or a negative errno. Where the program has closed its input or
 * output, that number is not for us: what the program prints next would go into our file. */
static int create(int folder, const char *name, int flags) {
    enum { STDERR = 2 };
    int file = kernel_openat(folder, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (file >= 0 && file <= STDERR) {
        const int higher = (int)kernel3(SYS_fcntl, file, F_DUPFD_CLOEXEC, STDERR + 1);
        kernel_close(file);
        if (higher < 0)
            kernel_unlinkat(folder, name);
        file = higher;
    }
    if (file >= 0)
        kernel3(SYS_fchmod, file, 0600, 0);
    return file;
}

/* gethostname(2). */
void overlap_host_name(char *name, size_t size) {
    int (*ask)(char *, size_t) = (int (*)(char *, size_t))overlap_behind_us("gethostname");
    name[0] = name[size - 1] = 0;
    if (ask && ask(name, size - 1) != 0)
        name[0] = 0;
}

/* File systems without fallocate(2) get the new bytes written. */
int overlap_file_allocate(int file, size_t before, size_t size) {
    const char zeros[1024] = {0}; /* on the stack: every process of a job maps what is static */
    long done;
    do
        done = kernel4(SYS_fallocate, file, 0, (long)before, (long)(size - before));
    while (done == -EINTR);
    if (done != -EOPNOTSUPP && done != -ENOSYS)
        return (int)done;
    for (size_t at = before; at < size; at += (size_t)done) {
        done = kernel4(SYS_pwrite64, file, (long)zeros, (long)(size - at < sizeof zeros ? size - at : sizeof zeros),
                       (long)at);
        if (done <= 0)
            return done ? (int)done : -ENOSPC;
    }
    return 0;
}

/* Pages of network file systems are not written back after a kill, and a mapped one may hang with its server; on
 * copy-on-write ones an allocated page may find the disk full when it is written again. f_type values of statfs(2):
 * NFS, Lustre, GPFS, BeeGFS, Ceph, CIFS, SMB2, 9P, AFS, Panasas, FUSE; btrfs, bcachefs. */
bool overlap_folder_is_unsafe(const char *directory) {
    static const uint64_t types[] = {0x6969,     0x0BD00BD0, 0x47504653, 0x19830326, 0x00C36400, 0xFF534D42, 0xFE534D42,
                                     0x01021997, 0x5346414F, 0xAAD7AAEA, 0x65735546, 0x9123683E, 0xCA451A4E};
    struct statfs info;
    int (*ask)(const char *, struct statfs *) = (int (*)(const char *, struct statfs *))overlap_behind_us("statfs");
    if (!ask || ask(directory, &info) != 0)
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((uint32_t)info.f_type == types[i])
            return true;
    return false;
}

/* A new file PREFIX + HOST.PID.N + SUFFIX in an open folder; its descriptor, or a negative errno. N counts from `first` what one
 * process id has made: a program that execs, a reused id, another container of the same host name. */
int overlap_folder_create(char *name, int folder, const char *prefix, uint64_t first, const char *suffix, int flags) {
    char host[64];
    overlap_host_name(host, sizeof host);
    if (!host[0])
        memcpy(host, "host", sizeof "host");
    for (char *p = host; *p; p++)
        if (*p == '/')
            *p = '_';
    for (uint64_t n = first; n < first + MOST_FILES; n++) {
        struct overlap_text text = overlap_text_in(name, OVERLAP_NAME_SIZE);
        const char *parts[] = {prefix, host, "."};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            overlap_text_add(&text, parts[i]);
        overlap_text_number(&text, (uint64_t)overlap_pid(), false);
        overlap_text_add(&text, ".");
        overlap_text_number(&text, n, false);
        overlap_text_add(&text, suffix);
        int file = create(folder, name, flags);
        if (file != -EEXIST)
            return file;
    }
    return -EEXIST;
}

/* Return an unpredictable number for a file name: /dev/shm is world-writable. */
uint64_t overlap_unguessable(void) {
    uint32_t number = (uint32_t)overlap_clock(); /* Linux before 3.17 */
#ifdef SYS_getrandom
    kernel3(SYS_getrandom, (long)&number, sizeof number, 1 /* GRND_NONBLOCK */);
#endif
    return number;
}
