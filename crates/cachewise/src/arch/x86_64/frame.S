# What every routine is made of: entry, exit, an access with its exception-table row, a group of
# accesses, and the pieces shorter than a line.
#
# Registers, the same in every routine, so that one fix-up serves all:
#
#   rdi  destination cursor
#   rsi  source cursor (copy), or the byte to write, repeated eight times (clear)
#   rdx  bytes left, counted from the cursors; all before the cursors is done
#   rax  after a fault: bytes done at the cursors (put there by the fault handler)
#   r10  after a fault: why (put there by the fault handler, if it knows)
#
# rcx, r8 to r11 and the vector registers are free; rsp and the callee-saved registers stay as they
# are. On return rax is the number of bytes left and rdx what stopped the routine
# (`Outcome` in arch/mod.rs).
#
# Every name carries the version of the crate: two versions can live in one program, and link-time
# optimisation may put both into one assembly.

# fn \name(rdi, rsi, rdx) -> (rax, rdx)
.macro cw_begin name
    .p2align 6
    .globl cachewise_{major}_{minor}_{patch}_\name
    .hidden cachewise_{major}_{minor}_{patch}_\name
    .type cachewise_{major}_{minor}_{patch}_\name, @function
cachewise_{major}_{minor}_{patch}_\name:
    .cfi_startproc
    endbr64
.endm

# The linker defines these two: the table's ends. Hidden, so that no other module's serve.
    .hidden __start_cachewise_ex_{major}_{minor}_{patch}
    .hidden __stop_cachewise_ex_{major}_{minor}_{patch}

# A second way into the routine around it.
.macro cw_label name
    .globl cachewise_{major}_{minor}_{patch}_\name
    .hidden cachewise_{major}_{minor}_{patch}_\name
cachewise_{major}_{minor}_{patch}_\name:
.endm

.macro cw_end name
    .cfi_endproc
    .size cachewise_{major}_{minor}_{patch}_\name, . - cachewise_{major}_{minor}_{patch}_\name
.endm

# All bytes are done.
.macro cw_return leave
    \leave
    xor eax, eax
    xor edx, edx
    ret
.endm

# The same routine with the fence that makes its non-temporal stores visible in order: Intel SDM
# volume 1, 10.4.6.2; AMD APM volume 1, 4.4.1.
.macro cw_fenced name
cw_begin \name
    call cachewise_{major}_{minor}_{patch}_\name\()_unfenced
    sfence
    ret
cw_end \name
.endm

# One load or store and its row: where it is, where to go on after a fault, and how many bytes at
# the cursors are done by then. Rows are relative to themselves, so the table needs no relocation.
# "R" keeps the section through the linker's garbage collection.
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

# \count (1, 2 or 4) registers of \width bytes loaded from \base(rsi), then stored to \base(rdi).
# Loads before stores: what fails to load leaves the destination as it was.
.macro cw_group count, width, load, store, fixup, base, r0, r1, r2, r3
    cw_access \base, \fixup, \load \r0, [rsi + \base]
    .if \count > 1
    cw_access \base, \fixup, \load \r1, [rsi + \base + \width]
    .endif
    .if \count > 2
    cw_access \base, \fixup, \load \r2, [rsi + \base + 2 * \width]
    cw_access \base, \fixup, \load \r3, [rsi + \base + 3 * \width]
    .endif
    cw_access \base, \fixup, \store [rdi + \base], \r0
    .if \count > 1
    cw_access (\base + \width), \fixup, \store [rdi + \base + \width], \r1
    .endif
    .if \count > 2
    cw_access (\base + 2 * \width), \fixup, \store [rdi + \base + 2 * \width], \r2
    cw_access (\base + 3 * \width), \fixup, \store [rdi + \base + 3 * \width], \r3
    .endif
.endm

.macro cw_copied bytes
    add rdi, \bytes
    add rsi, \bytes
    sub rdx, \bytes
.endm

.macro cw_cleared bytes
    add rdi, \bytes
    sub rdx, \bytes
.endm

# The pieces of a length below 64, each byte stored once. \bits is the register that says which
# pieces there are: the bytes left for a tail (largest first), the bytes up to the next line for a
# head (smallest first, so that each piece is aligned).
.macro cw_copy_piece bytes, bits, fixup
    test \bits, \bytes
    jz 7f
    .if \bytes == 32
    cw_group 4, 8, mov, mov, \fixup, 0, r8, r9, r10, r11
    .elseif \bytes == 16
    cw_group 2, 8, mov, mov, \fixup, 0, r8, r9
    .elseif \bytes == 8
    cw_group 1, 8, mov, mov, \fixup, 0, r8
    .elseif \bytes == 4
    cw_group 1, 4, mov, mov, \fixup, 0, r8d
    .elseif \bytes == 2
    cw_group 1, 2, mov, mov, \fixup, 0, r8w
    .else
    cw_group 1, 1, mov, mov, \fixup, 0, r8b
    .endif
    cw_copied \bytes
7:
.endm

.macro cw_clear_piece bytes, bits, fixup
    test \bits, \bytes
    jz 7f
    .if \bytes == 32
    cw_access 0, \fixup, mov [rdi], rsi
    cw_access 8, \fixup, mov [rdi + 8], rsi
    cw_access 16, \fixup, mov [rdi + 16], rsi
    cw_access 24, \fixup, mov [rdi + 24], rsi
    .elseif \bytes == 16
    cw_access 0, \fixup, mov [rdi], rsi
    cw_access 8, \fixup, mov [rdi + 8], rsi
    .elseif \bytes == 8
    cw_access 0, \fixup, mov [rdi], rsi
    .elseif \bytes == 4
    cw_access 0, \fixup, mov [rdi], esi
    .elseif \bytes == 2
    cw_access 0, \fixup, mov [rdi], si
    .else
    cw_access 0, \fixup, mov [rdi], sil
    .endif
    cw_cleared \bytes
7:
.endm

.macro cw_tail operation, fixup, from=32
    .if \from >= 32
    cw_\operation\()_piece 32, dl, \fixup
    cw_\operation\()_piece 16, dl, \fixup
    cw_\operation\()_piece 8, dl, \fixup
    .endif
    cw_\operation\()_piece 4, dl, \fixup
    cw_\operation\()_piece 2, dl, \fixup
    cw_\operation\()_piece 1, dl, \fixup
.endm

# Up to the next line of the destination. At least 64 bytes are left.
.macro cw_head operation, fixup
    mov ecx, edi
    neg ecx
    and ecx, 63
    jz 8f
    cw_\operation\()_piece 1, cl, \fixup
    cw_\operation\()_piece 2, cl, \fixup
    cw_\operation\()_piece 4, cl, \fixup
    cw_\operation\()_piece 8, cl, \fixup
    cw_\operation\()_piece 16, cl, \fixup
    cw_\operation\()_piece 32, cl, \fixup
8:
.endm
