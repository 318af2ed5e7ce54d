/* Thunks of driver.def: the exported symbol, those that dlsym and hipGetProcAddress return, and the one in the
 * runtime's own table. The first three call hip_target() (entry.c), which selects the body or another function that
 * gets the program's arguments unchanged. The thunks of launches are in launch_x86_64.S; their slow-path stubs are
 * here.
 */
#include "../common/thunks_x86_64.S"

#ifdef __x86_64__
    .text
    .hidden this_thread, hip_target
    .globl hip_thunks, hip_slow_3_2, hip_slow_3_5, hip_slow_3_8, hip_slow_table_3_2, hip_slow_table_3_5, hip_slow_table_3_8
    .hidden hip_thunks, hip_slow_3_2, hip_slow_3_5, hip_slow_3_8, hip_slow_table_3_2, hip_slow_table_3_5, hip_slow_table_3_8
    .set hip_slow_3_2, .Lhip_3_2
    .set hip_slow_3_5, .Lhip_3_5
    .set hip_slow_3_8, .Lhip_3_8
    .set hip_slow_table_3_2, .Lhip_launch_3_2
    .set hip_slow_table_3_5, .Lhip_launch_3_5
    .set hip_slow_table_3_8, .Lhip_launch_3_8
    .cfi_startproc
hip_thunks:
#define DRIVER_LAUNCH(name, body, parameters, ...)
#define DRIVER_VOID(name, body) THUNKS(name, 0_0)
#define DRIVER_COPY(kind, name, body, parameters, ...) COPY_THUNKS(name, SHAPE(name, __VA_ARGS__))
#define DRIVER(name, body, parameters, ...) THUNKS(name, SHAPE(name, __VA_ARGS__))
#define COPY_THUNKS(name, shape) COPY_THUNKS_(name, shape)
#define COPY_THUNKS_(name, shape) THUNKS_OF(name, .Lhip_copy_##shape, .Lhip_copy_##shape)
#define THUNKS(name, shape) THUNKS_(name, shape)
#define THUNKS_(name, shape) THUNKS_OF(name, .Lhip_##shape, .Lhip_table_##shape)
#define THUNKS_OF(name, stub, table_stub)                                                                              \
    .globl name, dlsym_##name, proc_##name, table_##name;                                                              \
    .hidden dlsym_##name, proc_##name, table_##name;                                                                   \
    thunk table_##name, .LHOOK_##name, 5, 0xe9;                                                                        \
    .long table_stub - . - 4;                                                                                          \
    thunk proc_##name, .LHOOK_##name, 2, 0xeb, 12;                                                                     \
    thunk dlsym_##name, .LHOOK_##name, 1, 0xeb, 5;                                                                     \
    thunk_end name, .LHOOK_##name, stub;
#include "driver.def"
#undef DRIVER
    .cfi_endproc

/* hip_table_site() */
    .macro site_of_table at
    mov this_thread@gottpoff(%rip), %r10
    mov %fs:96(%r10), %rdx
    movq $0, %fs:96(%r10)
    test %rdx, %rdx
    cmovz \at, %rdx
    .endm

/* hip_table_launch_site() */
    .macro site_of_launch at
    mov this_thread@gottpoff(%rip), %r10
    mov %fs:96(%r10), %rdx
    movq $0, %fs:96(%r10)
    test %rdx, %rdx
    jne 3f
    mov \at, %rdx
    bts $63, %rdx
3:
    .endm

    .macro registers_at_frame operation
    \operation %rax, -8
    \operation %rdi, -16
    \operation %rsi, -24
    \operation %rdx, -32
    \operation %rcx, -40
    \operation %r8, -48
    \operation %r9, -56
    .endm
    .macro keep register, at
    mov \register, \at(%rbp)
    .endm
    .macro take register, at
    mov \at(%rbp), \register
    .endm

    .macro routed_stub family, bodies, site, registers, words
    .cfi_startproc
.L\family\()_\registers\()_\words:
    frame
    sub $64, %rsp
    registers_at_frame keep
    mov %eax, %edi
    mov 8(%rbp), %rsi
    call hip_target
    mov %rdx, -64(%rbp)
    mov %rax, %r11
    registers_at_frame take
    test %r11, %r11
    jne 1f
    call_body \bodies, \registers, \words, \site
    .cfi_remember_state
    frame_end
    .cfi_restore_state
1:  push_words \words
    call *%r11
    cmpq $0, -64(%rbp)                  /* this call recorded the caller: it may not have passed through the table */
    je 2f
    mov this_thread@gottpoff(%rip), %r11
    movq $0, %fs:96(%r11)
2:  frame_end
    .cfi_endproc
    .endm

    stubs routed_stub, hip, hip_bodies, site_is_caller, 3, 0, 1, 2, 3, 4, 5, 7, 8
    stubs routed_stub, hip, hip_bodies, site_is_caller, 0, 0, 8
    stubs plain_stub, hip_table, hip_bodies, site_of_table, 3, 0, 1, 2, 3, 4, 7
    stubs plain_stub, hip_table, hip_bodies, site_of_table, 0, 0, 8
    .hidden hip_copy_enter, hip_copy_leave
    stubs copy_stub, hip_copy, hip_copy_enter, hip_copy_leave, 3, 0, 1, 2, 3
    stubs copy_stub, hip_copy, hip_copy_enter, hip_copy_leave, 0, 0, 7
    stubs plain_stub, hip_launch, hip_bodies, site_of_launch, 3, 2, 5, 8

    .section .rodata
    .balign 4
    .globl hip_table
    .hidden hip_table
hip_table:
    .set hip_bodies, hip_table - 4 * .LFIRST_HIP
/* slow_hip_host_body, slow_hip_module_body, slow_hip_ext_body, slow_hip_items_body: launch_x86_64.h */
#define DRIVER_LAUNCH(name, body, parameters, ...) .hidden slow_##body; .long slow_##body - hip_bodies;
#define DRIVER_COPY(kind, name, body, parameters, ...) copy_row kind, __VA_ARGS__;
#define DRIVER(name, body, parameters, ...) .hidden body; .long body - hip_bodies;
#include "driver.def"
#undef DRIVER
#endif
