/* Macros of the hot paths of both vendors' launch calls on x86-64. They use rax and r8 to r11 as far as these hold no
 * argument; a call may clobber those. hot_x86_64.h asserts the assumed layouts.
 *
 * All thunks of a call share one hot path. They differ in an identity word of four bytes at -4(rsp), in the red zone:
 *   bits 0 to 11   hook
 *   bits 12 to 15  which default stream NULL means
 *   bits 16 to 23  route that is counted; replaced inside a call of NVIDIA's runtime
 *   bits 24 to 31  index in real_launches, four for each row
 * The only call is a window query (window_cache_position_asm), made below the data in the red zone.
 */
#include "hooks_x86_64.S"

#ifdef __x86_64__
    .text
    .hidden window_cache_position_asm

/* OVERLAP_CACHE_FACTOR */
    .pushsection .rodata
    .balign 8
.Lfactor:
    .quad 0x9E3779B97F4A7C15
    .popsection

/* In: rax = key without page, r11 = caller's address. Out: rax = key (caller's page << 28 added), r11 = the first
 * line of the chain for this handle and key. */
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

/* In: chain r11, key rax, r10 blocks. Out: rax = the direct word for this handle. Jumps to `indirect` for another
 * word, to `miss` if there is none; a word of 0 counts as none. The interval's end is tested before its beginning:
 * the end of a free interval is 0, so an interval that another thread is filling never matches half-written.
 * Clobbers r11. */
    .macro find_word handle, indirect, miss
0:  test %r11, %r11
    je \miss
    cmp \handle, (%r11)
    jne 1f
    cmp %rax, 8(%r11)
    jne 1f
    cmp 36(%r11), %r10d                 /* a word is published after its interval */
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
    mov 8(%r11), %rax                   /* invalidated: another interval may hold a word */
2:  cmp 52(%r11), %r10d                 /* the second interval, for other grids of the same launch */
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

/* Count the launch in the word's row of shard r10. Clobbers r11. */
    .macro count_row word
    mov \word, %r11
    shr $55, %r11
    incq 64(%r10, %r11, 8)
    .endm

/* Count the launch by route in shard r10. Clobbers r11. */
    .macro count_route
    movzbl -2(%rsp), %r11d
    incq 2624(%r10, %r11, 8)
    .endm

/* Both, in the thread's shard; to `miss` if it has none. Clobbers r10 and r11. */
    .macro count_direct miss
    mov this_thread@gottpoff(%rip), %r10
    mov %fs:(%r10), %r10
    test %r10, %r10
    je \miss
    count_route
    count_row %rax
    .endm

/* If word rax depends on its stream: to `miss` if that may be raised (critical_may_be()). Clobbers r10 and r11. */
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

/* Windowed word rax, offset of this_thread in r11: fall through if the thread has a cached window position; else to
 * `ask`, or to `miss` if the word needs the slow path. Clobbers r10. */
    .macro window_known stream, ask, miss
    bt $49, %rax                        /* cluster launch: checked for one cluster size only */
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

/* r10 = the thread's shard (offset of this_thread in r11), or to `miss`. */
    .macro find_shard miss
    mov %fs:(%r11), %r10
    test %r10, %r10
    je \miss
    .endm

/* Jump to the real function. Clobbers r10 and r11. */
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

/* Outside a window: count the launch of word rax by route and stream, count it in the row of its group for the
 * reason, and launch as asked. A signal handler may have changed the cached answer since, so the counter's pointer
 * is loaded and tested again before use. In: r10 = shard, r11 = offset of this_thread. Clobbers these and rax, but
 * not before the last jump to `miss`. */
    .macro outside miss
    cmpq $0, %fs:56(%r11)
    je \miss
    count_route
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

/* Windowed word rax with cached position: handle a launch outside, or one inside if the word is proven and there is
 * a size operand; else to `miss`. In: r10 = shard, r11 = offset of this_thread. */
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
    count_route
    count_row %rax
    go_with \size
    .endif
    .endm

/* Word rax that is not direct: handle it if its stream is not raised and the window position is cached or a query
 * provides it; else to `miss`. */
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
    count_route
    count_row %rax
    go
.Lask\@:
    mov \stream, %r10
    movzbl -3(%rsp), %r11d
    shr $4, %r11d
    lea -16(%rsp), %rsp                 /* below the identity and HIP's saved caller; lea keeps flags */
    .cfi_adjust_cfa_offset 16
    call window_cache_position_asm
    lea 16(%rsp), %rsp
    .cfi_adjust_cfa_offset -16
    mov this_thread@gottpoff(%rip), %r11
    jne .Ltold\@
    jmp \miss
    .endm

/* In: function rdi, grid esi edx ecx, block r8d r9d 8(rsp), dynamic bytes (32 bits) 16(rsp), as in cuLaunchKernel
 * and hipModuleLaunchKernel. Out: rax = key without page: threads << 18 + bytes. Clobbers r10. */
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

/* r10d = blocks of the grid, or to `miss` if they exceed 31 bits. */
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
