/* Creates our files, pages, in directories that others may own. Files and symlinks of other users are never
 * followed, opened or replaced. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "../text.h"
#include "kernel.h"

enum { MOST_FILES = 1000 /* per host name and process id */ };

/* ---- Whose file, and which one, is a descriptor of? ---- */

static bool look(int descriptor, struct stat *now) {
    return descriptor >= 0 && kernel3(SYS_fstat, descriptor, (long)now, 0) == 0;
}

/* A program may close a descriptor of ours (a daemon closes all), and the next file that the program opens gets its
 * number. We must not write into that file. */
struct overlap_identity overlap_identify(int descriptor) {
    struct stat now;
    if (!look(descriptor, &now))
        return (struct overlap_identity){.known = false};
    return (struct overlap_identity){.device = now.st_dev, .inode = now.st_ino, .known = true};
}

bool overlap_is_still(int descriptor, const struct overlap_identity *before) {
    struct stat now;
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the kernel has written it */
    return before->known && look(descriptor, &now) && now.st_dev == before->device && now.st_ino == before->inode;
}

/* The uid that file servers and user namespaces report for unmapped users, root included: exports(5),
 * user_namespaces(7). */
enum { NOBODY = 65534 };

bool overlap_is_trusted(int folder) {
    struct stat now;
    const uid_t user = (uid_t)kernel0(SYS_geteuid);
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the kernel has written it */
    return look(folder, &now) && (now.st_uid == user || now.st_uid == 0 || now.st_uid == NOBODY || user == 0);
}

/* ---- Pages ---- */

bool overlap_may_grow(uint64_t size) {
    struct rlimit limit = {0};
    return kernel4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           size <= limit.rlim_cur;
}

int overlap_folder_open_any(const char *folder) {
    return kernel_open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Opens a directory by name and holds it open, so that the directory that was checked is the one that is written to,
 * whatever is renamed meanwhile. Returns a negative errno on failure: EPERM if another user owns it, who could replace
 * our files. */
int overlap_folder_open(const char *path) {
    int folder = overlap_folder_open_any(path);
    if (folder < 0 || overlap_is_trusted(folder))
        return folder;
    kernel_close(folder);
    return -EPERM;
}

/* Creates a new file for this user only, whatever the umask, without following a symlink; or returns a negative errno.
 * A descriptor up to 2, which the program has closed, is moved up: the program's next output would go into our file. */
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

/* gethostname(2) of libc or of a library behind us; empty on failure. */
void overlap_host_name(char *name, size_t size) {
    int (*ask)(char *, size_t) = (int (*)(char *, size_t))overlap_behind_us("gethostname");
    name[0] = name[size - 1] = 0;
    if (ask && ask(name, size - 1) != 0)
        name[0] = 0;
}

/* Writes zeros on file systems without fallocate(2). */
int overlap_file_allocate(int file, size_t before, size_t size) {
    const char zeros[1024] = {0}; /* on the stack: every process of a job would map static data */
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

/* Network file systems do not write a mapped page back after a kill, and its process may hang with the server.
 * Copy-on-write file systems may find the disk full when an allocated page is written again. f_type values of
 * statfs(2): NFS, Lustre, GPFS, BeeGFS, Ceph, CIFS, SMB2, 9P, AFS, Panasas, FUSE; btrfs, bcachefs. */
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

/* Creates a new file PREFIX + HOST.PID.N + SUFFIX in an open directory. Returns its descriptor, or a negative errno. N
 * counts up from `first`: one process id may need several files, because of exec, a reused id, or another container
 * with the same host name. */
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

/* Returns an unpredictable number for a file name: /dev/shm is world-writable. */
uint64_t overlap_unguessable(void) {
    uint32_t number = (uint32_t)overlap_clock(); /* Linux before 3.17 */
#ifdef SYS_getrandom
    kernel3(SYS_getrandom, (long)&number, sizeof number, 1 /* GRND_NONBLOCK */);
#endif
    return number;
}
