/* dlsym, dlvsym and dlclose for aarch64: see dlsym_x86_64.S. */
#ifdef __aarch64__
    .text

    .macro lookup name, real, start, hook
    .globl \name
    .hidden \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    hint #34 /* bti c */
    adrp x16, \real
    ldr x16, [x16, #:lo12:\real]
    cbz x16, .Lstart_\name
.Lready_\name:
    cbz x1, .Lreal_\name
    ldrb w17, [x1]
    cmp w17, #'c'
    b.ne .Lother_\name
    ldrb w17, [x1, #1]
    cmp w17, #'u'
    b.ne .Lreal_\name
    ldrb w17, [x1, #2]
    cmp w17, #'d'
    b.eq .Lruntime_\name
    sub w17, w17, #'A'
    cmp w17, #25
    b.hi .Lreal_\name
.Lours_\name:
    stp x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x30, 8
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    mov x3, x30
    bl \hook
    mov x17, x0
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x30
    cbnz x17, .Lanswer_\name
    adrp x16, \real
    ldr x16, [x16, #:lo12:\real]
.Lreal_\name:
    br x16
.Lruntime_\name:
    ldrb w17, [x1, #3]
    cmp w17, #'a'
    b.ne .Lreal_\name
    ldrb w17, [x1, #4]
    cmp w17, #'L'
    b.eq .Lours_\name
    cmp w17, #'S'
    b.eq .Lours_\name
    br x16
.Lother_\name:                          // hip..., __c..., __h..., _Z2..., rocp...
    cmp w17, #'h'
    b.eq .Lhip_\name
    cmp w17, #'_'
    b.eq .Lunderscore_\name
    cmp w17, #'r'
    b.ne .Lreal_\name
    ldrb w17, [x1, #1]
    cmp w17, #'o'
    b.ne .Lreal_\name
    ldrb w17, [x1, #2]
    cmp w17, #'c'
    b.ne .Lreal_\name
    ldrb w17, [x1, #3]
    cmp w17, #'p'
    b.eq .Lours_\name
    br x16
.Lhip_\name:
    ldrb w17, [x1, #1]
    cmp w17, #'i'
    b.ne .Lreal_\name
    ldrb w17, [x1, #2]
    cmp w17, #'p'
    b.eq .Lours_\name
    br x16
.Lunderscore_\name:
    ldrb w17, [x1, #1]
    cmp w17, #'_'
    b.eq .Lreserved_\name
    cmp w17, #'Z'
    b.ne .Lreal_\name
    ldrb w17, [x1, #2]
    cmp w17, #'2'
    b.eq .Lours_\name
    br x16
.Lreserved_\name:
    ldrb w17, [x1, #2]
    cmp w17, #'c'
    b.eq .Lours_\name
    cmp w17, #'h'
    b.eq .Lours_\name
    br x16
.Lanswer_\name:
    cmp x17, #1 /* OVERLAP_NO_SYMBOL */
    csel x0, xzr, x17, eq
    ret
.Lstart_\name:
    stp x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x30, 8
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    bl \start
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x30
    cbnz x16, .Lready_\name
    mov x0, xzr
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    lookup overlap_dlsym_entry, overlap_real_dlsym, overlap_find_dlsym, overlap_dlsym_hook
    lookup overlap_dlvsym_entry, overlap_real_dlvsym, overlap_find_dlvsym, overlap_dlvsym_hook

/* dlclose is written in C (bind.c), because it does not depend on the caller's return address. */
    .globl overlap_dlclose_entry
    .hidden overlap_dlclose_entry, overlap_dlclose
    .type overlap_dlclose_entry, @function
overlap_dlclose_entry:
    .cfi_startproc
    hint #34 /* bti c */
    b overlap_dlclose
    .cfi_endproc
    .size overlap_dlclose_entry, . - overlap_dlclose_entry

    .macro version alias, entry, symbol
    .globl \alias
    .type \alias, @function
    .set \alias, \entry
    .symver \alias, \symbol
    .endm

    version overlap_dlsym_old, overlap_dlsym_entry, dlsym@GLIBC_2.17
    version overlap_dlsym_new, overlap_dlsym_entry, dlsym@@GLIBC_2.34
    version overlap_dlvsym_old, overlap_dlvsym_entry, dlvsym@GLIBC_2.17
    version overlap_dlvsym_new, overlap_dlvsym_entry, dlvsym@@GLIBC_2.34
    version overlap_dlclose_old, overlap_dlclose_entry, dlclose@GLIBC_2.17
    version overlap_dlclose_new, overlap_dlclose_entry, dlclose@@GLIBC_2.34
#endif

#ifdef __ELF__
    .section .note.GNU-stack, "", %progbits
#endif
