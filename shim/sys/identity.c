/* Is a descriptor still the file that it was? A program may close it, a daemon closes all, and the next file that the
 * program opens has its number: that one must not get what is ours. */
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "private.h"

/* The system call itself: fstat() is a libc function only since glibc 2.33, and the kernel's structure is libc's here.
 */
OVERLAP_STARTUP static bool look(int descriptor, struct stat *now) {
    int saved = errno;
    bool known = descriptor >= 0 && syscall(SYS_fstat, descriptor, now) == 0;
    errno = saved;
    return known;
}

OVERLAP_STARTUP static bool ask(int descriptor, struct overlap_identity *found) {
    struct stat now;
    bool known = look(descriptor, &now);
    if (known)
        *found = (struct overlap_identity){.device = now.st_dev, .inode = now.st_ino, .known = true};
    return known;
}

OVERLAP_STARTUP struct overlap_identity overlap_identify(int descriptor) {
    struct overlap_identity found = {0};
    ask(descriptor, &found);
    return found;
}

bool overlap_is_still(int descriptor, const struct overlap_identity *before) {
    struct overlap_identity now;
    return before->known && ask(descriptor, &now) && now.device == before->device && now.inode == before->inode;
}

/* What file servers and user namespaces say of users whom they do not know, root among them: exports(5),
 * user_namespaces(7). */
enum { NOBODY = 65534 };

bool overlap_is_trusted(int folder) {
    struct stat now;
    const uid_t user = geteuid();
    return look(folder, &now) && (now.st_uid == user || now.st_uid == 0 || now.st_uid == NOBODY || user == 0);
}
