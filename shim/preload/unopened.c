/* At the end of a process without a GPU call through our hooks: was a GPU used past them? */
#include <string.h>
#include <sys/resource.h>

#include "../sys/kernel.h"
#include "../sys/sys.h"
#include "../text.h"
#include "../gpu/page.h"
#include "preload.h"

/* NVIDIA's driver maps /dev/nvidia-uvm while there is a context. Programs that only count or watch GPUs have no
 * context, but NVML initializes the driver for them, too (tools/gpu/README.md). */
static bool has_context_mapped(void) {
    static const char name[] = "/dev/nvidia-uvm";
    char bytes[4096];
    size_t kept = 0;
    long got;
    bool found = false;
    const int file = kernel_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (file >= 0 && !found && (got = kernel_read(file, bytes + kept, sizeof bytes - kept)) > 0) {
        const size_t size = kept + (size_t)got;
        for (size_t i = 0; !found && i + sizeof name - 1 <= size; i++)
            /* NOLINTNEXTLINE(clang-analyzer-unix.cstring.UninitializedRead): the kernel has written it */
            found = memcmp(bytes + i, name, sizeof name - 1) == 0;
        kept = size < sizeof name ? size : sizeof name - 1; /* the name may be split between two reads */
        /* NOLINTNEXTLINE(clang-analyzer-unix.cstring.UninitializedRead): the kernel has written it */
        memmove(bytes, bytes + size - kept, kept);
    }
    if (file >= 0)
        kernel_close(file);
    return found;
}

/* The HIP runtime opens /dev/kfd once, when it is initialized. */
static bool has_kfd_open(void) {
    static const char name[] = "/dev/kfd";
    for (uint64_t fd = 0; fd < 256; fd++) {
        char link[48], target[sizeof name] = "";
        struct overlap_text text = overlap_text_in(link, sizeof link);
        overlap_text_add(&text, "/proc/self/fd/");
        overlap_text_number(&text, fd, false);
        if (kernel4(SYS_readlinkat, AT_FDCWD, (long)link, (long)target, sizeof target) == sizeof name - 1 &&
            memcmp(target, name, sizeof name - 1) == 0)
            return true;
    }
    return false;
}

/* A program that initialised the driver through a hook, to count AMD's GPUs, is assumed to launch through hooks as well. */
void overlap_look_for_unseen(void) {
    if (has_context_mapped() || (!overlap_page_is_initialised() && has_kfd_open()))
        overlap_page_opened();
}

/* May child processes have used the GPU? A child that was waited for has touched pages. True if the kernel does not
 * say. */
bool overlap_had_children(void) {
    struct rusage usage = {0};
    return kernel3(SYS_getrusage, RUSAGE_CHILDREN, (long)&usage, 0) != 0 || usage.ru_minflt > 0;
}
