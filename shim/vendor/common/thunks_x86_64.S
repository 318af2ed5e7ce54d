/* What the thunks of both vendors are made of on x86-64: macros only. A thunk says which entry point it is, and by which way it
 * was reached, and jumps to a stub, which brings that in front of the program's arguments and goes to the body (driver.def):
 * body(way, hook, site, arguments...). Seven or ten bytes for each of 1,500 functions, where C would shift the arguments in each.
 */
#ifdef __x86_64__
#include "copy.h"
#include "hooks_x86_64.S"

/* REGISTERS_WORDS, the shape of a call: how many of its arguments in registers the body has on its stack, 0 or 3, and how many
 * words it has on the stack itself. By the number of arguments, of one word each; others are SHAPE_name ~, REGISTERS_WORDS. */
#define SHAPE_0 0_0
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
#define SHAPE_11 3_5
#define SHAPE_13 3_7
#define SHAPE_14 3_8
/* Structs of more than two words are passed on the stack, smaller ones in as many registers: dim3 in two. */
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

/* The thunks of a call share the jump to the stub. They have one size each, so jumps are written in bytes: an assembler would choose. */
    .macro thunk symbol, number, way, jump:vararg
    .type \symbol, @function
\symbol:
    mov $\way << 16 | \number, %eax
    .byte \jump
    .size \symbol, . - \symbol
    .endm
    .macro thunk_end symbol, number, stub
    thunk \symbol, \number, 0, 0xe9    /* jmp with 32 bits */
    .long \stub - . - 4
    .endm

/* r11 = the body of hook eax, edi = its way, esi = the hook, behind arguments that have been shifted. Changes r10. */
    .macro find_body bodies
    movzwl %ax, %esi
    lea \bodies(%rip), %r10
    movslq (%r10, %rsi, 4), %r11
    add %r10, %r11
    mov %eax, %edi
    shr $16, %edi
    .endm

/* The program's arguments in registers, three to the right. */
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

/* So many words of the program's stack, after as many that the stack is aligned behind `words` and `more` of them. */
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

/* Calls the body in a frame, since it has arguments on its stack. site: a macro that leaves the caller's address in rdx. */
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

/* A call of copy.def: `enter` says what is called, with all arguments as they are, and `leave` learns what came of it. */
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

/* The row of a copy in a table of bodies: its kind, and which of its arguments of one word `stream` is. */
    .macro copy_row kind, arguments:vararg
    .set .Lat, 0
    .set .Lstream, 0
    .irp argument, \arguments
    .ifc \argument, stream
    .set .Lstream, .Lat
    .endif
    .set .Lat, .Lat + 1
    .ifc \argument, pitchedDevPtr      /* longer ones are on the stack */
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
