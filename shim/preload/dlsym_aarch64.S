/* dlsym, dlvsym and dlclose for aarch64: see dlsym_x86_64.S. */
#ifdef __aarch64__
    .text

/* hook: gets the same arguments and the caller's return address. It returns the function to jump to in x0; NULL: the
 * answer is in x1. */
    .macro lookup name, hook
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    hint #34 /* bti c */
    stp x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x30, 8
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    mov x3, x30
    bl \hook
    mov x16, x0
    mov x17, x1
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x30
    cbz x16, .Lanswer_\name
    br x16
.Lanswer_\name:
    mov x0, x17
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    lookup overlap_dlsym_entry, overlap_dlsym_hook
    lookup overlap_dlvsym_entry, overlap_dlvsym_hook

    .type overlap_dlclose_entry, @function
overlap_dlclose_entry:
    .cfi_startproc
    hint #34 /* bti c */
    b overlap_dlclose
    .cfi_endproc
    .size overlap_dlclose_entry, . - overlap_dlclose_entry

    .macro version alias, entry, symbol
    .globl \alias
    .type \alias, @function
    .set \alias, \entry
    .symver \alias, \symbol
    .endm

    version overlap_dlsym_old, overlap_dlsym_entry, dlsym@GLIBC_2.17
    version overlap_dlsym_new, overlap_dlsym_entry, dlsym@@GLIBC_2.34
    version overlap_dlvsym_old, overlap_dlvsym_entry, dlvsym@GLIBC_2.17
    version overlap_dlvsym_new, overlap_dlvsym_entry, dlvsym@@GLIBC_2.34
    version overlap_dlclose_old, overlap_dlclose_entry, dlclose@GLIBC_2.17
    version overlap_dlclose_new, overlap_dlclose_entry, dlclose@@GLIBC_2.34
#endif

#ifdef __ELF__
    .section .note.GNU-stack, "", %progbits
#endif
