/* Says of folders whose path contains "network" that they are on NFS. */
#include <string.h>
#include <sys/vfs.h>

#include "answering.h"

static long answer(const long *arguments) {
    const long passed[6] = {arguments[0], arguments[1], 0, 0, 0, PASSES};
    const long result = call6(SYS_statfs, passed);
    if (result == 0 && strstr((const char *)arguments[0], "network"))
        ((struct statfs *)arguments[1])->f_type = 0x6969;
    return result;
}

__attribute__((constructor)) static void start(void) {
    stand_before(SYS_statfs, 5);
}
