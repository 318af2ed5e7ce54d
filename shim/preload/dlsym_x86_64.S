/* dlsym, dlvsym and dlclose for x86-64.
 *
 * A call that is not answered here goes on by a jump, so that RTLD_NEXT and RTLD_DEFAULT still see the caller's return
 * address. With a call from C they would resolve from this library, and a program that looks for its own next
 * definition would find itself (endless recursion). Compilers do not guarantee sibling calls, hence assembly.
 *
 * dlopen is not hooked: Nsight Compute takes a preloaded library that defines it for the driver
 * (docs/how-to/profile.md).
 */
#ifdef __x86_64__
    .text

/* hook: gets the same arguments and the caller's return address. It returns the function to jump to in rax; NULL: the
 * answer is in rdx. */
    .macro lookup name, hook
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    mov 24(%rsp), %rcx
    call \hook
    mov %rdx, %r11
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    test %rax, %rax
    je .Lanswer_\name
    jmp *%rax
.Lanswer_\name:
    mov %r11, %rax
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    lookup overlap_dlsym_entry, overlap_dlsym_hook
    lookup overlap_dlvsym_entry, overlap_dlvsym_hook

/* dlclose does not depend on the caller's return address. */
    .type overlap_dlclose_entry, @function
overlap_dlclose_entry:
    .cfi_startproc
    endbr64
    jmp overlap_dlclose
    .cfi_endproc
    .size overlap_dlclose_entry, . - overlap_dlclose_entry

/* alias: exported under a version node of the linker script */
    .macro version alias, entry, symbol
    .globl \alias
    .type \alias, @function
    .set \alias, \entry
    .symver \alias, \symbol
    .endm

    version overlap_dlsym_old, overlap_dlsym_entry, dlsym@GLIBC_2.2.5
    version overlap_dlsym_new, overlap_dlsym_entry, dlsym@@GLIBC_2.34
    version overlap_dlvsym_old, overlap_dlvsym_entry, dlvsym@GLIBC_2.2.5
    version overlap_dlvsym_new, overlap_dlvsym_entry, dlvsym@@GLIBC_2.34
    version overlap_dlclose_old, overlap_dlclose_entry, dlclose@GLIBC_2.2.5
    version overlap_dlclose_new, overlap_dlclose_entry, dlclose@@GLIBC_2.34
#endif

#ifdef __ELF__
    .section .note.GNU-stack, "", %progbits
#endif
