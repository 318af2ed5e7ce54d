/* The thunks of driver.def, but for those of launches (launch_x86_64.S): the exported symbol, the one that dlsym gives out, and
 * the one that cuGetProcAddress gives out.
 */
#include "../common/thunks_x86_64.S"

#ifdef __x86_64__
    .text
    .cfi_startproc
#define DRIVER_LAUNCH(name, body, parameters, ...)
#define DRIVER_VOID(name, body) THUNKS(name, 0_0)
#define DRIVER(name, body, parameters, ...) THUNKS(name, SHAPE(name, __VA_ARGS__))
#define THUNKS(name, shape) THUNKS_(name, shape)
#define THUNKS_(name, shape)                                                                                           \
    .globl name, dlsym_##name, proc_##name;                                                                            \
    .hidden dlsym_##name, proc_##name;                                                                                 \
    thunk name, .LHOOK_##name, 0, .Lcuda_##shape;                                                                      \
    thunk dlsym_##name, .LHOOK_##name, 1, .Lcuda_##shape;                                                              \
    thunk proc_##name, .LHOOK_##name, 2, .Lcuda_##shape;
#include "driver.def"
#undef DRIVER
    .cfi_endproc

    stubs plain_stub, cuda, cuda_bodies, site_is_caller

    .section .rodata
    .balign 4
cuda_bodies:
#define DRIVER_LAUNCH(name, body, parameters, ...) .long 0;
#define DRIVER(name, body, parameters, ...) .hidden body; .long body - cuda_bodies;
#include "driver.def"
#undef DRIVER
#endif
