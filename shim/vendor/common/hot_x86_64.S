/* What the hot paths of both vendors' launch calls are made of on x86-64: macros only. They use rax, r8 to r11 as far as they hold no
 * argument; a call may change those. What is assumed about layouts is asserted in hot_x86_64.h.
 *
 * All thunks of a call share one path. What they differ in is their identity, four bytes at -4(rsp), in the red zone.
 *   bits 0 to 11   the hook
 *   bits 12 to 15  whose default stream NULL means
 *   bits 16 to 23  the way that is counted: another one inside a call of NVIDIA's runtime
 *   bits 24 to 31  the place in real_launches, four for each row
 * Only a question about overlap windows is a call (window_ask_kept), behind what lies there.
 */
#include "hooks_x86_64.S"

#ifdef __x86_64__
    .text
    .hidden window_ask_kept

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

/* rax = the direct word for this handle, key rax and r10 blocks in a line of chain r11. Another word goes to `indirect`, none to `miss`.
 * A word of 0 is none. The end of an interval comes before its beginning: that of a free one is 0, so one that another thread fills
 * meanwhile is not read in part. Changes r11. */
    .macro find_word handle, indirect, miss
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
    mov 40(%r11), %rax
    test $0x4000000, %eax               /* direct */
    je 4f
    .subsection 1
1:  mov 16(%r11), %r11
    jmp 0b
4:  test %rax, %rax
    jne \indirect
    mov 8(%r11), %rax                   /* withdrawn: there may be one for another interval */
2:  cmp 52(%r11), %r10d                 /* the same launch with other grids may have the second answer */
    ja 1b
    cmp 48(%r11), %r10d
    jb 1b
    cmpq $0, 56(%r11)
    je 1b
    mov 56(%r11), %rax
    test $0x4000000, %eax
    je \indirect
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

/* Counts it under its way in, in shard r10. Changes r11. */
    .macro count_way
    movzbl -2(%rsp), %r11d
    incq 2624(%r10, %r11, 8)
    .endm

/* Both, in the shard of the thread, or else to `miss`. Changes r10 and r11. */
    .macro count_direct miss
    mov this_thread@gottpoff(%rip), %r10
    mov %fs:(%r10), %r10
    test %r10, %r10
    je \miss
    count_way
    count_row %rax
    .endm

/* For a word rax that depends on its stream: to `miss` where that may be raised (critical_may_be()). Changes r10 and r11. */
    .macro not_raised stream, miss
    bt $50, %rax
    jnc 5f
    mov \stream, %r10
    imul .Lfactor(%rip), %r10
    shr $58, %r10
    mov critical_bloom(%rip), %r11
    bt %r10, %r11
    jc \miss
5:
    .endm

/* For windowed word rax: goes on where the thread knows where the launch is, r11 being the place of this_thread; to `ask` where it does
 * not, to `miss` where that does not suffice. Changes r10. */
    .macro window_known stream, ask, miss
    bt $49, %rax                        /* one of those clusters that were checked */
    jc \miss
    bt $29, %rax                        /* traced */
    jc \miss
    mov window_version(%rip), %r10
    mov (%r10), %r10
    cmp %r10, %fs:16(%r11)
    jne \ask
    mov \stream, %r10
    cmp %r10, %fs:24(%r11)
    jne \ask
    movzbl -3(%rsp), %r10d
    shr $4, %r10d
    cmp %r10d, %fs:32(%r11)
    jne \ask
    cmpq $0, %fs:40(%r11)
    jle \ask
    .endm

/* r10 = the shard, r11 being the place of this_thread, or else to `miss`. */
    .macro find_shard miss
    mov %fs:(%r11), %r10
    test %r10, %r10
    je \miss
    .endm

/* To what is behind the hook. Changes r10 and r11. */
    .macro go
    movzbl -1(%rsp), %r11d
    lea real_launches(%rip), %r10
    jmp *(%r10, %r11, 8)
    .endm

/* The same with the size of word rax. */
    .macro go_with size
    and $0x3ffff, %eax
    mov %rax, \size
    go
    .endm

/* Outside a window: the launch of word rax is counted twice, in the row of its group that says why, and goes on as asked. A signal
 * handler may have changed what the thread was told since, so a place that is gone is looked for once more. r10: the shard, r11: the
 * place of this_thread. Changes these and rax, but not before it is sure. */
    .macro outside miss
    cmpq $0, %fs:56(%r11)
    je \miss
    count_way
    mov this_thread@gottpoff(%rip), %r11
    shr $55, %rax
    lea (%r10, %rax, 8), %r10
    mov %fs:48(%r11), %eax
    incq 64(%r10, %rax, 8)
    mov %fs:56(%r11), %rax
    test %rax, %rax
    je 8f
    incq (%rax)
8:
    go
    .endm

/* Word rax, windowed, where the thread knows where the launch is: outside, or inside, proven and with an operand for the size; else to
 * `miss`. r10: the shard, r11: the place of this_thread. */
    .macro in_window size, miss
    cmpl $1, %fs:36(%r11)
    .ifc \size, none
    je \miss
    outside \miss
    .else
    je 7f
    outside \miss
7:  bt $53, %rax
    jnc \miss
    decq %fs:40(%r11)
    count_way
    count_row %rax
    go_with \size
    .endif
    .endm

/* Word rax that is not direct, stream being an operand: taken where the thread knows what its stream is, and where the launch is, or learns
 * it by asking; else to `miss`. */
    .macro found_indirect size, stream, miss
    not_raised \stream, \miss
    mov this_thread@gottpoff(%rip), %r11
    bt $42, %rax
    jc 9f
    bt $51, %rax                        /* windowed */
    jnc \miss
    window_known \stream, .Lask\@, \miss
.Ltold\@:
    find_shard \miss
    in_window \size, \miss
9:  find_shard \miss
    count_way
    count_row %rax
    go
.Lask\@:
    mov \stream, %r10
    movzbl -3(%rsp), %r11d
    shr $4, %r11d
    lea -16(%rsp), %rsp                 /* behind the identity, and the caller that HIP's paths keep; flags stay */
    .cfi_adjust_cfa_offset 16
    call window_ask_kept
    lea 16(%rsp), %rsp
    .cfi_adjust_cfa_offset -16
    mov this_thread@gottpoff(%rip), %r11
    jne .Ltold\@
    jmp \miss
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
