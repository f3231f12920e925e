// Copies. The loop once; the instances are at the end.

// 64 bytes by pairs of registers of \width bytes, all loaded before any is stored: what fails to
// load leaves the destination as it was.
.macro cw_copy_64 width, load, store, r0, r1, r2, r3, r4, r5, r6, r7
    cw_access 0, fault_copy, \load \r0, \r1, [x1]
    cw_access 0, fault_copy, \load \r2, \r3, [x1, 2 * \width]
    .if \width == 8
    cw_access 0, fault_copy, \load \r4, \r5, [x1, 32]
    cw_access 0, fault_copy, \load \r6, \r7, [x1, 48]
    .endif
    cw_access 0, fault_copy, \store \r0, \r1, [x0]
    cw_access (2 * \width), fault_copy, \store \r2, \r3, [x0, 2 * \width]
    .if \width == 8
    cw_access 32, fault_copy, \store \r4, \r5, [x0, 32]
    cw_access 48, fault_copy, \store \r6, \r7, [x0, 48]
    .endif
.endm

// 64 bytes at a time, then the pieces: each byte is stored once. \whole_lines: from a 64-byte
// boundary of the destination on, so that what is hinted to go around the cache is not also
// written in part by ordinary stores.
.macro cw_copy name, whole_lines, width, load, store, r0, r1, r2, r3, r4, r5, r6, r7
cw_begin \name
    cmp x2, 64
    b.lo 3f
    .if \whole_lines
    cw_head copy
    cmp x2, 64
    b.lo 3f
    .endif
    .p2align 6
2:  cw_copy_64 \width, \load, \store, \r0, \r1, \r2, \r3, \r4, \r5, \r6, \r7
    cw_copied 64
    cmp x2, 64
    b.hs 2b
3:  cw_tail copy, w2
    cw_return
cw_end \name
.endm

// The memory-copy instructions (FEAT_MOPS), forward only, because what is done must be a prefix.
// They cut a length of 2^55 or more short (earlier issues of the Arm ARM: 2^63), which no object
// has but an untrusted length may: that goes another way, so that the residue stays exact. As
// numbers, since assemblers without the extension do not know their names. x0, x1 and x2 are the
// operands. \options: 0, or the bits that make the stores non-temporal.
.macro cw_copy_mops name, options
cw_begin \name
    lsr x3, x2, 55
    cbnz x3, cachewise_{major}_{minor}_{patch}_copy_ldp_stp
    cw_access 0, fault_copy, .inst 0x19010440 | \options
    cw_access 0, fault_copy_mops, .inst 0x19410440 | \options
    cw_access 0, fault_copy_mops, .inst 0x19810440 | \options
    cw_return
cw_end \name
.endm

// From the last byte to the first, each stored once: for a destination that overlaps the source
// from above. No fix-up fits: bytes are done from the end. So its accesses have no row.
cw_begin copy_backward
    add x0, x0, x2
    add x1, x1, x2
    cmp x2, 8
    b.lo 3f
    .p2align 6
2:  ldr x4, [x1, -8]
    str x4, [x0, -8]
    sub x1, x1, 8
    sub x0, x0, 8
    sub x2, x2, 8
    cmp x2, 8
    b.hs 2b
3:  cbz x2, 5f
    .p2align 6
4:  ldrb w4, [x1, -1]
    strb w4, [x0, -1]
    sub x1, x1, 1
    sub x0, x0, 1
    subs x2, x2, 1
    b.ne 4b
5:  cw_return
cw_end copy_backward

cw_copy copy_ldp_stp, 0, 8, ldp, stp, x4, x5, x6, x7, x11, x12, x13, x14
cw_copy copy_neon, 0, 16, ldp, stp, q0, q1, q2, q3
cw_copy copy_ldnp_stnp, 1, 8, ldnp, stnp, x4, x5, x6, x7, x11, x12, x13, x14
cw_copy copy_neon_nt, 1, 16, ldnp, stnp, q0, q1, q2, q3
cw_copy_mops copy_mops, 0
// `cpyfpwn`: of its four option bits, the one for non-temporal writes.
cw_copy_mops copy_mops_nt, (4 << 12)
