// After a fault. The handler has set pc to one of these and x9 to the bytes done at the cursors.
//
// At most one block is done again, in words and at last in bytes, with separate loads and stores:
// that finds the exact byte and the side that failed (the memory-copy instructions have one program
// counter for both). If nothing fails again the fault was transient, and the routine returns with
// bytes left but nothing that stopped it: the caller calls again and is back in the main loop.
//
// The handler may say more, and a kernel's need not: bit 63 of x9 means poisoned memory, which is
// not touched again; x10 is the cause, passed on to the caller above the side.

// From `cpyfm` or `cpyfe`, which keep their state in the registers in one of two forms, told by the
// carry flag (Arm ARM DDI 0487, CPYFP): set (option B), they are the cursors and the bytes left;
// clear (option A), the addresses are those of the end and the count is that of the bytes left,
// negative. A fault in `cpyfp` finds them as they were before it, whatever the option.
cw_begin fault_copy_mops
    b.cs 2f
    add x0, x0, x2
    add x1, x1, x2
    neg x2, x2
2:  b cachewise_{major}_{minor}_{patch}_fault_copy
cw_end fault_copy_mops

// Up to one block again, from the bytes done at the cursors.
cw_begin fault_copy
    and x3, x9, 0x7fffffffffffffff
    add x0, x0, x3
    add x1, x1, x3
    sub x2, x2, x3
    tbnz x9, 63, 6f
    mov x3, {retry_bytes}
    cmp x3, x2
    csel x3, x3, x2, lo
    mov x4, xzr
    mov x10, xzr
    .p2align 6
2:  cbz x3, 5f
    cmp x3, 8
    b.lo 3f
    tst x0, 7
    b.ne 3f
    cbnz x4, 3f
    cw_access 0, retry_copy_bytes, ldr x5, [x1]
    cw_access 0, retry_copy_bytes, str x5, [x0]
    cw_copied 8
    sub x3, x3, 8
    b 2b
3:  cw_access 0, source_failed, ldrb w5, [x1]
    cw_access 0, destination_failed, strb w5, [x0]
    cw_copied 1
    sub x3, x3, 1
    b 2b
5:  mov x0, x2
    mov x1, xzr
    ret
6:  mov x0, x2
    mov x1, {source} | ({poison} << {cause_shift})
    ret
// A word failed: its bytes tell which.
cw_label retry_copy_bytes
    mov x3, 8
    mov x4, 1
    mov x10, xzr
    b 2b
cw_end fault_copy

cw_begin source_failed
    mov x0, x2
    lsl x1, x10, {cause_shift}
    orr x1, x1, {source}
    ret
cw_end source_failed

cw_begin destination_failed
    mov x0, x2
    lsl x1, x10, {cause_shift}
    orr x1, x1, {destination}
    ret
cw_end destination_failed

// From `setm` or `sete`: as `fault_copy_mops`.
cw_begin fault_clear_mops
    b.cs 2f
    add x0, x0, x2
    neg x2, x2
2:  b cachewise_{major}_{minor}_{patch}_fault_clear
cw_end fault_clear_mops

cw_begin fault_clear
    and x3, x9, 0x7fffffffffffffff
    add x0, x0, x3
    sub x2, x2, x3
    tbnz x9, 63, 6f
    mov x3, {retry_bytes}
    cmp x3, x2
    csel x3, x3, x2, lo
    mov x4, xzr
    mov x10, xzr
    .p2align 6
2:  cbz x3, 5f
    cmp x3, 8
    b.lo 3f
    tst x0, 7
    b.ne 3f
    cbnz x4, 3f
    cw_access 0, fault_clear_bytes, str x1, [x0]
    cw_cleared 8
    sub x3, x3, 8
    b 2b
3:  cw_access 0, destination_failed, strb w1, [x0]
    cw_cleared 1
    sub x3, x3, 1
    b 2b
5:  mov x0, x2
    mov x1, xzr
    ret
6:  mov x0, x2
    mov x1, {destination} | ({poison} << {cause_shift})
    ret
cw_label fault_clear_bytes
    mov x3, 8
    mov x4, 1
    mov x10, xzr
    b 2b
cw_end fault_clear
