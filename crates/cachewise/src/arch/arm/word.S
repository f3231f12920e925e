// One access: an object of 1, 2, 4 or 8 bytes, aligned, so that it is not torn; and the length of
// a string.
//
// fn \name(r1: object, r2 and r3: first, stack: second) -> [r0]: what was there, in two words, and
// what stopped it. Eight bytes are accessed by exclusive instructions: only they are not torn on
// every ARMv7 (ARM DDI 0406, A3.5.3). The exchanges are sequentially consistent by a barrier on
// either side.

// The value is in r4 and r5.
.macro cw_word_return
    str r4, [r0]
    str r5, [r0, 4]
    mov r6, 0
    str r6, [r0, 8]
    pop {{r4-r11, pc}}
.endm

.macro cw_word name, instruction:vararg
cw_begin \name
    mov lr, 0
    mov r4, 0
    mov r5, 0
    cw_access 0, word_failed, \instruction
    cw_word_return
cw_end \name
.endm

cw_word read_1, ldrb r4, [r1]
cw_word read_2, ldrh r4, [r1]
cw_word read_4, ldr r4, [r1]
cw_word read_8, ldrexd r4, r5, [r1]

cw_word write_1, strb r2, [r1]
cw_word write_2, strh r2, [r1]
cw_word write_4, str r2, [r1]

cw_begin write_8
    mov lr, 0
    .p2align 6
2:  cw_access 0, word_failed, ldrexd r4, r5, [r1]
    cw_access 0, word_failed, strexd r6, r2, r3, [r1]
    cmp r6, 0
    bne 2b
    cw_word_return
cw_end write_8

cw_begin swap_4
    mov lr, 0
    mov r5, 0
    dmb ish
    .p2align 6
2:  cw_access 0, word_failed, ldrex r4, [r1]
    cw_access 0, word_failed, strex r6, r2, [r1]
    cmp r6, 0
    bne 2b
    dmb ish
    cw_word_return
cw_end swap_4

cw_begin swap_8
    mov lr, 0
    dmb ish
    .p2align 6
2:  cw_access 0, word_failed, ldrexd r4, r5, [r1]
    cw_access 0, word_failed, strexd r6, r2, r3, [r1]
    cmp r6, 0
    bne 2b
    dmb ish
    cw_word_return
cw_end swap_8

// What is not expected is stored back, as x86 does it: so an object that cannot be written is a
// fault in either case.
cw_begin compare_exchange_4
    ldr r6, [sp, 36]
    mov lr, 0
    mov r5, 0
    dmb ish
    .p2align 6
2:  cw_access 0, word_failed, ldrex r4, [r1]
    cmp r4, r2
    moveq r8, r6
    movne r8, r4
    cw_access 0, word_failed, strex r10, r8, [r1]
    cmp r10, 0
    bne 2b
    dmb ish
    cw_word_return
cw_end compare_exchange_4

cw_begin compare_exchange_8
    ldr r6, [sp, 36]
    ldr r7, [sp, 40]
    mov lr, 0
    dmb ish
    .p2align 6
2:  cw_access 0, word_failed, ldrexd r4, r5, [r1]
    cmp r4, r2
    cmpeq r5, r3
    moveq r8, r6
    moveq r9, r7
    movne r8, r4
    movne r9, r5
    cw_access 0, word_failed, strexd r10, r8, r9, [r1]
    cmp r10, 0
    bne 2b
    dmb ish
    cw_word_return
cw_end compare_exchange_8

cw_begin_inside word_failed
    lsl lr, lr, {cause_shift}
    orr lr, lr, {destination}
    str lr, [r0, 8]
    pop {{r4-r11, pc}}
cw_end word_failed

// The second argument is the most bytes to look at, of which the lower half is all there can be; the
// value is the bytes not looked at.
cw_begin string_end
    ldr r4, [sp, 36]
    mov r5, 0
    mov lr, 0
    cmp r4, 0
    beq 3f
    .p2align 6
2:  cw_access 0, string_failed, ldrb r6, [r1]
    cmp r6, 0
    beq 3f
    add r1, r1, 1
    subs r4, r4, 1
    bne 2b
3:  cw_word_return
cw_end string_end

cw_begin_inside string_failed
    lsl lr, lr, {cause_shift}
    orr lr, lr, {source}
    str r4, [r0]
    str r5, [r0, 4]
    str lr, [r0, 8]
    pop {{r4-r11, pc}}
cw_end string_failed
