/* What can be known while the loader has not bound this library yet.
 *
 * Libraries are bound last to first, so those behind us come before us, and a resolver of theirs (STT_GNU_IFUNC) that runs then
 * under LD_BIND_NOW may call dlsym, that is, us. No address of another object is known here, our own pointers are not
 * set, and nothing can be called but the kernel.
 */
#include <elf.h>
#include <link.h>

#include "kernel.h"

/* Set when we are bound. NOLINTNEXTLINE(misc-static-initialization-cycle): an address is no value */
static const volatile void *const volatile here = &here;

bool overlap_bound(void) {
    return here == &here;
}

/* The loader writes it into the program's own table before it binds anything (DT_DEBUG, elf(5)); where that table is the kernel
 * says (getauxval(3): AT_PHDR). NULL where the loader itself was started as the program, or /proc is not there. */
const struct r_debug *overlap_unbound_list(void) {
    ElfW(auxv_t) vector[64]; /* not set to zero: a compiler calls memset for that */
    const int file = kernel_open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    const long size = kernel_read(file, vector, sizeof vector);
    const ElfW(auxv_t) *const end = vector + (size > 0 ? (size_t)size / sizeof *vector : 0);
    kernel_close(file);
    const ElfW(Phdr) *headers = NULL;
    uintptr_t count = 0, base = 0;
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): up to `end` the kernel has written it */
    for (const ElfW(auxv_t) *entry = vector; entry < end && entry->a_type != AT_NULL; entry++) {
        if (entry->a_type == AT_PHDR)
            headers = (const ElfW(Phdr) *)entry->a_un.a_val;
        else if (entry->a_type == AT_PHNUM)
            count = entry->a_un.a_val;
    }
    const ElfW(Dyn) *dynamic = NULL;
    bool placed = false; /* at `base`, which is 0 where the program is not position-independent */
    for (uintptr_t i = 0; headers && i < count; i++) {
        if (headers[i].p_type == PT_PHDR) { /* comes first */
            base = (uintptr_t)headers - headers[i].p_vaddr;
            placed = true;
        } else if (placed && headers[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(base + headers[i].p_vaddr);
    }
    while (dynamic && dynamic->d_tag != DT_NULL && dynamic->d_tag != DT_DEBUG)
        dynamic++;
    return dynamic && dynamic->d_tag == DT_DEBUG ? (const struct r_debug *)dynamic->d_un.d_ptr : NULL;
}
