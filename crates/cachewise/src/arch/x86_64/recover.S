# After a fault. The handler has set rip to one of these and rax to the bytes done at the cursors.
#
# At most one block is done again, in words and at last in bytes, with separate loads and stores:
# that finds the exact byte and the side that failed (`rep movs` has one program counter for both).
# If nothing fails again the fault was transient, and the routine returns with bytes left but
# nothing that stopped it: the caller calls again and is back in the main loop. The fence comes
# first, for what the main loop has stored non-temporally.
#
# The handler may say more, and a kernel's need not: bit 63 of rax means poisoned memory, which is
# not touched again, and bit 62 that it was to be written; r10 is the cause, passed on to the
# caller above the side.

# From a string instruction: rcx elements of \width bytes and the odd bytes of the length are left.
.macro cw_fault_rep name, width, next
cw_begin \name
    and edx, \width - 1
    lea rdx, [rdx + \width * rcx]
    jmp cachewise_{major}_{minor}_{patch}_\next
cw_end \name
.endm

# From a routine whose registers have to be left in a clean state.
.macro cw_fault_leaving name, leave, next
cw_begin \name
    \leave
    jmp cachewise_{major}_{minor}_{patch}_\next
cw_end \name
.endm

# From a block of at most \bytes.
.macro cw_fault_copy name, bytes
cw_begin \name
    mov ecx, \bytes
    jmp cachewise_{major}_{minor}_{patch}_retry_copy
cw_end \name
.endm

cw_fault_rep fault_rep_movsb, 1, fault_copy
cw_fault_rep fault_rep_movsd, 4, fault_copy
cw_fault_rep fault_rep_movsq, 8, fault_copy
cw_fault_leaving fault_copy_mmx, emms, fault_copy
cw_fault_leaving fault_copy_avx, vzeroupper, fault_copy
cw_fault_leaving fault_copy_avx_pages, vzeroupper, fault_copy_pages
cw_fault_copy fault_copy, {retry_bytes}
# Of four pages in step the first is done up to the cursor, the others may be ahead of it.
cw_fault_copy fault_copy_pages, ({step_pages} * {step_bytes})

# rax bytes done at the cursors; up to rcx bytes again.
cw_begin retry_copy
    sfence
    btr rax, 63
    setc r9b
    btr rax, 62
    setc r11b
    add rdi, rax
    add rsi, rax
    sub rdx, rax
    test r9b, r9b
    jnz 6f
    cmp rcx, rdx
    cmova rcx, rdx
    xor r9d, r9d
    xor r10d, r10d
    .p2align 6
2:  test rcx, rcx
    jz 5f
    cmp rcx, 8
    jb 3f
    test dil, 7
    jnz 3f
    test r9d, r9d
    jnz 3f
    cw_access 0, retry_copy_bytes, mov r8, [rsi]
    cw_access 0, retry_copy_bytes, mov [rdi], r8
    cw_copied 8
    sub rcx, 8
    jmp 2b
3:  cw_access 0, source_failed, mov r8b, [rsi]
    cw_access 0, destination_failed, mov [rdi], r8b
    cw_copied 1
    dec rcx
    jmp 2b
5:  mov rax, rdx
    xor edx, edx
    ret
6:  mov rax, rdx
    mov edx, {source} | ({poison} << {cause_shift})
    mov ecx, {destination} | ({poison} << {cause_shift})
    test r11b, r11b
    cmovnz edx, ecx
    ret
# A word failed: its bytes tell which.
cw_label retry_copy_bytes
    mov ecx, 8
    mov r9d, 1
    xor r10d, r10d
    jmp 2b
cw_end retry_copy

cw_begin source_failed
    mov rax, rdx
    mov rdx, r10
    shl rdx, {cause_shift}
    or edx, {source}
    ret
cw_end source_failed

cw_begin destination_failed
    mov rax, rdx
    mov rdx, r10
    shl rdx, {cause_shift}
    or edx, {destination}
    ret
cw_end destination_failed

cw_fault_rep fault_rep_stosb, 1, fault_clear
cw_fault_rep fault_rep_stosd, 4, fault_clear
cw_fault_rep fault_rep_stosq, 8, fault_clear
cw_fault_leaving fault_clear_mmx, emms, fault_clear
cw_fault_leaving fault_clear_avx, vzeroupper, fault_clear

# From a routine that keeps a line of its pattern on the stack.
cw_begin fault_clear_stack
    .cfi_adjust_cfa_offset 64
    add rsp, 64
    .cfi_adjust_cfa_offset -64
    jmp cachewise_{major}_{minor}_{patch}_fault_clear
cw_end fault_clear_stack

cw_begin fault_clear
    sfence
    btr rax, 63
    setc r9b
    btr rax, 62
    add rdi, rax
    sub rdx, rax
    test r9b, r9b
    jnz 6f
    mov ecx, {retry_bytes}
    cmp rcx, rdx
    cmova rcx, rdx
    xor r9d, r9d
    xor r10d, r10d
    .p2align 6
2:  test rcx, rcx
    jz 5f
    cmp rcx, 8
    jb 3f
    test dil, 7
    jnz 3f
    test r9d, r9d
    jnz 3f
    cw_access 0, fault_clear_bytes, mov [rdi], rsi
    cw_cleared 8
    sub rcx, 8
    jmp 2b
3:  cw_access 0, destination_failed, mov [rdi], sil
    cw_cleared 1
    dec rcx
    jmp 2b
5:  mov rax, rdx
    xor edx, edx
    ret
6:  mov rax, rdx
    mov edx, {destination} | ({poison} << {cause_shift})
    ret
cw_label fault_clear_bytes
    mov ecx, 8
    mov r9d, 1
    xor r10d, r10d
    jmp 2b
cw_end fault_clear
