/* The hot paths of cuLaunchKernel and cuLaunchKernelEx for x86-64, equivalent to launch_body() in launch_portable.h and
 * launch_ex_body() in launch.h.
 *
 * They are in assembler because five of cuLaunchKernel's eleven arguments are on the stack. Here they stay there and
 * the size is patched in place; C moves all of them twice (40 instructions more). A thunk stores its identity
 * (hot_x86_64.S) and jumps to the path of its kind.
 */
#include "../common/hot_x86_64.S"

#ifdef __x86_64__
    .hidden launch_cache, this_thread, real_launches, window_version, critical_bloom
    .hidden launch_from_hot, launch_ex_from_hot, cuda_slow_3_0, cuda_slow_3_5

/* r11 = the caller's address; inside a call of NVIDIA's runtime, the address of that call's caller, which then
 * counts. */
    .macro find_caller
    mov this_thread@gottpoff(%rip), %r11
    cmpq $0, %fs:8(%r11)
    jne 7f
    mov (%rsp), %r11
    .subsection 1
7:  mov %fs:8(%r11), %r11
    movb $3, -2(%rsp)
    jmp 8f
    .previous
8:
    .endm

/* Recreate what thunks_x86_64.S sets before a stub: eax = route << 16 | hook. Clobbers r11. */
    .macro thunk_of_identity
    mov -4(%rsp), %eax
    and $0xfff, %eax
    movzbl -1(%rsp), %r11d              /* the counted route may be the runtime's */
    and $3, %r11d
    shl $16, %r11d
    or %r11d, %eax
    .endm

    .type hot_launch, @function
hot_launch:
    .cfi_startproc
    find_caller
    kernel_key .Lslow_launch
    find_chain %rdi
    kernel_blocks .Lslow_launch
    find_word %rdi, .Lfound_launch, .Lslow_launch
    count_direct .Lslow_launch
    go_with 16(%rsp)
.Lfound_launch:
    found_indirect 16(%rsp), 24(%rsp), .Lgiven_launch
.Lgiven_launch:                         /* word, row and route go into unused upper halves of two stack arguments */
    movzbl -1(%rsp), %r11d
    shl $43, %r11
    or %r11, %rax
    mov %eax, 12(%rsp)
    shr $32, %rax
    mov %eax, 20(%rsp)
    jmp launch_from_hot
.Lslow_launch:
    thunk_of_identity
    jmp cuda_slow_3_5
    .cfi_endproc
    .size hot_launch, . - hot_launch

/* In: configuration rdi, function rsi, r8 = the real function. Attributes that matter for shaping, and changed
 * sizes, are left to C. */
    .type hot_launch_ex, @function
hot_launch_ex:
    .cfi_startproc
    test %rdi, %rdi
    je .Lslow_launch_ex
    cmpl $0, 48(%rdi)
    jne .Lattributes
.Lplain:
    find_caller
    mov 12(%rdi), %eax
    imul 16(%rdi), %eax
    imul 20(%rdi), %eax
    shl $18, %rax
    mov 24(%rdi), %r10d
    cmp $0x3ffff, %r10d
    ja .Lslow_launch_ex
    add %r10, %rax
    find_chain %rsi
    mov (%rdi), %r10d
    imul 4(%rdi), %r10d
    jo .Lslow_launch_ex
    imul 8(%rdi), %r10d
    jo .Lslow_launch_ex
    find_word %rsi, .Lfound_launch_ex, .Lslow_launch_ex
    test $0x2000000, %eax               /* changed */
    jne .Lgiven_launch_ex
    count_direct .Lslow_launch_ex
    jmp *%r8
.Lattributes:                           /* 72 bytes each */
    /* Left to C: cooperative 2, cluster 4 and 11, programmatic 6 and 7, event 12, carve-out 14. */
    mov 48(%rdi), %r10d
    mov 40(%rdi), %r11
    test %r11, %r11
    je .Lslow_launch_ex
    mov $0x58d4, %r9d
4:  mov (%r11), %eax
    cmp $31, %eax
    ja .Lslow_launch_ex
    bt %eax, %r9d
    jc .Lslow_launch_ex
    add $72, %r11
    dec %r10d
    jne 4b
    jmp .Lplain
.Lfound_launch_ex:                      /* inside a window it needs a stack frame: left to C */
    found_indirect none, 32(%rdi), .Lgiven_launch_ex
.Lgiven_launch_ex:                      /* fifth argument: the word; sixth: the thunk */
    mov %rax, %r8
    thunk_of_identity
    mov %eax, %r9d
    jmp launch_ex_from_hot
.Lslow_launch_ex:
    thunk_of_identity
    jmp cuda_slow_3_0
    .cfi_endproc
    .size hot_launch_ex, . - hot_launch_ex

    .macro launch_thunk symbol, name, null_stream, route, hot
    movl $.LHOOK_\name | \null_stream << 12 | \route << 16 | (4 * .LLAUNCH_\name + \route) << 24, -4(%rsp)
    .ifc \hot, hot_launch_ex
    mov real_launches + 32 * .LLAUNCH_\name + 8 * \route(%rip), %r8
    .endif
    .if \route == 0                       /* other routes are handed out once their real functions are known */
    .ifc \hot, hot_launch_ex
    test %r8, %r8
    je .Lslow_launch_ex
    .else
    cmpq $0, real_launches + 32 * .LLAUNCH_\name(%rip)
    je .Lslow_launch
    .endif
    .endif
    jmp \hot
    .size \symbol, . - \symbol
    .endm
    .macro launches hot, name, null_stream
    .globl \name, symbol_\name, dlsym_\name, proc_\name
    .hidden symbol_\name, dlsym_\name, proc_\name
    .set symbol_\name, \name
    .type \name, @function
    .type dlsym_\name, @function
    .type proc_\name, @function
    .cfi_startproc
\name:
    launch_thunk \name, \name, \null_stream, 0, \hot
dlsym_\name:
    launch_thunk dlsym_\name, \name, \null_stream, 1, \hot
proc_\name:
    launch_thunk proc_\name, \name, \null_stream, 2, \hot
    .cfi_endproc
    .endm

    launches hot_launch, cuLaunchKernel, 0
    launches hot_launch, cuLaunchKernel_ptsz, 1
    launches hot_launch_ex, cuLaunchKernelEx, 0
    launches hot_launch_ex, cuLaunchKernelEx_ptsz, 1
#endif
