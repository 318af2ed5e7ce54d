/* cuLaunchKernel's hot path for x86-64: the same as launch_body() in launch_portable.h, which says it in C.
 *
 * In assembler because five of the eleven arguments lie on the stack: here they stay there and the size is patched in place, while C
 * moves all of them to and fro (40 instructions more). Uses rax, r10 and r11, which a call may change. Arguments (System V ABI):
 * function rdi, grid esi edx ecx, block r8d r9d 8(rsp), dynamic bytes 16(rsp); return address (rsp). Constants: launch_x86_64.h.
 */
#ifdef __x86_64__
    .text

/* symbol; hook and way as numbers; slow: the C function for everything that is not a direct hit */
    .macro launch symbol, hook, way, slow
    .type \symbol, @function
    .p2align 5
\symbol:
    .cfi_startproc
    endbr64
    mov 8(%rsp), %eax                   /* key = page of the site << 28 + threads << 18 + bytes */
    imul %r8d, %eax
    imul %r9d, %eax
    shl $18, %rax
    mov 16(%rsp), %r10d
    cmp $0x3ffff, %r10d
    ja .Lslow_\symbol
    add %r10, %rax
    mov (%rsp), %r11
    shr $12, %r11
    shl $28, %r11
    add %r11, %rax
    movabs $0x9E3779B97F4A7C15, %r11    /* line of the handle: hash, times 64 bytes */
    imul %rdi, %r11
    shr $43, %r11
    and $0x1fffc0, %r11d
    lea launch_cache(%rip), %r10
    add %r10, %r11
    cmp %rdi, (%r11)
    jne .Lslow_\symbol
    mov %ecx, %r10d                     /* blocks of the grid, 64 bits */
    mov %edx, %edx
    imul %rdx, %r10
    mov %esi, %esi
    imul %rsi, %r10
    cmp %rax, 8(%r11)
    jne .Lsecond_\symbol
    mov 16(%r11), %eax                  /* blocks - start <= length */
    sub %rax, %r10
    mov 20(%r11), %eax
    cmp %rax, %r10
    ja .Lagain_\symbol
    mov 24(%r11), %rax
.Lword_\symbol:
    test $0x4000000, %eax
    je .Lslow_\symbol
    mov thread_shard@gottpoff(%rip), %r10
    mov %fs:(%r10), %r10
    test %r10, %r10
    je .Lslow_\symbol
    cmpq $0, real_functions + 32 * \hook + 8 * \way(%rip)
    je .Lslow_\symbol
    mov %eax, %r11d                     /* count under the reason */
    shr $18, %r11d
    and $63, %r11d
    incq 64 + 320 * \way(%r10, %r11, 8)
    and $0x3ffff, %eax
    mov %eax, 16(%rsp)
    jmp *real_functions + 32 * \hook + 8 * \way(%rip)
.Lagain_\symbol:                        /* the same launch with other grids may have the second answer */
    mov 16(%r11), %eax
    add %rax, %r10
    mov 8(%r11), %rax
.Lsecond_\symbol:
    cmp %rax, 32(%r11)
    jne .Lslow_\symbol
    mov 40(%r11), %eax
    sub %rax, %r10
    mov 44(%r11), %eax
    cmp %rax, %r10
    ja .Lslow_\symbol
    mov 48(%r11), %rax
    jmp .Lword_\symbol
.Lslow_\symbol:
    jmp \slow
    .cfi_endproc
    .size \symbol, . - \symbol
    .endm

    .hidden launch_cache, thread_shard, real_functions
    .macro launches name, hook
    .globl \name, dlsym_\name, proc_\name
    .hidden dlsym_\name, proc_\name, slow_symbol_\name, slow_dlsym_\name, slow_proc_address_\name
    launch \name, \hook, 0, slow_symbol_\name
    launch dlsym_\name, \hook, 1, slow_dlsym_\name
    launch proc_\name, \hook, 2, slow_proc_address_\name
    .endm

    launches cuLaunchKernel, 0
    launches cuLaunchKernel_ptsz, 1
#endif

#ifdef __ELF__
    .section .note.GNU-stack, "", %progbits
#endif
