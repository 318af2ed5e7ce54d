/* What the memory of a process is that does nothing: memory LIMIT. Prints VmSize, VmData and, after mlockall(MCL_CURRENT),
 * VmLck in KiB, and the error of mlockall, 0 for none. LIMIT: bytes that an unprivileged user may lock; 0: no limit.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static long status(const char *field) {
    char line[256];
    long found = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && found < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0)
            found = strtol(line + strlen(field), NULL, 10);
    if (file)
        fclose(file);
    return found;
}

/* CAP_IPC_LOCK, which root has, would make the limit count for nothing. */
static int as_anybody(rlim_t bytes) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{0}};
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        return -1;
    limit.rlim_cur = limit.rlim_max = bytes < limit.rlim_max ? bytes : limit.rlim_max; /* it may not be raised */
    return setrlimit(RLIMIT_MEMLOCK, &limit) || syscall(SYS_capset, &header, none) ? -1 : 0;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return fprintf(stderr, "usage: memory LIMIT\n"), 2;
    const rlim_t limit = strtoull(argv[1], NULL, 10);
    if (limit && as_anybody(limit))
        return perror("memory"), 1;
    const long size = status("VmSize:"), data = status("VmData:");
    const int error = mlockall(MCL_CURRENT) ? errno : 0;
    printf("%ld %ld %ld %d\n", size, data, status("VmLck:"), error);
    return 0;
}
