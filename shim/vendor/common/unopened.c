/* Reports a program that was started on a simulated GPU and never used it.
 *
 * On a real GPU that is nothing unusual, but a user who asks for a simulated GPU expects the program to use it. */
#include <sys/resource.h>

#include "../../sys/kernel.h"
#include "../../sys/sys.h"
#include "page.h"

/* May child processes have used the GPU? A child that was waited for has touched pages. True if the kernel does not say. */
bool overlap_had_children(void) {
    struct rusage usage = {0};
    return kernel3(SYS_getrusage, RUSAGE_CHILDREN, (long)&usage, 0) != 0 || usage.ru_minflt > 0;
}

void overlap_unopened_say(void) {
    /* Only for the program itself, not for each process that a launcher starts. */
    const uint32_t launcher = overlap_start.settings.launcher; /* usually 0: no system call is made then */
    const char *const gpu = launcher && launcher == (uint32_t)overlap_pid() ? overlap_variable("SIMGPU") : NULL;
    const struct overlap_settings *const settings = gpu && !overlap_had_children() ? overlap_armed() : NULL;
    if (settings && settings->rank <= 0)
        overlap_say("the program never used the simulated GPU (", gpu,
                    "), so there was nothing to do; `demo` in its place is a program that does use it");
}
