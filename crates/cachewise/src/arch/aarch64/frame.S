// What every routine is made of: entry, exit, an access with its exception-table row, and the
// pieces shorter than a block.
//
// Registers, the same in every routine, so that one fix-up serves all:
//
//   x0   destination cursor
//   x1   source cursor (copy), or the byte to write, repeated eight times (clear)
//   x2   bytes left, counted from the cursors; all before the cursors is done
//   x9   after a fault: bytes done at the cursors (put there by the fault handler)
//   x10  after a fault: why (put there by the fault handler, if it knows)
//
// x3 to x17 and the vector registers v0 to v7 and v16 to v31 are free; no routine needs a stack or
// touches the link register. On return x0 is the number of bytes left and x1 what stopped the
// routine (`Outcome` in arch/mod.rs).
//
// No access writes its base register back: what a fault leaves in one then needs no thought.
//
// Every name carries the version of the crate: two versions can live in one program, and link-time
// optimisation may put both into one assembly.

// fn \name(x0, x1, x2) -> (x0, x1). The hint is `bti c`, which only newer assemblers know by name.
.macro cw_begin name
    .p2align 6
    .globl cachewise_{major}_{minor}_{patch}_\name
    .hidden cachewise_{major}_{minor}_{patch}_\name
    .type cachewise_{major}_{minor}_{patch}_\name, @function
cachewise_{major}_{minor}_{patch}_\name:
    .cfi_startproc
    hint #34
.endm

// The linker defines these two: the table's ends. Hidden, so that no other module's serve.
    .hidden __start_cachewise_ex_{major}_{minor}_{patch}
    .hidden __stop_cachewise_ex_{major}_{minor}_{patch}

// A second way into the routine around it.
.macro cw_label name
    .globl cachewise_{major}_{minor}_{patch}_\name
    .hidden cachewise_{major}_{minor}_{patch}_\name
cachewise_{major}_{minor}_{patch}_\name:
    hint #34
.endm

.macro cw_end name
    .cfi_endproc
    .size cachewise_{major}_{minor}_{patch}_\name, . - cachewise_{major}_{minor}_{patch}_\name
.endm

// All bytes are done.
.macro cw_return
    mov x0, xzr
    mov x1, xzr
    ret
.endm

// One load or store and its row: where it is, where to go on after a fault, and how many bytes at
// the cursors are done by then. Rows are relative to themselves, so the table needs no relocation.
// "R" keeps the section through the linker's garbage collection.
.macro cw_access done, fixup, instruction:vararg
662:
    \instruction
    .pushsection cachewise_ex_{major}_{minor}_{patch}, "aR", @progbits
    .balign 4
    .long 662b - .
    .long cachewise_{major}_{minor}_{patch}_\fixup - .
    .long \done
    .popsection
.endm

.macro cw_copied bytes
    add x0, x0, \bytes
    add x1, x1, \bytes
    sub x2, x2, \bytes
.endm

.macro cw_cleared bytes
    add x0, x0, \bytes
    sub x2, x2, \bytes
.endm

// The pieces of a length below 64, each byte stored once. \bits is the register that says which
// pieces there are: the bytes left for a tail (largest first), the bytes up to the next line for a
// head (smallest first, so that each piece is aligned).
.macro cw_copy_piece bytes, bit, bits
    tbz \bits, \bit, 7f
    .if \bytes == 32
    cw_access 0, fault_copy, ldp x4, x5, [x1]
    cw_access 0, fault_copy, ldp x6, x7, [x1, 16]
    cw_access 0, fault_copy, stp x4, x5, [x0]
    cw_access 16, fault_copy, stp x6, x7, [x0, 16]
    .elseif \bytes == 16
    cw_access 0, fault_copy, ldp x4, x5, [x1]
    cw_access 0, fault_copy, stp x4, x5, [x0]
    .elseif \bytes == 8
    cw_access 0, fault_copy, ldr x4, [x1]
    cw_access 0, fault_copy, str x4, [x0]
    .elseif \bytes == 4
    cw_access 0, fault_copy, ldr w4, [x1]
    cw_access 0, fault_copy, str w4, [x0]
    .elseif \bytes == 2
    cw_access 0, fault_copy, ldrh w4, [x1]
    cw_access 0, fault_copy, strh w4, [x0]
    .else
    cw_access 0, fault_copy, ldrb w4, [x1]
    cw_access 0, fault_copy, strb w4, [x0]
    .endif
    cw_copied \bytes
7:
.endm

.macro cw_clear_piece bytes, bit, bits
    tbz \bits, \bit, 7f
    .if \bytes == 32
    cw_access 0, fault_clear, stp x1, x1, [x0]
    cw_access 16, fault_clear, stp x1, x1, [x0, 16]
    .elseif \bytes == 16
    cw_access 0, fault_clear, stp x1, x1, [x0]
    .elseif \bytes == 8
    cw_access 0, fault_clear, str x1, [x0]
    .elseif \bytes == 4
    cw_access 0, fault_clear, str w1, [x0]
    .elseif \bytes == 2
    cw_access 0, fault_clear, strh w1, [x0]
    .else
    cw_access 0, fault_clear, strb w1, [x0]
    .endif
    cw_cleared \bytes
7:
.endm

.macro cw_tail operation, bits
    cw_\operation\()_piece 32, 5, \bits
    cw_\operation\()_piece 16, 4, \bits
    cw_\operation\()_piece 8, 3, \bits
    cw_\operation\()_piece 4, 2, \bits
    cw_\operation\()_piece 2, 1, \bits
    cw_\operation\()_piece 1, 0, \bits
.endm

// Up to the next 64 bytes of the destination. At least 64 bytes are left.
.macro cw_head operation
    neg w3, w0
    ands w3, w3, 63
    b.eq 8f
    cw_\operation\()_piece 1, 0, w3
    cw_\operation\()_piece 2, 1, w3
    cw_\operation\()_piece 4, 2, w3
    cw_\operation\()_piece 8, 3, w3
    cw_\operation\()_piece 16, 4, w3
    cw_\operation\()_piece 32, 5, w3
8:
.endm
