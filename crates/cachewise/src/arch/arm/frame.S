// What every routine is made of: entry, exit, an access with its exception-table row, and the
// pieces shorter than a block.
//
// Registers, the same in every routine, so that one fix-up serves all:
//
//   r0   destination cursor
//   r1   source cursor (copy), or the byte to write, repeated four times (clear)
//   r2   bytes left, counted from the cursors; all before the cursors is done
//   r12  after a fault: bytes done at the cursors (put there by the fault handler)
//   lr   after a fault: why (put there by the fault handler, if it knows)
//
// r4 to r11 and lr are saved on entry by every routine, so they are free, and a fix-up, which is
// entered with that frame, returns as a routine does: the bytes left in r0, what stopped it in r1
// (`Outcome` in arch/mod.rs, as two words of a `u64`). Of the vector registers d0 to d7 are used.
//
// All is in the A32 instruction set: the fix-ups are entered in the state of the fault.
//
// Every name carries the version of the crate: two versions can live in one program, and link-time
// optimisation may put both into one assembly.

    .arm
    .arch armv7-a
    .fpu neon
    .cfi_sections .debug_frame

.macro cw_label name
    .globl cachewise_{major}_{minor}_{patch}_\name
    .hidden cachewise_{major}_{minor}_{patch}_\name
    .type cachewise_{major}_{minor}_{patch}_\name, %function
cachewise_{major}_{minor}_{patch}_\name:
.endm

// The frame that all code but the first instruction of a routine runs in.
.macro cw_in_frame
    .cfi_def_cfa_offset 36
    .cfi_offset lr, -4
    .cfi_offset r11, -8
    .cfi_offset r10, -12
    .cfi_offset r9, -16
    .cfi_offset r8, -20
    .cfi_offset r7, -24
    .cfi_offset r6, -28
    .cfi_offset r5, -32
    .cfi_offset r4, -36
.endm

// fn \name(r0, r1, r2) -> (r0, r1)
.macro cw_begin name
    .p2align 6
    cw_label \name
    .cfi_startproc
    push {{r4-r11, lr}}
    cw_in_frame
.endm

// fn \name(r0: destination, r2 and r3: pattern, stack: length) -> (r0, r1)
.macro cw_begin_clear name
    cw_begin \name
    mov r1, r2
    ldr r2, [sp, 36]
.endm

// Entered by a fault, or a jump from a routine.
.macro cw_begin_inside name
    .p2align 6
    cw_label \name
    .cfi_startproc
    cw_in_frame
.endm

.macro cw_end name
    .cfi_endproc
    .size cachewise_{major}_{minor}_{patch}_\name, . - cachewise_{major}_{minor}_{patch}_\name
.endm

// The linker defines these two: the table's ends. Hidden, so that no other module's serve.
    .hidden __start_cachewise_ex_{major}_{minor}_{patch}
    .hidden __stop_cachewise_ex_{major}_{minor}_{patch}

// \left bytes left, stopped by \by: both registers.
.macro cw_return_with left, by
    mov r0, \left
    mov r1, \by
    pop {{r4-r11, pc}}
.endm

// All bytes are done.
.macro cw_return
    mov r4, 0
    cw_return_with r4, r4
.endm

// One load or store and its row: where it is, where to go on after a fault, and how many bytes at
// the cursors are done by then. Rows are relative to themselves, so the table needs no relocation.
// "R" keeps the section through the linker's garbage collection.
.macro cw_access done, fixup, instruction:vararg
662:
    \instruction
    .pushsection cachewise_ex_{major}_{minor}_{patch}, "aR", %progbits
    .balign 4
    .long 662b - .
    .long cachewise_{major}_{minor}_{patch}_\fixup - .
    .long \done
    .popsection
.endm

.macro cw_copied bytes
    add r0, r0, \bytes
    add r1, r1, \bytes
    sub r2, r2, \bytes
.endm

.macro cw_cleared bytes
    add r0, r0, \bytes
    sub r2, r2, \bytes
.endm

// 16 bytes at \at by words, at any alignment.
.macro cw_copy_words at
    cw_access \at, fault_copy, ldr r4, [r1, \at]
    cw_access \at, fault_copy, ldr r5, [r1, \at + 4]
    cw_access \at, fault_copy, ldr r6, [r1, \at + 8]
    cw_access \at, fault_copy, ldr r7, [r1, \at + 12]
    cw_access \at, fault_copy, str r4, [r0, \at]
    cw_access (\at + 4), fault_copy, str r5, [r0, \at + 4]
    cw_access (\at + 8), fault_copy, str r6, [r0, \at + 8]
    cw_access (\at + 12), fault_copy, str r7, [r0, \at + 12]
.endm

// The pieces of a length below 32, each byte stored once, at any alignment. \bits is the register
// that says which pieces there are.
.macro cw_copy_piece bytes, bits
    tst \bits, \bytes
    beq 7f
    .if \bytes == 16
    cw_copy_words 0
    .elseif \bytes == 8
    cw_access 0, fault_copy, ldr r4, [r1]
    cw_access 0, fault_copy, ldr r5, [r1, 4]
    cw_access 0, fault_copy, str r4, [r0]
    cw_access 4, fault_copy, str r5, [r0, 4]
    .elseif \bytes == 4
    cw_access 0, fault_copy, ldr r4, [r1]
    cw_access 0, fault_copy, str r4, [r0]
    .elseif \bytes == 2
    cw_access 0, fault_copy, ldrh r4, [r1]
    cw_access 0, fault_copy, strh r4, [r0]
    .else
    cw_access 0, fault_copy, ldrb r4, [r1]
    cw_access 0, fault_copy, strb r4, [r0]
    .endif
    cw_copied \bytes
7:
.endm

.macro cw_clear_piece bytes, bits
    tst \bits, \bytes
    beq 7f
    .if \bytes == 16
    cw_access 0, fault_clear, str r1, [r0]
    cw_access 4, fault_clear, str r1, [r0, 4]
    cw_access 8, fault_clear, str r1, [r0, 8]
    cw_access 12, fault_clear, str r1, [r0, 12]
    .elseif \bytes == 8
    cw_access 0, fault_clear, str r1, [r0]
    cw_access 4, fault_clear, str r1, [r0, 4]
    .elseif \bytes == 4
    cw_access 0, fault_clear, str r1, [r0]
    .elseif \bytes == 2
    cw_access 0, fault_clear, strh r1, [r0]
    .else
    cw_access 0, fault_clear, strb r1, [r0]
    .endif
    cw_cleared \bytes
7:
.endm

.macro cw_tail operation
    cw_\operation\()_piece 16, r2
    cw_\operation\()_piece 8, r2
    cw_\operation\()_piece 4, r2
    cw_\operation\()_piece 2, r2
    cw_\operation\()_piece 1, r2
.endm

// Up to the next word of the destination; the bytes are left.
.macro cw_head operation
    rsb lr, r0, 0
    ands lr, lr, 3
    beq 8f
    cw_\operation\()_piece 1, lr
    cw_\operation\()_piece 2, lr
8:
.endm
