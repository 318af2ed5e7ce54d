/* The numbers of hooks (hook.h), generated from the same tables. */
#ifdef __x86_64__
    .set .Lnext, 0
#define DRIVER(name, body, parameters, ...) .set .LHOOK_##name, .Lnext; .set .Lnext, .Lnext + 1;
#include "../cuda/driver.def"
    .set .LFIRST_HIP, .Lnext
#include "../hip/driver.def"
#undef DRIVER

/* Launch calls that have a hot path (enum launch_row). */
    .set .Lnext, 0
#define DRIVER(name, body, parameters, ...)
#define DRIVER_LAUNCH(name, body, parameters, ...) .set .LLAUNCH_##name, .Lnext; .set .Lnext, .Lnext + 1;
#include "../cuda/driver.def"
#define DRIVER_LAUNCH(name, body, parameters, ...) .set .LLAUNCH_##name, .Lnext; .set .Lnext, .Lnext + 1;
#include "../hip/driver.def"
#undef DRIVER
#endif

#ifdef __ELF__
    .pushsection .note.GNU-stack, "", %progbits
    .popsection
#endif
