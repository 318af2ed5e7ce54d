/* The hot paths of HIP's launch calls for x86-64, equivalent to the bodies in launch_portable.h.
 *
 * They are in assembler because all arguments stay where they are, in registers and on the stack, and the size is
 * patched in place; C moves all of them twice to keep them (45 to 70 instructions more).
 */
#include "../common/hot_x86_64.S"

#ifdef __x86_64__
    .hidden launch_cache, this_thread, real_launches, window_version, critical_bloom

/* Four forms of a call. FORM_call: rax = key without page, r10 = blocks. size_FORM, stream_FORM: stack offsets of these
 * two arguments.
 */
    .set .Lsize_module, 16
    .set .Lstream_module, 24
    .macro module_call miss
    kernel_key \miss
    kernel_blocks \miss
    .endm

/* The same with 64-bit bytes, events at 48(rsp) and 56(rsp), and a grid in work-items. Blocks of more than one
 * dimension are left to C: they would take three divisions. */
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
    mov %rdx, %r10
    mov %esi, %eax
    xor %edx, %edx
    div %r8d
    cmp $1, %edx                        /* round up */
    sbb $-1, %eax
    mov %r10, %rdx
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
    mov %rcx, %rax
    shr $32, %rax
    imul %ecx, %eax
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

/* rax = key of eax threads and a 64-bit size. */
    .macro key_with at, miss
    shl $18, %rax
    cmpq $0x3ffff, \at(%rsp)
    ja \miss
    add \at(%rsp), %rax
    .endm

/* Launches that record events are left to C. */
    .macro no_events at, miss
    mov \at(%rsp), %rax
    or \at + 8(%rsp), %rax
    jne \miss
    .endm

/* While the runtime has a dispatch table (the hook has a real function in it), a call by another route is passed on
 * and returns here through the table. Its caller is then the one recorded, if any, kept at -16(rsp). A name without
 * a table entry is left to C meanwhile.
 *
 * hot_FORM: r11 = the caller's address. pass_FORM: passes the call on. words: number of words on the program's
 * stack, part of the stub's name. */
    .macro hot form, words
    .hidden hip_slow_3_\words, hip_slow_table_3_\words
    .type hot_\form, @function
hot_\form:
    .cfi_startproc
    \form\()_call .Lslow_\form
    find_chain %rdi
    find_word %rdi, .Lfound_\form, .Lslow_\form
    count_direct .Lgiven_\form
    go_with .Lsize_\form(%rsp)
.Lfound_\form:
    found_indirect .Lsize_\form(%rsp), .Lstream_\form(%rsp), .Lgiven_\form
.Lslow_\form:                           /* a stored word would be that of a launch that a signal interrupted */
    xor %eax, %eax
.Lgiven_\form:
    mov this_thread@gottpoff(%rip), %r11
    mov %rax, %fs:112(%r11)
    mov -4(%rsp), %eax
    and $0xff0fff, %eax
    cmpb $5, -2(%rsp)
    jne hip_slow_3_\words
    mov -16(%rsp), %r10
    mov %r10, %fs:96(%r11)
    jmp hip_slow_table_3_\words
pass_\form:
    movzbl -1(%rsp), %eax
    lea real_launches(%rip), %r10
    mov (%r10, %rax, 8), %r10
    test %r10, %r10
    je .Lslow_\form
    mov this_thread@gottpoff(%rip), %r11
    cmpq $0, %fs:96(%r11)
    jne 6f
    mov (%rsp), %rax
    mov %rax, %fs:96(%r11)
6:  jmp *%r10
    .cfi_endproc
    .size hot_\form, . - hot_\form
    .endm

    hot host, 2
    hot ext, 5
    hot module, 5
    hot items, 8

    .macro identity name, null_stream, route, column
    movl $.LHOOK_\name | \null_stream << 12 | \route << 16 | (4 * .LLAUNCH_\name + \column) << 24, -4(%rsp)
    .endm
/* A route other than the table. */
    .macro asked symbol, form, name, table, null_stream, route
    .type \symbol, @function
\symbol:
    identity \name, \null_stream, \route, \route
    .if \route == 0                       /* other routes are handed out once their real functions are known */
    cmpq $0, real_launches + 32 * .LLAUNCH_\name(%rip)
    je .Lslow_\form
    .endif
    cmpq $0, real_launches + 32 * .LLAUNCH_\table + 8 * 3(%rip)
    .ifc \name, \table
    jne pass_\form
    .else
    jne .Lslow_\form
    .endif
    mov (%rsp), %r11
    jmp hot_\form
    .size \symbol, . - \symbol
    .endm
    .macro hip_launches form, name, table, null_stream
    .globl \name, symbol_\name, dlsym_\name, proc_\name, table_\name
    .hidden symbol_\name, dlsym_\name, proc_\name, table_\name
    .set symbol_\name, \name
    .cfi_startproc
    asked \name, \form, \name, \table, \null_stream, 0
    asked dlsym_\name, \form, \name, \table, \null_stream, 1
    asked proc_\name, \form, \name, \table, \null_stream, 2
    .type table_\name, @function
table_\name:                             /* clear the recorded caller: that call has arrived */
    identity \name, \null_stream, 5, 3
    mov this_thread@gottpoff(%rip), %r10
    mov %fs:96(%r10), %r11
    movq $0, %fs:96(%r10)
    mov %r11, -16(%rsp)
    test %r11, %r11
    jne hot_\form
    mov (%rsp), %r11
    jmp hot_\form
    .size table_\name, . - table_\name
    .cfi_endproc
    .endm

    hip_launches host, hipLaunchKernel, hipLaunchKernel, 2
    hip_launches host, hipLaunchKernel_spt, hipLaunchKernel_spt, 3
    hip_launches ext, hipExtLaunchKernel, hipExtLaunchKernel, 2
    hip_launches module, hipModuleLaunchKernel, hipModuleLaunchKernel, 2
    hip_launches items, hipExtModuleLaunchKernel, hipExtModuleLaunchKernel, 2
    hip_launches items, _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j, hipExtModuleLaunchKernel, 2
#endif
