/* The runtime of tools/bench that does nothing, but a launch leaves its arguments for the program to look at. JUMPS: one
 * of its entry points jumps to another one through the dynamic linker. */
static void *behind(int place);
#define BEHIND behind
#ifdef JUMPS
#define hipLaunchKernel hipLaunchKernel_spt
#endif
#include "../../tools/bench/null_hip.c"
#ifdef JUMPS
__asm__(".globl hipLaunchKernel\n.type hipLaunchKernel, %function\nhipLaunchKernel:\n"
#ifdef __x86_64__
        "jmp hipLaunchKernel_spt@PLT\n"
#else
        "b hipLaunchKernel_spt\n"
#endif
        ".size hipLaunchKernel, . - hipLaunchKernel\n");
#endif

#include "echo_hip.h"

static struct echo last;

API const struct echo *echo_last(void) {
    return &last;
}

static int launch(const void *f, dim3 grid, dim3 block, void **parameters, size_t shared, void *stream) {
    last = (struct echo){
        f, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, stream, parameters, NULL, NULL, NULL, 0};
    return 0;
}
static int ext(const void *f, dim3 grid, dim3 block, void **parameters, size_t shared, void *stream, void *start,
               void *stop, int flags) {
    launch(f, grid, block, parameters, shared, stream);
    last.start = start, last.stop = stop, last.flags = (unsigned)flags;
    return 0;
}
static int module(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, void *stream, void **parameters, void **extra) {
    last = (struct echo){f, {gx, gy, gz}, {bx, by, bz}, shared, stream, parameters, extra, NULL, NULL, 0};
    return 0;
}
static int ext_module(void *f, unsigned ix, unsigned iy, unsigned iz, unsigned bx, unsigned by, unsigned bz,
                      size_t shared, void *stream, void **parameters, void **extra, void *start, void *stop,
                      unsigned flags) {
    last = (struct echo){f, {ix, iy, iz}, {bx, by, bz}, shared, stream, parameters, extra, start, stop, flags};
    return 0;
}
static int nothing(void) {
    return 0;
}

static void *behind(int place) {
    return place == PLACE_hipLaunchKernel            ? (void *)launch
           : place == PLACE_hipExtLaunchKernel       ? (void *)ext
           : place == PLACE_hipModuleLaunchKernel    ? (void *)module
           : place == PLACE_hipExtModuleLaunchKernel ? (void *)ext_module
                                                     : (void *)nothing;
}
