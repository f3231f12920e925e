# One access: an object of 1, 2, 4 or 8 bytes, aligned, so that it is not torn; and the length of
# a string.
#
# Eight bytes go through the x87 unit: its 64-bit integer load and store are one access on a Pentium
# and everything after it (Intel SDM volume 3, "Guaranteed Atomic Operations"), exact, raise nothing
# whatever the control word says, and are there without SSE2. `cmpxchg8b` could read as well, but it
# also writes, so a read-only object would fault. The x87 stack is empty between calls; a kernel that
# has not saved the unit's state must not read or write eight bytes by these.
#
# The result has three words, which cdecl returns through a pointer that is the first argument and
# that the callee takes off the stack. Inside, eax is what was there, ebx the upper half of that,
# and ecx 0 or what stopped it.

# fn \name(result, object, first: u64, second: u64)
.macro cw_begin_word name
cw_begin \name
    cw_save
    mov edi, [esp + 24]
    mov eax, [esp + 28]
    xor ebp, ebp
.endm

cw_begin_inside word_done
    xor ecx, ecx
# The result is the caller's own memory, so these three have no row.
cw_label word_result
    mov edi, [esp + 20]
    mov [edi], eax
    mov [edi + 4], ebx
    mov [edi + 8], ecx
    mov eax, edi
    cw_leave 4
cw_end word_done

cw_begin_inside word_failed
    mov ecx, ebp
    shl ecx, {cause_shift}
    or ecx, {destination}
    jmp cachewise_{major}_{minor}_{patch}_word_result
cw_end word_failed

# A store that fails leaves its value on the x87 stack.
cw_begin_inside word_failed_x87
    fstp st(0)
    jmp cachewise_{major}_{minor}_{patch}_word_failed
cw_end word_failed_x87

.macro cw_word name, instruction:vararg
cw_begin_word \name
    xor ebx, ebx
    cw_access 0, word_failed, \instruction
    jmp cachewise_{major}_{minor}_{patch}_word_done
cw_end \name
.endm

cw_word read_1, movzx eax, byte ptr [edi]
cw_word read_2, movzx eax, word ptr [edi]
cw_word read_4, mov eax, [edi]

cw_begin_word read_8
    cw_access 0, word_failed, fild qword ptr [edi]
    sub esp, 8
    .cfi_adjust_cfa_offset 8
    fistp qword ptr [esp]
    pop eax
    .cfi_adjust_cfa_offset -4
    pop ebx
    .cfi_adjust_cfa_offset -4
    jmp cachewise_{major}_{minor}_{patch}_word_done
cw_end read_8

# first: the value.
cw_word write_1, mov [edi], al
cw_word write_2, mov [edi], ax
cw_word write_4, mov [edi], eax

cw_begin_word write_8
    fild qword ptr [esp + 28]
    cw_access 0, word_failed_x87, fistp qword ptr [edi]
    jmp cachewise_{major}_{minor}_{patch}_word_done
cw_end write_8

# first: the new value.
cw_word swap_4, xchg [edi], eax

# What is there is only guessed at by two loads: the exchange says whether that was right, and what
# to guess next.
cw_begin_word swap_8
    mov ebx, eax
    mov ecx, [esp + 32]
    cw_access 0, word_failed, mov eax, [edi]
    cw_access 0, word_failed, mov edx, [edi + 4]
    .p2align 5
2:  cw_access 0, word_failed, lock cmpxchg8b [edi]
    jne 2b
    mov ebx, edx
    jmp cachewise_{major}_{minor}_{patch}_word_done
cw_end swap_8

# first: the value expected; second: the new value.
cw_begin_word compare_exchange_4
    xor ebx, ebx
    mov ecx, [esp + 36]
    cw_access 0, word_failed, lock cmpxchg [edi], ecx
    jmp cachewise_{major}_{minor}_{patch}_word_done
cw_end compare_exchange_4

cw_begin_word compare_exchange_8
    mov edx, [esp + 32]
    mov ebx, [esp + 36]
    mov ecx, [esp + 40]
    cw_access 0, word_failed, lock cmpxchg8b [edi]
    mov ebx, edx
    jmp cachewise_{major}_{minor}_{patch}_word_done
cw_end compare_exchange_8

# object: the string; second: at most. The value is the number of bytes not looked at.
cw_begin_word string_end
    xor ebx, ebx
    mov edx, [esp + 36]
    test edx, edx
    jz 3f
    .p2align 5
2:  cw_access 0, string_failed, cmp byte ptr [edi], 0
    je 3f
    inc edi
    dec edx
    jnz 2b
3:  mov eax, edx
    jmp cachewise_{major}_{minor}_{patch}_word_done
cw_label string_failed
    mov eax, edx
    mov ecx, ebp
    shl ecx, {cause_shift}
    or ecx, {source}
    jmp cachewise_{major}_{minor}_{patch}_word_result
cw_end string_end
