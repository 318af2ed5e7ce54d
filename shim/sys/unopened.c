/* A program that was started on a simulated GPU and never used it.
 *
 * On a real GPU that is nothing unusual. Who asks for a simulated one has a program in mind that uses it. */
#include <sys/resource.h>

#include "kernel.h"

/* Whether child processes may have used the GPU. A child that was waited for has touched pages. Where the kernel does not
 * say: maybe. */
bool overlap_had_children(void) {
    struct rusage usage = {0};
    return kernel3(SYS_getrusage, RUSAGE_CHILDREN, (long)&usage, 0) != 0 || usage.ru_minflt > 0;
}

void overlap_unopened_say(void) {
    /* Not for each of the processes that a launcher starts. */
    const uint32_t launcher = overlap_start.settings.launcher; /* 0, most often: then the kernel is asked nothing */
    const char *const gpu = launcher && launcher == (uint32_t)overlap_pid() ? overlap_variable("SIMGPU") : NULL;
    const struct overlap_settings *const settings = gpu && !overlap_had_children() ? overlap_armed() : NULL;
    if (settings && settings->rank <= 0)
        overlap_say("the program never used the simulated GPU (", gpu,
                    "), so there was nothing to do; `demo` in its place is a program that does use it");
}
