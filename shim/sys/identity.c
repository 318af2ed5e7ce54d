/* Is a descriptor still open on the same file? A program may close it (a daemon closes all), and the next file that the
 * program opens gets its number. We must not write into that file. */
#include <sys/stat.h>

#include "kernel.h"

OVERLAP_STARTUP static bool look(int descriptor, struct stat *now) {
    return descriptor >= 0 && kernel3(SYS_fstat, descriptor, (long)now, 0) == 0;
}

OVERLAP_STARTUP struct overlap_identity overlap_identify(int descriptor) {
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
