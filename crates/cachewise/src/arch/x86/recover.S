# After a fault. The handler has set eip to one of these and eax to the bytes done at the cursors.
#
# At most one block is done again, in words and at last in bytes, with separate loads and stores:
# that finds the exact byte and the side that failed (`rep movs` has one program counter for both).
# If nothing fails again the fault was transient, and the routine returns with bytes left but
# nothing that stopped it: the caller calls again and is back in the main loop.
#
# The non-temporal routines have fix-ups of their own (`_nt`), which fence what the main loop has
# stored before anything else is stored. The others must not: a CPU without SSE and without AMD's
# extensions to MMX has no `sfence`.
#
# The handler may say more, and a kernel's need not: bit 31 of eax means poisoned memory, which is
# not touched again, and bit 30 that it was to be written (so no block may have 1 GiB); ebp is the
# cause, passed on to the caller above the side.

# From a string instruction: ecx elements of \width bytes and the odd bytes of the length are left.
.macro cw_fault_rep name, width, next
cw_begin_inside \name
    and edx, \width - 1
    lea edx, [edx + \width * ecx]
    jmp cachewise_{major}_{minor}_{patch}_\next
cw_end \name
.endm

# From a routine that has something to settle first: registers to leave in a clean state, stores to
# fence.
.macro cw_fault_leaving name, leave, next
cw_begin_inside \name
    \leave
    jmp cachewise_{major}_{minor}_{patch}_\next
cw_end \name
.endm

cw_fault_rep fault_rep_movsb, 1, fault_copy
cw_fault_rep fault_rep_movsd, 4, fault_copy
cw_fault_leaving fault_copy_avx, vzeroupper, fault_copy
cw_fault_leaving fault_copy_avx_nt, vzeroupper, fault_copy_nt
cw_fault_leaving fault_copy_mmx_nt, emms, fault_copy_nt
cw_fault_leaving fault_copy_nt, sfence, fault_copy

cw_begin_inside fault_copy
    btr eax, 31
    jc 6f
    cw_copied eax
    mov ecx, {retry_bytes}
    cmp ecx, edx
    jbe 1f
    mov ecx, edx
1:  xor ebp, ebp
    .p2align 5
2:  test ecx, ecx
    jz 5f
    cmp ecx, 4
    jb 3f
    test edi, 3
    jnz 3f
    cw_access 0, retry_copy_bytes, mov eax, [esi]
    cw_access 0, retry_copy_bytes, mov [edi], eax
    cw_copied 4
    sub ecx, 4
    jmp 2b
3:  cw_access 0, source_failed, mov al, [esi]
    cw_access 0, destination_failed, mov [edi], al
    cw_copied 1
    dec ecx
    jmp 2b
# A word failed: its bytes tell which.
cw_label retry_copy_bytes
    mov ecx, 4
    xor ebp, ebp
    .p2align 5
4:  cw_access 0, source_failed, mov al, [esi]
    cw_access 0, destination_failed, mov [edi], al
    cw_copied 1
    dec ecx
    jnz 4b
5:  mov eax, edx
    xor edx, edx
    cw_leave
6:  btr eax, 30
    mov ecx, {source} | ({poison} << {cause_shift})
    jnc 7f
    mov ecx, {destination} | ({poison} << {cause_shift})
7:  sub edx, eax
    mov eax, edx
    mov edx, ecx
    cw_leave
cw_end fault_copy

cw_begin_inside source_failed
    mov eax, edx
    mov edx, ebp
    shl edx, {cause_shift}
    or edx, {source}
    cw_leave
cw_end source_failed

cw_begin_inside destination_failed
    mov eax, edx
    mov edx, ebp
    shl edx, {cause_shift}
    or edx, {destination}
    cw_leave
cw_end destination_failed

cw_fault_rep fault_rep_stosb, 1, fault_clear
cw_fault_rep fault_rep_stosd, 4, fault_clear
cw_fault_leaving fault_clear_avx, vzeroupper, fault_clear
cw_fault_leaving fault_clear_avx_nt, vzeroupper, fault_clear_nt
cw_fault_leaving fault_clear_mmx_nt, emms, fault_clear_nt
cw_fault_leaving fault_clear_nt, sfence, fault_clear

cw_begin_inside fault_clear
    btr eax, 31
    jc 6f
    cw_cleared eax
    mov ebx, esi
    mov ecx, {retry_bytes}
    cmp ecx, edx
    jbe 1f
    mov ecx, edx
1:  xor ebp, ebp
    .p2align 5
2:  test ecx, ecx
    jz 5f
    cmp ecx, 4
    jb 3f
    test edi, 3
    jnz 3f
    cw_access 0, retry_clear_bytes, mov [edi], esi
    cw_cleared 4
    sub ecx, 4
    jmp 2b
3:  cw_access 0, destination_failed, mov [edi], bl
    cw_cleared 1
    dec ecx
    jmp 2b
cw_label retry_clear_bytes
    mov ecx, 4
    xor ebp, ebp
    .p2align 5
4:  cw_access 0, destination_failed, mov [edi], bl
    cw_cleared 1
    dec ecx
    jnz 4b
5:  mov eax, edx
    xor edx, edx
    cw_leave
6:  btr eax, 30
    sub edx, eax
    mov eax, edx
    mov edx, {destination} | ({poison} << {cause_shift})
    cw_leave
cw_end fault_clear
