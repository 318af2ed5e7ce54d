/* dlsym, dlvsym and dlclose for x86-64.
 *
 * A name that cannot be ours is passed on by a jump, so that RTLD_NEXT and RTLD_DEFAULT still see the caller's return
 * address. With a call from C they would resolve from this library, and a program that looks for its own next
 * definition would find itself (endless recursion). Compilers do not guarantee sibling calls, hence assembly.
 *
 * dlopen is not hooked: Nsight Compute takes a preloaded library that defines it for the driver
 * (docs/how-to/profile.md).
 *
 * Nothing here may rely on an initialized libc: dlsym is called in preinit arrays, in constructors that run before
 * ours, and by sanitizer runtimes during their start.
 */
#ifdef __x86_64__
    .text

/* name: of the entry; real: variable that holds the real function; start: C function that finds the real function;
 * hook: C function for names that may be ours. The hook gets the same arguments, and after them the return address of
 * the caller. */
    .macro lookup name, real, start, hook
    .globl \name
    .hidden \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    mov \real(%rip), %rax
    test %rax, %rax
    je .Lstart_\name
.Lready_\name:
    test %rsi, %rsi
    je .Lreal_\name
    cmpb $'c', (%rsi)
    jne .Lother_\name
    cmpb $'u', 1(%rsi)
    jne .Lreal_\name
    movzbl 2(%rsi), %r11d               /* a capital letter follows in the driver's names, `da` and one in its runtime's */
    cmp $'d', %r11d
    je .Lruntime_\name
    sub $'A', %r11d
    cmp $25, %r11d
    ja .Lreal_\name
.Lours_\name:
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    mov 24(%rsp), %rcx
    call \hook
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    test %rax, %rax
    jne .Lanswer_\name
    mov \real(%rip), %rax
.Lreal_\name:
    jmp *%rax
.Lruntime_\name:                        /* cudaL... or cudaS... */
    cmpb $'a', 3(%rsi)
    jne .Lreal_\name
    cmpb $'L', 4(%rsi)
    je .Lours_\name
    cmpb $'S', 4(%rsi)
    je .Lours_\name
    jmp *%rax
.Lother_\name:                          /* hip..., __c..., __h..., _Z2..., rocp... */
    cmpb $'h', (%rsi)
    je .Lhip_\name
    cmpb $'_', (%rsi)
    je .Lunderscore_\name
    cmpb $'r', (%rsi)
    jne .Lreal_\name
    cmpb $'o', 1(%rsi)
    jne .Lreal_\name
    cmpb $'c', 2(%rsi)
    jne .Lreal_\name
    cmpb $'p', 3(%rsi)
    je .Lours_\name
    jmp *%rax
.Lhip_\name:
    cmpb $'i', 1(%rsi)
    jne .Lreal_\name
    cmpb $'p', 2(%rsi)
    je .Lours_\name
    jmp *%rax
.Lunderscore_\name:
    cmpb $'_', 1(%rsi)
    je .Lreserved_\name
    cmpb $'Z', 1(%rsi)
    jne .Lreal_\name
    cmpb $'2', 2(%rsi)
    je .Lours_\name
    jmp *%rax
.Lreserved_\name:
    cmpb $'c', 2(%rsi)
    je .Lours_\name
    cmpb $'h', 2(%rsi)
    je .Lours_\name
    jmp *%rax
.Lanswer_\name: /* OVERLAP_NO_SYMBOL is 1 */
    cmp $1, %rax
    jne .Ldone_\name
    xor %eax, %eax
.Ldone_\name:
    ret
.Lstart_\name:
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    call \start
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    test %rax, %rax
    jne .Lready_\name
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    lookup overlap_dlsym_entry, overlap_real_dlsym, overlap_find_dlsym, overlap_dlsym_hook
    lookup overlap_dlvsym_entry, overlap_real_dlvsym, overlap_find_dlvsym, overlap_dlvsym_hook

/* dlclose is written in C (bind.c), because it does not depend on the caller's return address. */
    .globl overlap_dlclose_entry
    .hidden overlap_dlclose_entry, overlap_dlclose
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
