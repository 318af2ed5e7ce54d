/* What can be found out before the loader has relocated this library.
 *
 * Libraries are relocated last to first, so those behind us come before us. With LD_BIND_NOW one of their resolvers
 * (STT_GNU_IFUNC) may then call dlsym, which is ours. At that point no address of another object is known, our own
 * pointers are not relocated, and nothing but the kernel can be called.
 */
#include <elf.h>
#include <link.h>

#include "kernel.h"

/* Holds its own address once relocated. NOLINTNEXTLINE(misc-static-initialization-cycle): an address is no value */
static const volatile void *const volatile here = &here;

bool overlap_bound(void) {
    return here == &here;
}

/* The loader stores the list in the program's dynamic section before it binds anything (DT_DEBUG, elf(5)); the kernel
 * says where that is (getauxval(3): AT_PHDR). NULL if the loader itself was started as the program, or if /proc is
 * missing. */
const struct r_debug *overlap_unbound_list(void) {
    ElfW(auxv_t) vector[64]; /* not zeroed: compilers call memset for that */
    const int file = kernel_open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    const long size = kernel_read(file, vector, sizeof vector);
    const ElfW(auxv_t) *const end = vector + (size > 0 ? (size_t)size / sizeof *vector : 0);
    kernel_close(file);
    const ElfW(Phdr) *headers = NULL;
    uintptr_t count = 0, base = 0;
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the kernel has written up to `end` */
    for (const ElfW(auxv_t) *entry = vector; entry < end && entry->a_type != AT_NULL; entry++) {
        if (entry->a_type == AT_PHDR)
            headers = (const ElfW(Phdr) *)entry->a_un.a_val;
        else if (entry->a_type == AT_PHNUM)
            count = entry->a_un.a_val;
    }
    const ElfW(Dyn) *dynamic = NULL;
    bool placed = false; /* `base` is known; it is 0 if the program is not position-independent */
    for (uintptr_t i = 0; headers && i < count; i++) {
        if (headers[i].p_type == PT_PHDR) { /* precedes the others */
            base = (uintptr_t)headers - headers[i].p_vaddr;
            placed = true;
        } else if (placed && headers[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(base + headers[i].p_vaddr);
    }
    while (dynamic && dynamic->d_tag != DT_NULL && dynamic->d_tag != DT_DEBUG)
        dynamic++;
    return dynamic && dynamic->d_tag == DT_DEBUG ? (const struct r_debug *)dynamic->d_un.d_ptr : NULL;
}
