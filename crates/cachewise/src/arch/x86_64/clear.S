# Clears and fills: rsi holds the byte repeated eight times. The same shapes as the copies.

# The pattern in every lane of \r.
.macro cw_spread_sse2 r
    movq \r\()0, rsi
    punpcklqdq \r\()0, \r\()0
.endm

.macro cw_spread_sse r
    movq \r\()0, rsi
    movlhps \r\()0, \r\()0
.endm

.macro cw_spread_mmx r
    movq \r\()0, rsi
.endm

# AVX without AVX2 has no broadcast from a register.
.macro cw_spread_avx r
    vmovq xmm0, rsi
    vmovddup xmm0, xmm0
    vinsertf128 ymm0, ymm0, xmm0, 1
.endm

.macro cw_spread_avx512 r
    vpbroadcastq zmm20, rsi
.endm

.macro cw_spread_none r
.endm

.macro cw_clear_temporal name, width, spread, store, fixup, leave, x, y, r
cw_begin \name
    cmp rdx, 16
    jb cachewise_{major}_{minor}_{patch}_clear_below_16
    cw_spread_\spread \x
    cmp rdx, 2 * \width
    ja 3f
    .if \width > 32
    cmp rdx, 64
    ja 2f
    .endif
    .if \width > 16
    cmp rdx, 32
    ja 4f
    .endif
    cw_clear_ends 16, \store, \fixup, \x\()0
    cw_return \leave
    .if \width > 16
4:  cw_clear_ends 32, \store, \fixup, \y\()0
    cw_return \leave
    .endif
    .if \width > 32
2:  cw_clear_ends 64, \store, \fixup, \r\()0
    cw_return \leave
    .endif
3:  cmp rdx, 8 * \width
    ja 3f
    cmp rdx, 4 * \width
    ja 2f
    cw_access 0, \fixup, \store [rdi + \width], \r\()0
    cw_access 0, \fixup, \store [rdi + rdx - 2 * \width], \r\()0
    cw_clear_ends \width, \store, \fixup, \r\()0
    cw_return \leave
2:  cw_clear_group 4, \width, \store, \fixup, \r\()0
    cw_clear_last \width, \store, \fixup, \r\()0
    cw_return \leave
3:  mov ecx, edi
    and ecx, \width - 1
    jz 3f
    cw_access 0, \fixup, \store [rdi], \r\()0
    sub rcx, \width
    sub rdi, rcx
    add rdx, rcx
    .p2align 6
3:  cw_clear_group 4, \width, \store, \fixup, \r\()0
    cw_cleared (4 * \width)
    cmp rdx, 4 * \width
    ja 3b
    cw_clear_last \width, \store, \fixup, \r\()0
    cw_return \leave
cw_end \name
.endm

# \count (1, 2, 4) registers from the cursor.
.macro cw_clear_group count, width, store, fixup, r
    cw_access 0, \fixup, \store [rdi], \r
    .if \count > 1
    cw_access \width, \fixup, \store [rdi + \width], \r
    .endif
    .if \count > 2
    cw_access (2 * \width), \fixup, \store [rdi + 2 * \width], \r
    cw_access (3 * \width), \fixup, \store [rdi + 3 * \width], \r
    .endif
.endm

# The first and the last \width bytes.
.macro cw_clear_ends width, store, fixup, r
    cw_access 0, \fixup, \store [rdi], \r
    cw_access 0, \fixup, \store [rdi + rdx - \width], \r
.endm

# Four registers up to the end.
.macro cw_clear_last width, store, fixup, r
    cw_access 0, \fixup, \store [rdi + rdx - 4 * \width], \r
    cw_access 0, \fixup, \store [rdi + rdx - 3 * \width], \r
    cw_access 0, \fixup, \store [rdi + rdx - 2 * \width], \r
    cw_access 0, \fixup, \store [rdi + rdx - \width], \r
.endm

cw_begin clear_below_16
    cmp edx, 8
    jb 2f
    cw_access 0, fault_clear, mov [rdi], rsi
    cw_access 0, fault_clear, mov [rdi + rdx - 8], rsi
    cw_return
2:  cmp edx, 4
    jb 2f
    cw_access 0, fault_clear, mov [rdi], esi
    cw_access 0, fault_clear, mov [rdi + rdx - 4], esi
    cw_return
2:  cmp edx, 2
    jb 2f
    cw_access 0, fault_clear, mov [rdi], si
    cw_access 0, fault_clear, mov [rdi + rdx - 2], si
    cw_return
2:  test edx, edx
    jz 3f
    cw_access 0, fault_clear, mov [rdi], sil
3:  cw_return
cw_end clear_below_16

.macro cw_clear_64 width, store, fixup, r
    .if \width == 64
    cw_clear_group 1, 64, \store, \fixup, \r
    .elseif \width == 32
    cw_clear_group 2, 32, \store, \fixup, \r
    .elseif \width == 16
    cw_clear_group 4, 16, \store, \fixup, \r
    .else
    cw_clear_group 4, 8, \store, \fixup, \r
    cw_access 32, \fixup, \store [rdi + 32], \r
    cw_access 40, \fixup, \store [rdi + 40], \r
    cw_access 48, \fixup, \store [rdi + 48], \r
    cw_access 56, \fixup, \store [rdi + 56], \r
    .endif
.endm

.macro cw_clear_once name, width, spread, store, r
cw_begin \name
    cmp rdx, 64
    jb 3f
    cw_spread_\spread xmm
    .p2align 6
2:  cw_clear_64 \width, \store, fault_clear, \r
    cw_cleared 64
    cmp rdx, 64
    jae 2b
3:  cw_tail clear, fault_clear
    cw_return
cw_end \name
.endm

.macro cw_clear_nontemporal name, width, spread, store, fixup, leave, prefix, r
cw_begin \name\()_unfenced
    cmp rdx, 64
    jb 4f
    cw_head clear, \fixup
    cmp rdx, 64
    jb 4f
    cw_spread_\spread \prefix
    .p2align 6
3:  cw_clear_64 \width, \store, \fixup, \r
    cw_cleared 64
    cmp rdx, 64
    jae 3b
4:  cw_tail clear, \fixup
    cw_return \leave
cw_end \name\()_unfenced
cw_fenced \name
.endm

.macro cw_clear_movdir64b name
cw_begin \name\()_unfenced
    cmp rdx, 64
    jb 4f
    cw_head clear, fault_clear
    cmp rdx, 64
    jb 4f
    sub rsp, 64
    .cfi_adjust_cfa_offset 64
    mov [rsp], rsi
    mov [rsp + 8], rsi
    mov [rsp + 16], rsi
    mov [rsp + 24], rsi
    mov [rsp + 32], rsi
    mov [rsp + 40], rsi
    mov [rsp + 48], rsi
    mov [rsp + 56], rsi
    .p2align 6
3:  cw_access 0, fault_clear_stack, movdir64b rdi, [rsp]
    cw_cleared 64
    cmp rdx, 64
    jae 3b
    add rsp, 64
    .cfi_adjust_cfa_offset -64
4:  cw_tail clear, fault_clear
    cw_return
cw_end \name\()_unfenced
cw_fenced \name
.endm

# A line in one instruction, which writes zero to the line that rax points into: never on a line
# that is only partly ours. Weakly ordered (AMD APM volume 3, CLZERO). Another byte than zero takes
# the general registers' way.
.macro cw_clear_clzero name, otherwise
cw_begin \name\()_unfenced
    test rsi, rsi
    jnz cachewise_{major}_{minor}_{patch}_\otherwise\()_unfenced
    cmp rdx, 64
    jb 4f
    cw_head clear, fault_clear
    cmp rdx, 64
    jb 4f
    .p2align 6
3:  mov rax, rdi
    cw_access 0, fault_clear, clzero
    cw_cleared 64
    cmp rdx, 64
    jae 3b
4:  cw_tail clear, fault_clear
    cw_return
cw_end \name\()_unfenced
cw_fenced \name
.endm

.macro cw_clear_rep name, width, fixup, instruction:vararg
cw_begin \name
    mov rax, rsi
    mov rcx, rdx
    .if \width == 8
    shr rcx, 3
    .elseif \width == 4
    shr rcx, 2
    .endif
    cw_access 0, \fixup, \instruction
    .if \width > 1
    and edx, \width - 1
    .if \width > 4
    cw_clear_piece 4, dl, fault_clear
    .endif
    cw_clear_piece 2, dl, fault_clear
    cw_clear_piece 1, dl, fault_clear
    .endif
    cw_return
cw_end \name
.endm

cw_clear_rep clear_rep_stosb, 1, fault_rep_stosb, rep stosb
cw_clear_rep clear_rep_stosd, 4, fault_rep_stosd, rep stosd
cw_clear_rep clear_rep_stosq, 8, fault_rep_stosq, rep stosq

cw_clear_once clear_mov, 8, none, mov, rsi
cw_clear_once clear_sse2_once, 16, sse2, movups, xmm0

cw_clear_temporal clear_sse2, 16, sse2, movups, fault_clear,, xmm, xmm, xmm
cw_clear_temporal clear_avx, 32, avx, vmovups, fault_clear_avx, vzeroupper, xmm, ymm, ymm
cw_clear_temporal clear_avx512, 64, avx512, vmovdqu64, fault_clear,, xmm2, ymm2, zmm2

cw_clear_nontemporal clear_movnti, 8, none, movnti, fault_clear,, r, rsi
cw_clear_nontemporal clear_mmx_movntq, 8, mmx, movntq, fault_clear_mmx, emms, mm, mm0
cw_clear_nontemporal clear_movntps, 16, sse, movntps, fault_clear,, xmm, xmm0
cw_clear_nontemporal clear_movntdq, 16, sse2, movntdq, fault_clear,, xmm, xmm0
cw_clear_nontemporal clear_avx_nt, 32, avx, vmovntps, fault_clear_avx, vzeroupper, ymm, ymm0
cw_clear_nontemporal clear_avx512_nt, 64, avx512, vmovntdq, fault_clear,, zmm2, zmm20
cw_clear_movdir64b clear_movdir64b
cw_clear_clzero clear_clzero, clear_movnti
