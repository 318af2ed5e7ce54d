/* The hot paths of HIP's launch calls for x86-64: the same as the bodies in launch_portable.h, which say it in C.
 *
 * In assembler because all arguments stay where they are, in registers and on the stack, and the size is patched in place,
 * while C keeps them alive by moving all of them to and fro (45 to 70 instructions more).
 */
#include "../common/hot_x86_64.S"

#ifdef __x86_64__
    .hidden launch_cache, this_thread, real_launches, window_version, critical_bloom

/* Four forms of a call. FORM_call: rax = key without the page, r10 = blocks; changes r11. size_FORM, stream_FORM: where these two
 * arguments lie.
 */
    .set .Lsize_module, 16
    .set .Lstream_module, 24
    .macro module_call miss
    kernel_key \miss
    kernel_blocks \miss
    .endm

/* The same with bytes of 64 bits, events at 48(rsp) and 56(rsp), and a grid in work-items. Blocks of more than one dimension
 * are for C: they would take three divisions. */
    .set .Lsize_items, 16
    .set .Lstream_items, 24
    .macro items_call miss
    no_events 48, \miss
    mov 8(%rsp), %eax
    imul %r9d, %eax
    cmp $1, %eax
    jne \miss
    test %r8d, %r8d
    je \miss
    mov %rdx, %r11
    mov %esi, %eax
    xor %edx, %edx
    div %r8d
    cmp $1, %edx                        /* and one more for the rest */
    sbb $-1, %eax
    mov %r11, %rdx
    mov %r11d, %r10d
    imul %eax, %r10d
    jo \miss
    imul %ecx, %r10d
    jo \miss
    mov %r8d, %eax
    key_with 16, \miss
    .endm

/* function rdi, grid rsi (x and y) edx, block rcx (x and y) r8d, dynamic bytes 8(rsp). */
    .set .Lsize_host, 8
    .set .Lstream_host, 16
    .macro host_call miss
    mov %rsi, %r10
    shr $32, %r10
    imul %esi, %r10d
    jo \miss
    imul %edx, %r10d
    jo \miss
    mov %ecx, %eax
    mov %rcx, %r11
    shr $32, %r11
    imul %r11d, %eax
    imul %r8d, %eax
    key_with 8, \miss
    .endm

/* The same with events at 24(rsp) and 32(rsp). */
    .set .Lsize_ext, 8
    .set .Lstream_ext, 16
    .macro ext_call miss
    no_events 24, \miss
    host_call \miss
    .endm

/* rax = key of eax threads and 64 bits of bytes. */
    .macro key_with at, miss
    shl $18, %rax
    mov \at(%rsp), %r11
    cmp $0x3ffff, %r11
    ja \miss
    add %r11, %rax
    .endm

/* A launch that records events is for C. */
    .macro no_events at, miss
    mov \at(%rsp), %rax
    or \at + 8(%rsp), %rax
    jne \miss
    .endm

/* While the runtime has a table (there is something behind the hook `table` in it), what comes by another way is passed on, and comes
 * again by that (way 3); its caller is then whoever was noted, if anybody. A name that is in no table is for C meanwhile. */
    .macro launch_hip symbol, form, hook, table, way, counted, whose, slow
    .type \symbol, @function
    .p2align 5
\symbol:
    .cfi_startproc
    endbr64
    .if \way != 3
    cmpq $0, real_launches + 32 * \table + 8 * 3(%rip)
    jne .Ltable_\symbol
    .endif
    \form\()_call .Lslow_\symbol
    .if \way == 3
    mov this_thread@gottpoff(%rip), %r11
    mov %fs:96(%r11), %r11
    test %r11, %r11
    jne 9f
    .endif
    mov (%rsp), %r11
9:  find_chain %rdi
    find_word %rdi, .Lslow_\symbol
    .if \way == 0                       /* before the others are given out, it is known what is behind them */
    cmpq $0, real_launches + 32 * \hook(%rip)
    je .Lslow_\symbol
    .endif
    test $0x4000000, %eax               /* direct */
    je .Lfound_\symbol
    count_direct \counted, .Lgiven_\symbol
    go_with .Lsize_\form(%rsp), \hook, \way
.Lfound_\symbol:
    not_raised %rax, .Lstream_\form(%rsp), .Lgiven_\symbol
    mov this_thread@gottpoff(%rip), %r11
    bt $42, %rax
    jc .Lbeside_\symbol
    bt $51, %rax                        /* windowed */
    jnc .Lgiven_\symbol
    window_known %rax, %r11, .Lstream_\form(%rsp), \whose, .Lask_\symbol, .Lgiven_\symbol
.Ltold_\symbol:
    find_shard %r11, .Lgiven_\symbol
    in_window .Lsize_\form(%rsp), \hook, \way, \counted, 0, .Lgiven_\symbol
.Lask_\symbol:
    ask_window %r11, .Lstream_\form(%rsp), \whose, .Ltold_\symbol, .Lgiven_\symbol
.Lbeside_\symbol:
    beside %rax, %r11, \hook, \way, \counted, 0, .Lgiven_\symbol
.Lgiven_\symbol:
    mov this_thread@gottpoff(%rip), %r11
    mov %rax, %fs:112(%r11)
    jmp \slow
.Lslow_\symbol:                         /* a word that is there is that of a launch which a signal has interrupted */
    mov this_thread@gottpoff(%rip), %r11
    movq $0, %fs:112(%r11)
    jmp \slow
.Ltable_\symbol:
    .ifc \hook, \table
    .if \way != 3
    cmpq $0, real_launches + 32 * \hook + 8 * \way(%rip)
    je .Lslow_\symbol
    mov this_thread@gottpoff(%rip), %r11
    cmpq $0, %fs:96(%r11)
    jne 6f
    mov (%rsp), %rax
    mov %rax, %fs:96(%r11)
6:  jmp *real_launches + 32 * \hook + 8 * \way(%rip)
    .endif
    .endif
    jmp .Lslow_\symbol
    .cfi_endproc
    .size \symbol, . - \symbol
    .endm

    .macro hip_thunk prefix, form, name, table, whose, way, number, counted
    .globl \prefix\name
    .hidden slow_\way\()_\name
    launch_hip \prefix\name, \form, .LLAUNCH_\name, .LLAUNCH_\table, \number, \counted, \whose, slow_\way\()_\name
    .endm
    .macro hip_launches form, name, table, whose
    .hidden dlsym_\name, proc_\name, table_\name
    hip_thunk , \form, \name, \table, \whose, symbol, 0, 0
    hip_thunk dlsym_, \form, \name, \table, \whose, dlsym, 1, 1
    hip_thunk proc_, \form, \name, \table, \whose, proc_address, 2, 2
    hip_thunk table_, \form, \name, \table, \whose, dispatch_table, 3, 5
    .endm

    hip_launches host, hipLaunchKernel, hipLaunchKernel, 2
    hip_launches host, hipLaunchKernel_spt, hipLaunchKernel_spt, 3
    hip_launches ext, hipExtLaunchKernel, hipExtLaunchKernel, 2
    hip_launches module, hipModuleLaunchKernel, hipModuleLaunchKernel, 2
    hip_launches items, hipExtModuleLaunchKernel, hipExtModuleLaunchKernel, 2
    hip_launches items, _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j, hipExtModuleLaunchKernel, 2
#endif
