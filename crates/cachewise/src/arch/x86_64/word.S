# One access: an object of 1, 2, 4 or 8 bytes, aligned, so that it is not torn; and the length of
# a string. On return rax is what was there and rdx 0, or rdx is what stopped it.

.macro cw_word name, instruction:vararg
cw_begin \name
    mov rax, rsi
    xor r10d, r10d
    cw_access 0, word_failed, \instruction
    xor edx, edx
    ret
cw_end \name
.endm

# fn(rdi: pointer) -> (rax: value, rdx)
cw_word read_1, movzx eax, byte ptr [rdi]
cw_word read_2, movzx eax, word ptr [rdi]
cw_word read_4, mov eax, [rdi]
cw_word read_8, mov rax, [rdi]

# fn(rdi: pointer, rsi: value) -> (rax, rdx)
cw_word write_1, mov [rdi], sil
cw_word write_2, mov [rdi], si
cw_word write_4, mov [rdi], esi
cw_word write_8, mov [rdi], rsi

# fn(rdi: pointer, rsi: new value) -> (rax: old value, rdx)
cw_word swap_4, xchg [rdi], eax
cw_word swap_8, xchg [rdi], rax

# fn(rdi: pointer, rsi: expected, rdx: new value) -> (rax: old value, rdx)
cw_word compare_exchange_4, lock cmpxchg [rdi], edx
cw_word compare_exchange_8, lock cmpxchg [rdi], rdx

cw_begin word_failed
    mov rdx, r10
    shl rdx, {cause_shift}
    or edx, {destination}
    ret
cw_end word_failed

# fn(rdi: string, rsi: unused, rdx: at most) -> (rax: bytes not looked at, rdx)
cw_begin string_end
    xor r10d, r10d
    xor eax, eax
    test rdx, rdx
    jz 3f
    .p2align 6
2:  cw_access 0, source_failed, cmp byte ptr [rdi], 0
    je 3f
    inc rdi
    dec rdx
    jnz 2b
3:  mov rax, rdx
    xor edx, edx
    ret
cw_end string_end
