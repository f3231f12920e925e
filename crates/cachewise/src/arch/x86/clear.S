# Clears and fills: esi holds the byte repeated four times. The same shapes as the copies.

# The pattern in every lane of the register, by no more than the instances need: SSE alone has no
# move between general and vector registers, so there it goes over the stack.
.macro cw_spread_sse
    push esi
    .cfi_adjust_cfa_offset 4
    movss xmm0, [esp]
    add esp, 4
    .cfi_adjust_cfa_offset -4
    shufps xmm0, xmm0, 0
.endm

.macro cw_spread_sse2
    movd xmm0, esi
    pshufd xmm0, xmm0, 0
.endm

.macro cw_spread_mmx
    movd mm0, esi
    punpckldq mm0, mm0
.endm

# AVX without AVX2 has no broadcast from a register.
.macro cw_spread_avx
    vmovd xmm0, esi
    vshufps xmm0, xmm0, xmm0, 0
    vinsertf128 ymm0, ymm0, xmm0, 1
.endm

.macro cw_spread_none
.endm

.macro cw_clear_temporal name, width, spread, store, fixup, leave, r
cw_begin_clear \name
    cmp edx, 16
    jb cachewise_{major}_{minor}_{patch}_clear_below_16
    cw_spread_\spread
    cmp edx, 2 * \width
    ja 3f
    .if \width > 16
    cmp edx, 32
    ja 4f
    .endif
    cw_clear_ends 16, \store, \fixup, xmm0
    cw_return \leave
    .if \width > 16
4:  cw_clear_ends 32, \store, \fixup, \r
    cw_return \leave
    .endif
3:  cmp edx, 8 * \width
    ja 3f
    cmp edx, 4 * \width
    ja 2f
    cw_access 0, \fixup, \store [edi + \width], \r
    cw_access 0, \fixup, \store [edi + edx - 2 * \width], \r
    cw_clear_ends \width, \store, \fixup, \r
    cw_return \leave
2:  cw_clear_group 4, \width, \store, \fixup, 0, \r
    cw_clear_last \width, \store, \fixup, \r
    cw_return \leave
3:  mov ecx, edi
    and ecx, \width - 1
    jz 3f
    cw_access 0, \fixup, \store [edi], \r
    sub ecx, \width
    sub edi, ecx
    add edx, ecx
    .p2align 5
3:  cw_clear_group 4, \width, \store, \fixup, 0, \r
    cw_cleared (4 * \width)
    cmp edx, 4 * \width
    ja 3b
    cw_clear_last \width, \store, \fixup, \r
    cw_return \leave
cw_end \name
.endm

# \count (2 or 4) registers from \base(edi).
.macro cw_clear_group count, width, store, fixup, base, r
    cw_access \base, \fixup, \store [edi + \base], \r
    cw_access (\base + \width), \fixup, \store [edi + \base + \width], \r
    .if \count > 2
    cw_access (\base + 2 * \width), \fixup, \store [edi + \base + 2 * \width], \r
    cw_access (\base + 3 * \width), \fixup, \store [edi + \base + 3 * \width], \r
    .endif
.endm

# The first and the last \width bytes.
.macro cw_clear_ends width, store, fixup, r
    cw_access 0, \fixup, \store [edi], \r
    cw_access 0, \fixup, \store [edi + edx - \width], \r
.endm

# Four registers up to the end.
.macro cw_clear_last width, store, fixup, r
    cw_access 0, \fixup, \store [edi + edx - 4 * \width], \r
    cw_access 0, \fixup, \store [edi + edx - 3 * \width], \r
    cw_access 0, \fixup, \store [edi + edx - 2 * \width], \r
    cw_access 0, \fixup, \store [edi + edx - \width], \r
.endm

cw_begin_inside clear_below_16
    cmp edx, 8
    jb 2f
    cw_access 0, fault_clear, mov [edi], esi
    cw_access 0, fault_clear, mov [edi + 4], esi
    cw_access 0, fault_clear, mov [edi + edx - 8], esi
    cw_access 0, fault_clear, mov [edi + edx - 4], esi
    cw_return
2:  cmp edx, 4
    jb 2f
    cw_access 0, fault_clear, mov [edi], esi
    cw_access 0, fault_clear, mov [edi + edx - 4], esi
    cw_return
2:  cmp edx, 2
    jb 2f
    cw_access 0, fault_clear, mov [edi], si
    cw_access 0, fault_clear, mov [edi + edx - 2], si
    cw_return
2:  test edx, edx
    jz 3f
    mov ebx, esi
    cw_access 0, fault_clear, mov [edi], bl
3:  cw_return
cw_end clear_below_16

.macro cw_clear_64 width, store, fixup, r
    .if \width == 32
    cw_clear_group 2, 32, \store, \fixup, 0, \r
    .elseif \width == 16
    cw_clear_group 4, 16, \store, \fixup, 0, \r
    .elseif \width == 8
    cw_clear_group 4, 8, \store, \fixup, 0, \r
    cw_clear_group 4, 8, \store, \fixup, 32, \r
    .else
    cw_clear_words_16 \store, \fixup, 0
    cw_clear_words_16 \store, \fixup, 16
    cw_clear_words_16 \store, \fixup, 32
    cw_clear_words_16 \store, \fixup, 48
    .endif
.endm

.macro cw_clear_once name, width, spread, store, r
cw_begin_clear \name
    cmp edx, 64
    jb 3f
    cw_spread_\spread
    .p2align 5
2:  cw_clear_64 \width, \store, fault_clear, \r
    cw_cleared 64
    cmp edx, 64
    jae 2b
3:  cw_tail clear, fault_clear
    cw_return
cw_end \name
.endm

.macro cw_clear_nontemporal name, width, spread, store, fixup, leave, r
cw_begin_clear \name\()_unfenced
    cmp edx, 64
    jb 4f
    cw_head clear, \fixup
    cmp edx, 64
    jb 4f
    cw_spread_\spread
    .p2align 5
3:  cw_clear_64 \width, \store, \fixup, \r
    cw_cleared 64
    cmp edx, 64
    jae 3b
4:  cw_tail clear, \fixup
    cw_return \leave
cw_end \name\()_unfenced
cw_fenced \name, 4
.endm

.macro cw_clear_rep name, width, fixup, instruction:vararg
cw_begin_clear \name
    mov eax, esi
    mov ecx, edx
    .if \width == 4
    shr ecx, 2
    .endif
    cw_access 0, \fixup, \instruction
    .if \width == 4
    and edx, 3
    cw_clear_piece 2, dl, fault_clear
    cw_clear_piece 1, dl, fault_clear
    .endif
    cw_return
cw_end \name
.endm

cw_clear_rep clear_rep_stosb, 1, fault_rep_stosb, rep stosb
cw_clear_rep clear_rep_stosd, 4, fault_rep_stosd, rep stosd

cw_clear_once clear_mov, 4, none, mov
cw_clear_once clear_sse2_once, 16, sse2, movups, xmm0

cw_clear_temporal clear_sse2, 16, sse2, movups, fault_clear,, xmm0
cw_clear_temporal clear_avx, 32, avx, vmovups, fault_clear_avx, vzeroupper, ymm0

cw_clear_nontemporal clear_movnti, 4, none, movnti, fault_clear_nt,
cw_clear_nontemporal clear_mmx_movntq, 8, mmx, movntq, fault_clear_mmx_nt, emms, mm0
cw_clear_nontemporal clear_movntps, 16, sse, movntps, fault_clear_nt,, xmm0
cw_clear_nontemporal clear_movntdq, 16, sse2, movntdq, fault_clear_nt,, xmm0
cw_clear_nontemporal clear_avx_nt, 32, avx, vmovntps, fault_clear_avx_nt, vzeroupper, ymm0
