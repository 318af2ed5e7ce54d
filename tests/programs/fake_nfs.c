/* Says of folders whose path contains "network" that they are on NFS. */
#include <dlfcn.h>
#include <string.h>
#include <sys/vfs.h>

int statfs(const char *path, struct statfs *info) {
    int (*real)(const char *, struct statfs *) = (int (*)(const char *, struct statfs *))dlsym(RTLD_NEXT, "statfs");
    int result = real(path, info);
    if (result == 0 && strstr(path, "network"))
        info->f_type = 0x6969;
    return result;
}
