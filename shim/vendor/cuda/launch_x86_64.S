/* The hot paths of cuLaunchKernel and cuLaunchKernelEx for x86-64: the same as launch_body() in launch_portable.h and launch_ex_body()
 * in launch.h, which say it in C.
 *
 * In assembler because five of cuLaunchKernel's eleven arguments lie on the stack: here they stay there and the size is patched in
 * place, while C moves all of them to and fro (40 instructions more). Uses rax, r8 to r11 as far as they hold no argument; a call may
 * change those. What is assumed about layouts is asserted in launch_x86_64.h.
 */
#ifdef __x86_64__
    .text

/* rax += page of the caller << 28, r11 being the caller's address; r11 = line of the handle (its hash, times 64 bytes), or else to
 * `miss`. Changes r10. */
    .macro find_line handle, miss
    shr $12, %r11
    shl $28, %r11
    add %r11, %rax
    movabs $0x9E3779B97F4A7C15, %r11
    imul \handle, %r11
    shr $43, %r11
    and $0x1fffc0, %r11d
    lea launch_cache(%rip), %r10
    add %r10, %r11
    cmp \handle, (%r11)
    jne \miss
    .endm

/* rax = the word for key rax and grid r10 in line r11, or else to `miss`. */
    .macro find_word miss
    cmp %rax, 8(%r11)
    jne 2f
    cmpq $0, 24(%r11)                   /* a word that is there was published after its interval */
    je 2f
    mov 16(%r11), %eax                  /* blocks - start <= length */
    sub %rax, %r10
    mov 20(%r11), %eax
    cmp %rax, %r10
    ja 1f
    mov 24(%r11), %rax
    jmp 3f
1:  mov 16(%r11), %eax                  /* the same launch with other grids may have the second answer */
    add %rax, %r10
    mov 8(%r11), %rax
2:  cmp %rax, 32(%r11)
    jne \miss
    cmpq $0, 48(%r11)
    je \miss
    mov 40(%r11), %eax
    sub %rax, %r10
    mov 44(%r11), %eax
    cmp %rax, %r10
    ja \miss
    mov 48(%r11), %rax
3:
    .endm

/* Counts the launch under the reason of word rax in the shard r10; to `miss` where there is none yet. Changes r11. */
    .macro count way, miss
    test %r10, %r10
    je \miss
    mov %eax, %r11d
    shr $18, %r11d
    and $63, %r11d
    incq 64 + 320 * \way(%r10, %r11, 8)
    .endm

/* For a windowed word: goes on where the thread knows where the launch is, r being the place of this_thread; else to `miss`.
 * Changes r10. */
    .macro window_known word, r, stream, hook, miss
    bt $49, \word                       /* one of those clusters that were checked */
    jc \miss
    bt $29, \word                       /* traced */
    jc \miss
    mov window_version(%rip), %r10
    mov (%r10), %r10
    cmp %r10, %fs:16(\r)
    jne \miss
    mov \stream, %r10
    cmp %r10, %fs:24(\r)
    jne \miss
    cmpl $\hook & 1, %fs:32(\r)
    jne \miss
    cmpl $0, %fs:40(\r)
    je \miss
    .endm

/* r10 = the row of the shard's counters for the way in, or else to `miss`. */
    .macro row way, r, miss
    mov %fs:(\r), %r10
    test %r10, %r10
    je \miss
    lea 64 + 320 * \way(%r10), %r10
    cmpq $0, %fs:8(\r)
    je 6f
    add $320 * (3 - \way), %r10
6:
    .endm

/* Outside a window: the launch is counted twice, with its reason, and goes on as asked. Changes rax. */
    .macro outside r, hook, way, miss
    cmpq $0, %fs:48(\r)
    je \miss
    mov %fs:48(\r), %rax
    incq (%rax)
    mov %fs:44(\r), %eax
    incq (%r10, %rax, 8)
    jmp *real_functions + 32 * \hook + 8 * \way(%rip)
    .endm

/* The rest of cuLaunchKernel, r11 being the caller's address. counted: the way in under which it is counted */
    .macro kernel_from symbol, hook, way, counted
    mov 8(%rsp), %eax                   /* key: threads << 18 + bytes + the page */
    imul %r8d, %eax
    imul %r9d, %eax
    shl $18, %rax
    mov 16(%rsp), %r10d
    cmp $0x3ffff, %r10d
    ja .Lslow_\symbol
    add %r10, %rax
    find_line %rdi, .Lslow_\symbol
    mov %ecx, %r10d                     /* blocks of the grid, 64 bits */
    mov %edx, %edx
    imul %rdx, %r10
    mov %esi, %esi
    imul %rsi, %r10
    find_word .Lslow_\symbol
    cmpq $0, real_functions + 32 * \hook + 8 * \way(%rip)
    je .Lslow_\symbol
    test $0x4000000, %eax               /* direct */
    je .Lfound_\symbol
    mov this_thread@gottpoff(%rip), %r10
    mov %fs:(%r10), %r10
    count \counted, .Lslow_\symbol
    and $0x3ffff, %eax
    mov %eax, 16(%rsp)
    jmp *real_functions + 32 * \hook + 8 * \way(%rip)
    .endm

/* function rdi, grid esi edx ecx, block r8d r9d 8(rsp), dynamic bytes 16(rsp). Inside a call of NVIDIA's runtime, its caller counts. */
    .macro launch_kernel symbol, hook, way, slow, found
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
    bt $51, %rax                        /* windowed */
    jnc .Lgiven_\symbol
    mov this_thread@gottpoff(%rip), %r11
    window_known %rax, %r11, 24(%rsp), \hook, .Lgiven_\symbol
    row \way, %r11, .Lgiven_\symbol
    cmpl $1, %fs:36(%r11)
    jne .Loutside_\symbol
    bt $53, %rax                        /* inside, and proven */
    jnc .Lgiven_\symbol
    decl %fs:40(%r11)
    mov %eax, %r11d
    shr $18, %r11d
    and $63, %r11d
    incq (%r10, %r11, 8)
    and $0x3ffff, %eax
    mov %eax, 16(%rsp)
    jmp *real_functions + 32 * \hook + 8 * \way(%rip)
.Loutside_\symbol:
    outside %r11, \hook, \way, .Lgiven_\symbol
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
    find_line %rsi, .Lslow_\symbol
    mov (%rdi), %r10d
    mov 4(%rdi), %r8d
    imul %r8, %r10
    mov 8(%rdi), %r8d
    imul %r8, %r10
    find_word .Lslow_\symbol
    cmpq $0, real_functions + 32 * \hook + 8 * \way(%rip)
    je .Lslow_\symbol
    mov %rax, %r8
    and $0x6000000, %eax                /* direct, and not changed */
    cmp $0x4000000, %eax
    jne .Lfound_\symbol
    mov %r8, %rax
    mov %fs:(%r9), %r10
    count \counted, .Lslow_\symbol
    jmp *real_functions + 32 * \hook + 8 * \way(%rip)
    .endm

/* configuration rdi, function rsi. Attributes that matter to shaping, and sizes that change, are for C. */
    .macro launch_ex symbol, hook, way, slow, found
    .type \symbol, @function
    .p2align 5
\symbol:
    .cfi_startproc
    endbr64
    test %rdi, %rdi
    je .Lslow_\symbol
    mov this_thread@gottpoff(%rip), %r9
    mov 48(%rdi), %r10d                 /* attributes */
    test %r10d, %r10d
    jne .Lattributes_\symbol
.Lplain_\symbol:
    cmpq $0, %fs:8(%r9)
    jne .Louter_\symbol
    mov (%rsp), %r11
    ex_from \symbol, \hook, \way, \way
.Louter_\symbol:
    mov %fs:8(%r9), %r11
    ex_from \symbol, \hook, \way, 3
.Lattributes_\symbol:                   /* 72 bytes each; cooperative 2, cluster 4 and 11, programmatic 6 and 7, event 12: not for here */
    mov 40(%rdi), %r11
    test %r11, %r11
    je .Lslow_\symbol
    mov $0x18d4, %r8d
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
    bt $51, %r8                         /* windowed */
    jnc .Lgiven_\symbol
    window_known %r8, %r9, 32(%rdi), \hook, .Lgiven_\symbol
    row \way, %r9, .Lgiven_\symbol
    cmpl $1, %fs:36(%r9)
    je .Lgiven_\symbol
    outside %r9, \hook, \way, .Lgiven_\symbol
.Lgiven_\symbol:                        /* the word is the fifth argument: r8 */
    .hidden \found
    jmp \found
.Lslow_\symbol:
    jmp \slow
    .cfi_endproc
    .size \symbol, . - \symbol
    .endm

    .hidden launch_cache, this_thread, real_functions, window_version
    .macro thunk kind, prefix, name, hook, way, number
    .globl \prefix\name
    .hidden slow_\way\()_\name
    \kind \prefix\name, \hook, \number, slow_\way\()_\name, found_\way\()_\name
    .endm
    .macro launches kind, name, hook
    .hidden dlsym_\name, proc_\name
    thunk \kind, , \name, \hook, symbol, 0
    thunk \kind, dlsym_, \name, \hook, dlsym, 1
    thunk \kind, proc_, \name, \hook, proc_address, 2
    .endm

    launches launch_kernel, cuLaunchKernel, 0
    launches launch_kernel, cuLaunchKernel_ptsz, 1
    launches launch_ex, cuLaunchKernelEx, 2
    launches launch_ex, cuLaunchKernelEx_ptsz, 3
#endif

#ifdef __ELF__
    .section .note.GNU-stack, "", %progbits
#endif
