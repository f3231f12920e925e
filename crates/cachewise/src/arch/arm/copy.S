// Copies. Each byte is stored once.

// 32 bytes at a time by eight registers where both sides can be at a word boundary at once: `ldm`
// and `stm` trap anywhere else, whatever the system allows other loads. Else by words: the
// destination at a boundary, the source as it is.
cw_begin copy_ldm_stm
cw_label copy_ldm_stm_inside
    cmp r2, 32
    blo 4f
    cw_head copy
    cmp r2, 32
    blo 4f
    tst r1, 3
    bne 3f
    .p2align 6
2:  cw_access 0, fault_copy, ldm r1, {{r4-r11}}
    cw_access 0, fault_copy, stm r0, {{r4-r11}}
    cw_copied 32
    cmp r2, 32
    bhs 2b
    b 4f
    .p2align 6
3:  cw_copy_words 0
    cw_copy_words 16
    cw_copied 32
    cmp r2, 32
    bhs 3b
4:  cw_tail copy
    cw_return
cw_end copy_ldm_stm

// Line by line, each prefetched once and two lines ahead: the first two before the loop, none beyond
// the last (seeds row A1). A line is any multiple of 16 bytes; \prefetch is what stands in for each
// prefetch.
//
// fn(r0: destination, r1: source, r2: length, r3: line) -> (r0, r1). Both addresses are multiples of
// 4, the length is one of two lines and not 0.
.macro cw_copy_lines name, prefetch
cw_begin \name
    mov lr, r3
    add r8, lr, lr
    mov r11, 0
    \prefetch [r1]
    \prefetch [r1, lr]
    .p2align 6
2:  cmp r2, r8
    bls 3f
    \prefetch [r1, r8]
3:  mov r9, lr
    .p2align 6
4:  cw_access 0, fault_copy, ldm r1, {{r4-r7}}
    cw_access 0, fault_copy, stm r0, {{r4-r7}}
    cw_copied 16
    subs r9, r9, 16
    bne 4b
    cmp r2, 0
    bne 2b
    cw_return_with r2, r11
cw_end \name
.endm

.macro cw_pld address:vararg
    pld \address
.endm

.macro cw_count address:vararg
    add r11, r11, 1
.endm

cw_copy_lines copy_lines, cw_pld
// For the test that counts: the same loop, which returns its prefetches as what stopped it.
    .if {counts}
cw_copy_lines copy_lines_counting, cw_count
    .endif

// 64 bytes at a time by vector registers, at any alignment of both sides.
cw_begin copy_neon
    cmp r2, 64
    blo cachewise_{major}_{minor}_{patch}_copy_ldm_stm_inside
    .p2align 6
2:  add r4, r1, 32
    add r5, r0, 32
    cw_access 0, fault_copy, vld1.8 {{d0-d3}}, [r1]
    cw_access 0, fault_copy, vld1.8 {{d4-d7}}, [r4]
    cw_access 0, fault_copy, vst1.8 {{d0-d3}}, [r0]
    cw_access 32, fault_copy, vst1.8 {{d4-d7}}, [r5]
    cw_copied 64
    cmp r2, 64
    bhs 2b
    b cachewise_{major}_{minor}_{patch}_copy_ldm_stm_inside
cw_end copy_neon

// From the last byte to the first, each stored once: for a destination that overlaps the source
// from above. No fix-up fits: bytes are done from the end. So its accesses have no row.
cw_begin copy_backward
    add r0, r0, r2
    add r1, r1, r2
    cmp r2, 4
    blo 3f
    .p2align 6
2:  ldr r4, [r1, #-4]
    str r4, [r0, #-4]
    sub r1, r1, 4
    sub r0, r0, 4
    sub r2, r2, 4
    cmp r2, 4
    bhs 2b
3:  cmp r2, 0
    beq 5f
    .p2align 6
4:  ldrb r4, [r1, #-1]
    strb r4, [r0, #-1]
    sub r1, r1, 1
    sub r0, r0, 1
    subs r2, r2, 1
    bne 4b
5:  cw_return
cw_end copy_backward
