/* Thunks of driver.def: the exported symbol, and those that dlsym and cuGetProcAddress return. The thunks of launches
 * are in launch_x86_64.S; their slow-path stubs are here.
 */
#include "../common/thunks_x86_64.S"

#ifdef __x86_64__
    .text
    .globl cuda_thunks, cuda_slow_3_0, cuda_slow_3_5
    .hidden cuda_thunks, cuda_slow_3_0, cuda_slow_3_5
    .set cuda_slow_3_0, .Lcuda_3_0
    .set cuda_slow_3_5, .Lcuda_3_5
    .cfi_startproc
cuda_thunks:
#define DRIVER_LAUNCH(name, body, parameters, ...)
#define DRIVER_VOID(name, body) THUNKS(name, 0_0)
#define DRIVER_COPY(kind, name, body, parameters, ...) COPY_THUNKS(name, SHAPE(name, __VA_ARGS__))
#define DRIVER(name, body, parameters, ...) THUNKS(name, SHAPE(name, __VA_ARGS__))
#define COPY_THUNKS(name, shape) COPY_THUNKS_(name, shape)
#define COPY_THUNKS_(name, shape) THUNKS_(name, copy_##shape)
#define THUNKS(name, shape) THUNKS_(name, shape)
#define THUNKS_(name, shape)                                                                                           \
    .globl name, dlsym_##name, proc_##name;                                                                            \
    .hidden dlsym_##name, proc_##name;                                                                                 \
    thunk proc_##name, .LHOOK_##name, 2, 0xeb, 12;                                                                     \
    thunk dlsym_##name, .LHOOK_##name, 1, 0xeb, 5;                                                                     \
    thunk_end name, .LHOOK_##name, .Lcuda_##shape;
#include "driver.def"
#undef DRIVER
    .cfi_endproc

    stubs plain_stub, cuda, cuda_bodies, site_is_caller, 3, 0, 1, 2, 3, 4, 5
    stubs plain_stub, cuda, cuda_bodies, site_is_caller, 0, 0, 8
    .hidden cuda_copy_enter, cuda_copy_leave
    stubs copy_stub, cuda_copy, cuda_copy_enter, cuda_copy_leave, 3, 0, 1, 2, 3
    stubs copy_stub, cuda_copy, cuda_copy_enter, cuda_copy_leave, 0, 0

    .section .rodata
    .balign 4
    .globl cuda_bodies
    .hidden cuda_bodies
cuda_bodies:
/* slow_launch_body, slow_launch_ex_body: launch_x86_64.h */
#define DRIVER_LAUNCH(name, body, parameters, ...) .hidden slow_##body; .long slow_##body - cuda_bodies;
#define DRIVER_COPY(kind, name, body, parameters, ...) copy_row kind, __VA_ARGS__;
#define DRIVER(name, body, parameters, ...) .hidden body; .long body - cuda_bodies;
#include "driver.def"
#undef DRIVER
#endif
