// Clears and fills: x1 holds the byte repeated eight times. The same shapes as the copies.

.macro cw_clear_64 width, store, r
    cw_access 0, fault_clear, \store \r, \r, [x0]
    cw_access (2 * \width), fault_clear, \store \r, \r, [x0, 2 * \width]
    .if \width == 8
    cw_access 32, fault_clear, \store \r, \r, [x0, 32]
    cw_access 48, fault_clear, \store \r, \r, [x0, 48]
    .endif
.endm

.macro cw_clear name, whole_lines, width, store, r
cw_begin \name
    cmp x2, 64
    b.lo 3f
    .if \whole_lines
    cw_head clear
    cmp x2, 64
    b.lo 3f
    .endif
    .if \width == 16
    dup v0.2d, x1
    .endif
    .p2align 6
2:  cw_clear_64 \width, \store, \r
    cw_cleared 64
    cmp x2, 64
    b.hs 2b
3:  cw_tail clear, w2
    cw_return
cw_end \name
.endm

// As the copies: the low byte of the third operand is written.
.macro cw_clear_mops name, options
cw_begin \name
    lsr x3, x2, 55
    cbnz x3, cachewise_{major}_{minor}_{patch}_clear_stp
    cw_access 0, fault_clear, .inst 0x19c10440 | \options
    cw_access 0, fault_clear_mops, .inst 0x19c14440 | \options
    cw_access 0, fault_clear_mops, .inst 0x19c18440 | \options
    cw_return
cw_end \name
.endm

cw_clear clear_stp, 0, 8, stp, x1
cw_clear clear_neon, 0, 16, stp, q0
cw_clear clear_stnp, 1, 8, stnp, x1
cw_clear clear_neon_nt, 1, 16, stnp, q0
cw_clear_mops clear_mops, 0
cw_clear_mops clear_mops_nt, (1 << 13)

// A block in one instruction, which writes zero to the block that x0 points into: never to a block
// that is only partly ours. DCZID_EL0 tells, whenever asked, how long a block is and whether the
// instruction may be used (Arm ARM DDI 0487, DC ZVA); if not, for another byte than zero, and where
// no whole block lies in the range, `stp` does it all.
cw_begin clear_dc_zva
    mrs x3, dczid_el0
// The same, told DCZID_EL0 in x3.
cw_label clear_dc_zva_as_told
    cbnz x1, cachewise_{major}_{minor}_{patch}_clear_stp
    tbnz x3, 4, cachewise_{major}_{minor}_{patch}_clear_stp
    and x3, x3, 15
    mov x4, 4
    lsl x4, x4, x3
    sub x5, x4, 1
    neg x3, x0
    and x3, x3, x5
    add x5, x3, x4
    cmp x2, x5
    b.lo cachewise_{major}_{minor}_{patch}_clear_stp
    b 3f
    .p2align 6
2:  cw_clear_64 8, stp, x1
    cw_cleared 64
    sub x3, x3, 64
3:  cmp x3, 64
    b.hs 2b
    cw_tail clear, w3
    .p2align 6
4:  cw_access 0, fault_clear, dc zva, x0
    cw_cleared x4
    cmp x2, x4
    b.hs 4b
    b cachewise_{major}_{minor}_{patch}_clear_stp
cw_end clear_dc_zva
