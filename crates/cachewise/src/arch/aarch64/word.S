// One access: an object of 1, 2, 4 or 8 bytes, aligned, so that it is not torn; and the length of
// a string. On return x0 is what was there and x1 0, or x1 is what stopped it.

.macro cw_word name, instruction:vararg
cw_begin \name
    mov x10, xzr
    cw_access 0, word_failed, \instruction
    mov x1, xzr
    ret
cw_end \name
.endm

// fn(x0: pointer) -> (x0: value, x1)
cw_word read_1, ldrb w0, [x0]
cw_word read_2, ldrh w0, [x0]
cw_word read_4, ldr w0, [x0]
cw_word read_8, ldr x0, [x0]

// fn(x0: pointer, x1: value) -> (x0, x1)
cw_word write_1, strb w1, [x0]
cw_word write_2, strh w1, [x0]
cw_word write_4, str w1, [x0]
cw_word write_8, str x1, [x0]

// fn(x0: pointer, x1: new value) -> (x0: old value, x1)
.macro cw_swap name, old, new
cw_begin \name
    mov x10, xzr
    .p2align 6
2:  cw_access 0, word_failed, ldaxr \old, [x0]
    cw_access 0, word_failed, stlxr w5, \new, [x0]
    cbnz w5, 2b
    mov x0, x4
    mov x1, xzr
    ret
cw_end \name
.endm

// fn(x0: pointer, x1: expected, x2: new value) -> (x0: old value, x1). What is not expected is
// stored back, as x86 does it: so an object that cannot be written is a fault in either case.
.macro cw_compare_exchange name, old, expected, new, stored
cw_begin \name
    mov x10, xzr
    .p2align 6
2:  cw_access 0, word_failed, ldaxr \old, [x0]
    cmp \old, \expected
    csel \stored, \new, \old, eq
    cw_access 0, word_failed, stlxr w5, \stored, [x0]
    cbnz w5, 2b
    mov x0, x4
    mov x1, xzr
    ret
cw_end \name
.endm

cw_swap swap_4, w4, w1
cw_swap swap_8, x4, x1
cw_compare_exchange compare_exchange_4, w4, w1, w2, w3
cw_compare_exchange compare_exchange_8, x4, x1, x2, x3

cw_begin word_failed
    lsl x1, x10, {cause_shift}
    orr x1, x1, {destination}
    ret
cw_end word_failed

// fn(x0: string, x1: unused, x2: at most) -> (x0: bytes not looked at, x1)
cw_begin string_end
    mov x10, xzr
    cbz x2, 3f
    .p2align 6
2:  cw_access 0, source_failed, ldrb w3, [x0]
    cbz w3, 3f
    add x0, x0, 1
    subs x2, x2, 1
    b.ne 2b
3:  mov x0, x2
    mov x1, xzr
    ret
cw_end string_end
