/* What the hot paths of both vendors' launch calls are made of on x86-64: macros only. They use rax, r8 to r11 as far as they hold no
 * argument; a call may change those. What is assumed about layouts is asserted in hot_x86_64.h.
 */
#include "hooks_x86_64.S"

#ifdef __x86_64__
    .text

/* OVERLAP_CACHE_FACTOR */
    .pushsection .rodata
    .balign 8
.Lfactor:
    .quad 0x9E3779B97F4A7C15
    .popsection

/* rax += page of the caller << 28, r11 being the caller's address; r11 = the first line of the chain for this handle and key. */
    .macro find_chain handle
    shr $12, %r11
    shl $28, %r11
    add %r11, %rax
    mov %rax, %r11
    rol $28, %r11
    add \handle, %r11
    imul .Lfactor(%rip), %r11
    shr $43, %r11
    and launch_cache+8(%rip), %r11d
    add launch_cache(%rip), %r11
    mov (%r11), %r11
    .endm

/* rax = the word for this handle, key rax and r10 blocks in a line of chain r11, or else to `miss`. A word of 0 is none. The end of an
 * interval comes before its beginning: that of a free one is 0, so one that another thread fills meanwhile is not read in part.
 * Changes r11. */
    .macro find_word handle, miss
0:  test %r11, %r11
    je \miss
    cmp \handle, (%r11)
    jne 1f
    cmp %rax, 8(%r11)
    jne 1f
    cmp 36(%r11), %r10d                 /* a word that is there was published after its interval */
    ja 2f
    cmp 32(%r11), %r10d
    jb 2f
    cmpq $0, 40(%r11)                   /* withdrawn: there may be one for another interval */
    je 2f
    mov 40(%r11), %rax
    .subsection 1
1:  mov 16(%r11), %r11
    jmp 0b
2:  cmp 52(%r11), %r10d                 /* the same launch with other grids may have the second answer */
    ja 1b
    cmp 48(%r11), %r10d
    jb 1b
    cmpq $0, 56(%r11)
    je 1b
    mov 56(%r11), %rax
    jmp 3f
    .previous
3:
    .endm

/* Counts the launch in the row of a word, in shard r10. Changes r11. */
    .macro count_row word
    mov \word, %r11
    shr $55, %r11
    incq 64(%r10, %r11, 8)
    .endm

/* Counts it under its way in, too, in the shard of the thread, or else to `miss`. Changes r10 and r11. */
    .macro count_direct way, miss, word=%rax
    mov this_thread@gottpoff(%rip), %r10
    mov %fs:(%r10), %r10
    test %r10, %r10
    je \miss
    incq 2624 + 8 * \way(%r10)
    count_row \word
    .endm

/* Counts it under its way in, in shard r10: for a call inside a call of NVIDIA's runtime (`outer`) under that of its caller. */
    .macro count_way way, outer, r
    .if \outer
    cmpq $0, %fs:8(\r)
    je 6f
    incq 2624 + 8 * 3(%r10)
    jmp 9f
    .endif
6:  incq 2624 + 8 * \way(%r10)
9:
    .endm

/* For a word that depends on its stream: to `miss` where that may be raised (critical_may_be()). Changes r10 and r11. */
    .macro not_raised word, stream, miss
    bt $50, \word
    jnc 5f
    mov \stream, %r10
    imul .Lfactor(%rip), %r10
    shr $58, %r10
    mov critical_bloom(%rip), %r11
    bt %r10, %r11
    jc \miss
5:
    .endm

/* Computation that is made as asked, on a stream that is not raised: r being the place of this_thread. Changes r10 and r11. */
    .macro beside word, r, hook, way, counted, outer, miss
    find_shard \r, \miss
    count_way \counted, \outer, \r
    count_row \word
    go \hook, \way
    .endm

/* For a windowed word: goes on where the thread knows where the launch is, r being the place of this_thread; to `ask` where it does not,
 * to `miss` where that does not suffice. Changes r10. */
    .macro window_known word, r, stream, whose, ask, miss
    bt $49, \word                       /* one of those clusters that were checked */
    jc \miss
    bt $29, \word                       /* traced */
    jc \miss
    mov window_version(%rip), %r10
    mov (%r10), %r10
    cmp %r10, %fs:16(\r)
    jne \ask
    mov \stream, %r10
    cmp %r10, %fs:24(\r)
    jne \ask
    cmpl $\whose, %fs:32(\r)
    jne \ask
    cmpq $0, %fs:40(\r)
    jle \ask
    .endm

/* Asks, and goes to `told` with r the place of this_thread again, or to `miss`. Changes r10 and r11. */
    .hidden window_ask_kept
    .macro ask_window r, stream, whose, told, miss
    mov \stream, %r10
    mov $\whose, %r11d
    call window_ask_kept
    mov this_thread@gottpoff(%rip), \r
    jne \told
    jmp \miss
    .endm

/* r10 = the shard, or else to `miss`. */
    .macro find_shard r, miss
    mov %fs:(\r), %r10
    test %r10, %r10
    je \miss
    .endm

/* To what is behind a hook, behind its table for way 3. That call is over whose caller was noted. Changes r11. */
    .macro go hook, way
    .if \way == 3
    mov this_thread@gottpoff(%rip), %r11
    movq $0, %fs:96(%r11)
    .endif
    jmp *real_launches + 32 * \hook + 8 * \way(%rip)
    .endm

/* The same with the size of word rax. */
    .macro go_with size, hook, way
    and $0x3ffff, %eax
    mov %rax, \size
    go \hook, \way
    .endm

/* Outside a window: the launch of word rax is counted twice, in the row of its group that says why, and goes on as asked. A signal
 * handler may have changed what the thread was told since, so a place that is gone is looked for once more. Changes r10 and rax, but
 * not before it is sure. */
    .macro outside r, hook, way, counted, outer, miss
    cmpq $0, %fs:56(\r)
    je \miss
    count_way \counted, \outer, \r
    shr $55, %rax
    lea (%r10, %rax, 8), %r10
    mov %fs:48(\r), %eax
    incq 64(%r10, %rax, 8)
    mov %fs:56(\r), %rax
    test %rax, %rax
    je 8f
    incq (%rax)
8:
    go \hook, \way
    .endm

/* Word rax, windowed, where the thread knows where the launch is: outside, or inside and proven; else to `miss`. r10: the
 * shard, r11: the place of this_thread. */
    .macro in_window size, hook, way, counted, outer, miss
    cmpl $1, %fs:36(%r11)
    je 7f
    outside %r11, \hook, \way, \counted, \outer, \miss
7:  bt $53, %rax
    jnc \miss
    decq %fs:40(%r11)
    count_way \counted, \outer, %r11
    count_row %rax
    go_with \size, \hook, \way
    .endm

/* function rdi, grid esi edx ecx, block r8d r9d 8(rsp), dynamic bytes 16(rsp) of 32 bits: cuLaunchKernel, hipModuleLaunchKernel.
 * rax = key without the page: threads << 18 + bytes. Changes r10. */
    .macro kernel_key miss
    mov 8(%rsp), %eax
    imul %r8d, %eax
    imul %r9d, %eax
    shl $18, %rax
    mov 16(%rsp), %r10d
    cmp $0x3ffff, %r10d
    ja \miss
    add %r10, %rax
    .endm

/* r10d = blocks of the grid, or to `miss` where they are more than 31 bits hold. */
    .macro kernel_blocks miss
    mov %ecx, %r10d
    imul %edx, %r10d
    jo \miss
    imul %esi, %r10d
    jo \miss
    .endm
#endif

#ifdef __ELF__
    .pushsection .note.GNU-stack, "", %progbits
    .popsection
#endif
