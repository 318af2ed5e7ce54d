/* Macros of the thunks of both vendors on x86-64. A thunk loads its hook and route into a register and jumps to a stub.
 * The stub inserts them before the program's arguments and calls the body (driver.def): body(route, hook, site,
 * arguments...). That takes seven or ten bytes for each of 1,500 functions; in C each function would shift the
 * arguments itself.
 */
#ifdef __x86_64__
#include "copy_calls.h"
#include "hooks_x86_64.S"

/* REGISTERS_WORDS, the shape of a call: how many of its register arguments the body gets on its stack, 0 or 3, and
 * how many words the call has on the stack itself. Chosen by the number of one-word arguments; exceptions are
 * SHAPE_name ~, REGISTERS_WORDS. */
#define SHAPE_1 0_0
#define SHAPE_2 0_0
#define SHAPE_3 0_0
#define SHAPE_4 3_0
#define SHAPE_5 3_0
#define SHAPE_6 3_0
#define SHAPE_7 3_1
#define SHAPE_8 3_2
#define SHAPE_9 3_3
#define SHAPE_10 3_4
#define SHAPE_13 3_7
/* Structs of more than two words are passed on the stack, smaller ones in registers: dim3 in two. */
#define SHAPE_cuIpcOpenEventHandle ~, 0_8
#define SHAPE_hipIpcOpenEventHandle ~, 0_8
#define SHAPE_hipLaunchCooperativeKernel ~, 3_2
#define SHAPE_hipLaunchCooperativeKernel_spt ~, 3_2
#define SHAPE_hipMemset3D ~, 0_7
#define SHAPE_hipMemset3D_spt ~, 0_7
#define SHAPE_hipMemset3DAsync ~, 0_7
#define SHAPE_hipMemset3DAsync_spt ~, 0_7

#define CAT(a, b) CAT_(a, b)
#define CAT_(a, b) a##b
#define SECOND(...) SECOND_(__VA_ARGS__, ~)
#define SECOND_(first, second, ...) second
#define COUNT(...) COUNT_(__VA_ARGS__, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
#define COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, count, ...) count
#define SHAPE(name, ...) SECOND(CAT(SHAPE_, name), CAT(SHAPE_, COUNT(__VA_ARGS__)))

/* The thunks of a call share the jump to the stub. Each has a fixed size, so jumps are written as bytes: an
 * assembler would choose their length. */
    .macro thunk symbol, number, route, jump:vararg
    .type \symbol, @function
\symbol:
    mov $\route << 16 | \number, %eax
    .byte \jump
    .size \symbol, . - \symbol
    .endm
    .macro thunk_end symbol, number, stub
    thunk \symbol, \number, 0, 0xe9    /* jmp rel32 */
    .long \stub - . - 4
    .endm

/* r11 = the body of hook eax, edi = its route, esi = the hook; the arguments have been shifted already. Clobbers
 * r10. */
    .macro find_body bodies
    movzwl %ax, %esi
    lea \bodies(%rip), %r10
    movslq (%r10, %rsi, 4), %r11
    add %r10, %r11
    mov %eax, %edi
    shr $16, %edi
    .endm

/* Shift the program's register arguments by three. */
    .macro shift_registers
    mov %rdx, %r9
    mov %rsi, %r8
    mov %rdi, %rcx
    .endm

    .macro frame
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    .endm
    .macro frame_end
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .endm

/* Push so many words of the program's stack, with padding so that the stack is aligned after `words` and `more`. */
    .macro push_words words, more=0
    .if (\words + \more) & 1
    sub $8, %rsp
    .endif
    .set .Lword, \words
    .rept \words
    pushq 8 + 8 * .Lword(%rbp)
    .set .Lword, .Lword - 1
    .endr
    .endm

/* Call the body in a frame of its own, because it has stack arguments. site: a macro that puts the caller's address
 * into rdx. */
    .macro call_body bodies, registers, words, site
    push_words \words, \registers
    .if \registers
    push %r9
    push %r8
    push %rcx
    .endif
    shift_registers
    \site 8(%rbp)
    find_body \bodies
    call *%r11
    .endm

    .macro site_is_caller at
    mov \at, %rdx
    .endm

/* A call of copy.def: `enter` returns the function to call, all arguments stay as they are, and `leave` gets the
 * result. */
    .macro registers_of_copy operation
    \operation %rax, -56
    \operation %rdi, -48
    \operation %rsi, -40
    \operation %rdx, -32
    \operation %rcx, -24
    \operation %r8, -16
    \operation %r9, -8
    .endm
    .macro keep_for_copy register, at
    mov \register, \at(%rbp)
    .endm
    .macro take_from_copy register, at
    mov \at(%rbp), \register
    .endm
    .macro copy_stub family, enter, leave, registers, words
    .cfi_startproc
.L\family\()_\registers\()_\words:
    frame
    sub $COPY_FRAME, %rsp
    registers_of_copy keep_for_copy
    lea -COPY_FRAME(%rbp), %rdi
    call \enter
    mov %rax, %r11
    registers_of_copy take_from_copy
    push_words \words
    call *%r11
    lea -COPY_FRAME(%rbp), %rdi
    mov %eax, %esi
    call \leave
    frame_end
    .cfi_endproc
    .endm

/* The row of a copy in a table of bodies: its kind, and the index of `stream` among its one-word arguments. */
    .macro copy_row kind, arguments:vararg
    .set .Lat, 0
    .set .Lstream, 0
    .irp argument, \arguments
    .ifc \argument, stream
    .set .Lstream, .Lat
    .endif
    .set .Lat, .Lat + 1
    .ifc \argument, pitchedDevPtr      /* passed on the stack */
    .set .Lat, .Lat - 1
    .endif
    .ifc \argument, extent
    .set .Lat, .Lat - 1
    .endif
    .endr
    .long \kind << 4 | .Lstream
    .endm

/* family_REGISTERS_WORDS */
    .macro plain_stub family, bodies, site, registers, words
    .cfi_startproc
.L\family\()_\registers\()_\words:
    .if \registers + \words
    frame
    call_body \bodies, \registers, \words, \site
    frame_end
    .else
    shift_registers
    \site (%rsp)
    find_body \bodies
    jmp *%r11
    .endif
    .cfi_endproc
    .endm
    .macro stubs kind, family, bodies, site, registers, shapes:vararg
    .irp words, \shapes
    \kind \family, \bodies, \site, \registers, \words
    .endr
    .endm
#endif

#ifdef __ELF__
    .pushsection .note.GNU-stack, "", %progbits
    .popsection
#endif
