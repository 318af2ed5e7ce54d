/* Makes the library's own data read-only, and writable again: a store to what all threads share is a SIGSEGV then. Counters
 * lie in the page, what a thread has for itself in its own storage; both stay writable. */
#pragma once

#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static int protect_segments(struct dl_phdr_info *object, size_t size, void *protection) {
    (void)size;
    if (!strstr(object->dlpi_name, "liboverlap.so"))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t start = (object->dlpi_addr + segment->p_vaddr) & ~(uintptr_t)4095;
        const uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_W)
            mprotect((void *)start, end - start, *(const int *)protection);
    }
    return 1;
}

static inline int library_frozen(int yes) {
    int protection = yes ? PROT_READ : PROT_READ | PROT_WRITE;
    return !dl_iterate_phdr(protect_segments, &protection);
}
