// After a fault. The handler has set pc to one of these and r12 to the bytes done at the cursors.
//
// At most one block is done again, in words and at last in bytes: that finds the exact byte and the
// side that failed. If nothing fails again the fault was transient, and the routine returns with
// bytes left but nothing that stopped it: the caller calls again and is back in the main loop.
//
// The handler may say more, and a kernel's need not: bit 31 of r12 means poisoned memory, which is
// not touched again; lr is the cause, passed on to the caller above the side.

cw_begin_inside fault_copy
    bic r4, r12, 0x80000000
    add r0, r0, r4
    add r1, r1, r4
    sub r2, r2, r4
    mov r5, {source}
    orr r5, r5, ({poison} << {cause_shift})
    tst r12, 0x80000000
    bne 6f
    mov r6, {retry_bytes}
    cmp r6, r2
    movhi r6, r2
    mov r7, 0
    mov lr, 0
    .p2align 6
2:  cmp r6, 0
    beq 5f
    cmp r6, 4
    blo 3f
    tst r0, 3
    bne 3f
    cmp r7, 0
    bne 3f
    cw_access 0, retry_copy_bytes, ldr r4, [r1]
    cw_access 0, retry_copy_bytes, str r4, [r0]
    cw_copied 4
    sub r6, r6, 4
    b 2b
3:  cw_access 0, source_failed, ldrb r4, [r1]
    cw_access 0, destination_failed, strb r4, [r0]
    cw_copied 1
    sub r6, r6, 1
    b 2b
5:  mov r5, 0
6:  cw_return_with r2, r5
// A word failed: its bytes tell which.
cw_label retry_copy_bytes
    mov r6, 4
    mov r7, 1
    mov lr, 0
    b 2b
cw_end fault_copy

cw_begin_inside source_failed
    lsl lr, lr, {cause_shift}
    orr lr, lr, {source}
    cw_return_with r2, lr
cw_end source_failed

cw_begin_inside destination_failed
    lsl lr, lr, {cause_shift}
    orr lr, lr, {destination}
    cw_return_with r2, lr
cw_end destination_failed

cw_begin_inside fault_clear
    bic r4, r12, 0x80000000
    add r0, r0, r4
    sub r2, r2, r4
    mov r5, {destination}
    orr r5, r5, ({poison} << {cause_shift})
    tst r12, 0x80000000
    bne 6f
    mov r6, {retry_bytes}
    cmp r6, r2
    movhi r6, r2
    mov r7, 0
    mov lr, 0
    .p2align 6
2:  cmp r6, 0
    beq 5f
    cmp r6, 4
    blo 3f
    tst r0, 3
    bne 3f
    cmp r7, 0
    bne 3f
    cw_access 0, fault_clear_bytes, str r1, [r0]
    cw_cleared 4
    sub r6, r6, 4
    b 2b
3:  cw_access 0, destination_failed, strb r1, [r0]
    cw_cleared 1
    sub r6, r6, 1
    b 2b
5:  mov r5, 0
6:  cw_return_with r2, r5
cw_label fault_clear_bytes
    mov r6, 4
    mov r7, 1
    mov lr, 0
    b 2b
cw_end fault_clear
