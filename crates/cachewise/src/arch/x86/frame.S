# What every routine is made of: entry, exit, an access with its exception-table row, a group of
# accesses, and the pieces shorter than a line.
#
# Called by cdecl: arguments on the stack, the result in edx:eax. Inside, the registers are the same
# in every routine, so that one fix-up serves all:
#
#   edi  destination cursor
#   esi  source cursor (copy), or the byte to write, repeated four times (clear)
#   edx  bytes left, counted from the cursors; all before the cursors is done
#   eax  after a fault: bytes done at the cursors (put there by the fault handler)
#   ebp  after a fault: why (put there by the fault handler, if it knows)
#
# ecx, ebx, the MMX and the vector registers are free; so is eax before a fault. edi, esi, ebx and
# ebp are the caller's and lie on the stack in this order from entry to exit: nothing else is there
# at any access, so a fix-up can return. On return eax is the number of bytes left and edx what
# stopped the routine (`Outcome` in arch/mod.rs).
#
# There are no absolute addresses, so position-independent code needs no GOT. There is no endbr32
# either: 0F 1E is undefined on a Pentium and a K6, and no system checks indirect branches of 32-bit
# programs. For the Pentium's sake nothing here uses cmov.
#
# Every name carries the version of the crate: two versions can live in one program, and link-time
# optimisation may put both into one assembly.

.macro cw_begin name
    .p2align 6
    .globl cachewise_{major}_{minor}_{patch}_\name
    .hidden cachewise_{major}_{minor}_{patch}_\name
    .type cachewise_{major}_{minor}_{patch}_\name, @function
cachewise_{major}_{minor}_{patch}_\name:
    .cfi_startproc
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

.macro cw_push register
    push \register
    .cfi_adjust_cfa_offset 4
    .cfi_rel_offset \register, 0
.endm

.macro cw_pop register
    pop \register
    .cfi_adjust_cfa_offset -4
    .cfi_restore \register
.endm

.macro cw_save
    cw_push edi
    cw_push esi
    cw_push ebx
    cw_push ebp
.endm

.macro cw_restore
    cw_pop ebp
    cw_pop ebx
    cw_pop esi
    cw_pop edi
.endm

# fn \name(dst, src, len) -> u64
.macro cw_begin_copy name
cw_begin \name
    cw_save
    mov edi, [esp + 20]
    mov esi, [esp + 24]
    mov edx, [esp + 28]
.endm

# fn \name(dst, pattern: u64, len) -> u64; half of the pattern is all of it.
.macro cw_begin_clear name
cw_begin \name
    cw_save
    mov edi, [esp + 20]
    mov esi, [esp + 24]
    mov edx, [esp + 32]
.endm

# Code that a routine jumps to: everything is saved already.
.macro cw_begin_inside name
cw_begin \name
    .cfi_def_cfa_offset 20
    .cfi_offset edi, -8
    .cfi_offset esi, -12
    .cfi_offset ebx, -16
    .cfi_offset ebp, -20
.endm

# Back to the caller. What follows is reached with everything still saved.
.macro cw_leave pop_bytes=0
    .cfi_remember_state
    cw_restore
    .if \pop_bytes
    ret \pop_bytes
    .else
    ret
    .endif
    .cfi_restore_state
.endm

# All bytes are done.
.macro cw_return leave
    \leave
    xor eax, eax
    xor edx, edx
    cw_leave
.endm

# The same routine with the fence that makes its non-temporal stores visible in order: Intel SDM
# volume 1, 10.4.6.2; AMD APM volume 1, 4.4.1. The arguments are pushed again, the last first.
.macro cw_fenced name, arguments
cw_begin \name
    .rept \arguments
    push dword ptr [esp + 4 * \arguments]
    .cfi_adjust_cfa_offset 4
    .endr
    call cachewise_{major}_{minor}_{patch}_\name\()_unfenced
    add esp, 4 * \arguments
    .cfi_adjust_cfa_offset -4 * \arguments
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

# \count (1, 2 or 4) registers of \width bytes loaded from \base(esi), then stored to \base(edi).
# Loads before stores: what fails to load leaves the destination as it was.
.macro cw_group count, width, load, store, fixup, base, r0, r1, r2, r3
    cw_access \base, \fixup, \load \r0, [esi + \base]
    .if \count > 1
    cw_access \base, \fixup, \load \r1, [esi + \base + \width]
    .endif
    .if \count > 2
    cw_access \base, \fixup, \load \r2, [esi + \base + 2 * \width]
    cw_access \base, \fixup, \load \r3, [esi + \base + 3 * \width]
    .endif
    cw_access \base, \fixup, \store [edi + \base], \r0
    .if \count > 1
    cw_access (\base + \width), \fixup, \store [edi + \base + \width], \r1
    .endif
    .if \count > 2
    cw_access (\base + 2 * \width), \fixup, \store [edi + \base + 2 * \width], \r2
    cw_access (\base + 3 * \width), \fixup, \store [edi + \base + 3 * \width], \r3
    .endif
.endm

# 16 bytes by two general registers.
.macro cw_copy_words_16 store, fixup, base
    cw_group 2, 4, mov, \store, \fixup, \base, eax, ebx
    cw_group 2, 4, mov, \store, \fixup, (\base + 8), eax, ebx
.endm

.macro cw_clear_words_16 store, fixup, base
    cw_access \base, \fixup, \store [edi + \base], esi
    cw_access (\base + 4), \fixup, \store [edi + \base + 4], esi
    cw_access (\base + 8), \fixup, \store [edi + \base + 8], esi
    cw_access (\base + 12), \fixup, \store [edi + \base + 12], esi
.endm

.macro cw_copied bytes
    add edi, \bytes
    add esi, \bytes
    sub edx, \bytes
.endm

.macro cw_cleared bytes
    add edi, \bytes
    sub edx, \bytes
.endm

# The pieces of a length below 64, each byte stored once. \bits is the register that says which
# pieces there are: the bytes left for a tail (largest first), the bytes up to the next line for a
# head (smallest first, so that each piece is aligned).
.macro cw_copy_piece bytes, bits, fixup
    test \bits, \bytes
    jz 7f
    .if \bytes == 32
    cw_copy_words_16 mov, \fixup, 0
    cw_copy_words_16 mov, \fixup, 16
    .elseif \bytes == 16
    cw_copy_words_16 mov, \fixup, 0
    .elseif \bytes == 8
    cw_group 2, 4, mov, mov, \fixup, 0, eax, ebx
    .elseif \bytes == 4
    cw_group 1, 4, mov, mov, \fixup, 0, eax
    .elseif \bytes == 2
    cw_group 1, 2, mov, mov, \fixup, 0, ax
    .else
    cw_group 1, 1, mov, mov, \fixup, 0, al
    .endif
    cw_copied \bytes
7:
.endm

# esi has no byte of its own: ebx does.
.macro cw_clear_piece bytes, bits, fixup
    test \bits, \bytes
    jz 7f
    .if \bytes == 32
    cw_clear_words_16 mov, \fixup, 0
    cw_clear_words_16 mov, \fixup, 16
    .elseif \bytes == 16
    cw_clear_words_16 mov, \fixup, 0
    .elseif \bytes == 8
    cw_access 0, \fixup, mov [edi], esi
    cw_access 4, \fixup, mov [edi + 4], esi
    .elseif \bytes == 4
    cw_access 0, \fixup, mov [edi], esi
    .elseif \bytes == 2
    cw_access 0, \fixup, mov [edi], si
    .else
    mov ebx, esi
    cw_access 0, \fixup, mov [edi], bl
    .endif
    cw_cleared \bytes
7:
.endm

.macro cw_tail operation, fixup
    cw_\operation\()_piece 32, dl, \fixup
    cw_\operation\()_piece 16, dl, \fixup
    cw_\operation\()_piece 8, dl, \fixup
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
