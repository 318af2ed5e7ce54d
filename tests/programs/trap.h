/* The processor's trap flag: a signal at each instruction until it is taken away. */
#pragma once

enum { RED_ZONE = 128 };

/* Beside the red zone, where the compiler may keep something. */
static inline __attribute__((always_inline)) void trap(int on) {
#ifdef __x86_64__
    if (on)
        __asm__ volatile(
            "lea %c0(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tlea %c1(%%rsp), %%rsp" ::"i"(-RED_ZONE),
            "i"(RED_ZONE)
            : "cc", "memory");
    else
        __asm__ volatile(
            "lea %c0(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tlea %c1(%%rsp), %%rsp" ::"i"(
                -RED_ZONE),
            "i"(RED_ZONE)
            : "cc", "memory");
#else
    (void)on;
#endif
}
