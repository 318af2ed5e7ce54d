/* The hot paths of cuLaunchKernel and cuLaunchKernelEx for x86-64: the same as launch_body() in launch_portable.h and launch_ex_body()
 * in launch.h, which say it in C.
 *
 * In assembler because five of cuLaunchKernel's eleven arguments lie on the stack: here they stay there and the size is patched in
 * place, while C moves all of them to and fro (40 instructions more).
 */
#include "../common/hot_x86_64.S"

#ifdef __x86_64__
    .hidden launch_cache, this_thread, real_launches, window_version, critical_bloom
/* The rest of cuLaunchKernel, r11 being the caller's address. counted: the way in under which it is counted */
    .macro kernel_from symbol, hook, way, counted
    kernel_key .Lslow_\symbol
    find_chain %rdi
    kernel_blocks .Lslow_\symbol
    find_word %rdi, .Lslow_\symbol
    .if \way == 0                       /* before the others are given out, it is known what is behind them */
    cmpq $0, real_launches + 32 * \hook(%rip)
    je .Lslow_\symbol
    .endif
    test $0x4000000, %eax               /* direct */
    je .Lfound_\symbol
    count_direct \counted, .Lslow_\symbol
    go_with 16(%rsp), \hook, \way
    .endm

/* Inside a call of NVIDIA's runtime, its caller counts. */
    .macro launch_kernel symbol, name, hook, way, whose, slow, found
    .type \symbol, @function
    .p2align 5
\symbol:
    .cfi_startproc
    endbr64
    mov this_thread@gottpoff(%rip), %r11
    cmpq $0, %fs:8(%r11)
    jne .Louter_\symbol
    mov (%rsp), %r11
    kernel_from \symbol, \hook, \way, \way
.Louter_\symbol:
    mov %fs:8(%r11), %r11
    kernel_from \symbol, \hook, \way, 3
.Lfound_\symbol:
    not_raised %rax, 24(%rsp), .Lgiven_\symbol
    mov this_thread@gottpoff(%rip), %r11
    bt $42, %rax
    jc .Lbeside_\symbol
    bt $51, %rax                        /* windowed */
    jnc .Lgiven_\symbol
    window_known %rax, %r11, 24(%rsp), \whose, .Lask_\symbol, .Lgiven_\symbol
.Ltold_\symbol:
    find_shard %r11, .Lgiven_\symbol
    in_window 16(%rsp), \hook, \way, \way, 1, .Lgiven_\symbol
.Lask_\symbol:
    ask_window %r11, 24(%rsp), \whose, .Ltold_\symbol, .Lgiven_\symbol
.Lbeside_\symbol:
    beside %rax, %r11, \hook, \way, \way, 1, .Lgiven_\symbol
.Lgiven_\symbol:                        /* the word goes where 32-bit arguments leave room on the stack */
    .hidden \found
    mov %eax, 12(%rsp)
    shr $32, %rax
    mov %eax, 20(%rsp)
    jmp \found
.Lslow_\symbol:
    jmp \slow
    .cfi_endproc
    .size \symbol, . - \symbol
    .endm

/* The rest of cuLaunchKernelEx, r11 being the caller's address and r9 the place of this_thread. */
    .macro ex_from symbol, hook, way, counted
    mov 12(%rdi), %eax
    imul 16(%rdi), %eax
    imul 20(%rdi), %eax
    shl $18, %rax
    mov 24(%rdi), %r10d
    cmp $0x3ffff, %r10d
    ja .Lslow_\symbol
    add %r10, %rax
    find_chain %rsi
    mov (%rdi), %r10d
    imul 4(%rdi), %r10d
    jo .Lslow_\symbol
    imul 8(%rdi), %r10d
    jo .Lslow_\symbol
    find_word %rsi, .Lslow_\symbol
    .if \way == 0                       /* before the others are given out, it is known what is behind them */
    cmpq $0, real_launches + 32 * \hook(%rip)
    je .Lslow_\symbol
    .endif
    mov %rax, %r8
    and $0x6000000, %eax                /* direct, and not changed */
    cmp $0x4000000, %eax
    jne .Lfound_\symbol
    count_direct \counted, .Lslow_\symbol, %r8
    go \hook, \way
    .endm

/* configuration rdi, function rsi. Attributes that matter to shaping, and sizes that change, are for C. */
    .macro launch_ex symbol, name, hook, way, whose, slow, found
    .type \symbol, @function
    .p2align 5
\symbol:
    .cfi_startproc
    endbr64
    test %rdi, %rdi
    je .Lslow_\symbol
    mov this_thread@gottpoff(%rip), %r9
    cmpl $0, 48(%rdi)
    jne .Lattributes_\symbol
.Lplain_\symbol:
    cmpq $0, %fs:8(%r9)
    jne .Louter_\symbol
    mov (%rsp), %r11
    ex_from \symbol, \hook, \way, \way
.Louter_\symbol:
    mov %fs:8(%r9), %r11
    ex_from \symbol, \hook, \way, 3
.Lattributes_\symbol:                   /* 72 bytes each; cooperative 2, cluster 4 and 11, programmatic 6 and 7, event 12, carve-out 14: not for here */
    mov 48(%rdi), %r10d
    mov 40(%rdi), %r11
    test %r11, %r11
    je .Lslow_\symbol
    mov $0x58d4, %r8d
4:  mov (%r11), %eax
    cmp $31, %eax
    ja .Lslow_\symbol
    bt %eax, %r8d
    jc .Lslow_\symbol
    add $72, %r11
    dec %r10d
    jne 4b
    jmp .Lplain_\symbol
.Lfound_\symbol:                        /* inside a window it needs a frame: for C */
    not_raised %r8, 32(%rdi), .Lgiven_\symbol
    bt $42, %r8
    jc .Lbeside_\symbol
    bt $51, %r8                         /* windowed */
    jnc .Lgiven_\symbol
    window_known %r8, %r9, 32(%rdi), \whose, .Lask_\symbol, .Lgiven_\symbol
.Ltold_\symbol:
    find_shard %r9, .Lgiven_\symbol
    cmpl $1, %fs:36(%r9)
    je .Lgiven_\symbol
    mov %r8, %rax
    outside %r9, \hook, \way, \way, 1, .Lgiven_\symbol
.Lask_\symbol:
    ask_window %r9, 32(%rdi), \whose, .Ltold_\symbol, .Lgiven_\symbol
.Lbeside_\symbol:
    beside %r8, %r9, \hook, \way, \way, 1, .Lgiven_\symbol
.Lgiven_\symbol:                        /* the word is the fifth argument: r8 */
    .hidden found_launch_ex
    mov $\way << 16 | .LHOOK_\name, %r9d
    jmp found_launch_ex
.Lslow_\symbol:
    jmp \slow
    .cfi_endproc
    .size \symbol, . - \symbol
    .endm

    .macro thunk kind, prefix, name, whose, way, number
    .globl \prefix\name
    .hidden slow_\way\()_\name
    \kind \prefix\name, \name, .LLAUNCH_\name, \number, \whose, slow_\way\()_\name, found_\way\()_\name
    .endm
    .macro launches kind, name, whose
    .hidden dlsym_\name, proc_\name
    thunk \kind, , \name, \whose, symbol, 0
    thunk \kind, dlsym_, \name, \whose, dlsym, 1
    thunk \kind, proc_, \name, \whose, proc_address, 2
    .endm

    launches launch_kernel, cuLaunchKernel, 0
    launches launch_kernel, cuLaunchKernel_ptsz, 1
    launches launch_ex, cuLaunchKernelEx, 0
    launches launch_ex, cuLaunchKernelEx_ptsz, 1
#endif
