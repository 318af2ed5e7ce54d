/* Window query of the hot paths (found_indirect in hot_x86_64.S): saves the registers that they use. */
#ifdef __x86_64__
    .text
    .globl window_cache_position_asm
    .hidden window_cache_position_asm, window_cache_position
    .type window_cache_position_asm, @function
    .p2align 4

/* In: stream r10, default stream r11d. ZF clear: the answer is cached in this_thread. Clobbers r10 and r11. */
window_cache_position_asm:
    .cfi_startproc
    .irp register, rax, rcx, rdx, rsi, rdi, r8, r9, r9 /* r9 twice: stack alignment */
    push %\register
    .cfi_adjust_cfa_offset 8
    .endr
    mov %r10, %rdi
    mov %r11d, %esi
    call window_cache_position
    test %al, %al
    .irp register, r9, r9, r8, rdi, rsi, rdx, rcx, rax
    pop %\register
    .cfi_adjust_cfa_offset -8
    .endr
    ret
    .cfi_endproc
    .size window_cache_position_asm, . - window_cache_position_asm
#endif

#ifdef __ELF__
    .pushsection .note.GNU-stack, "", %progbits
    .popsection
#endif
