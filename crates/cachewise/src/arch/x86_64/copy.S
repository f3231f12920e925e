# Copies. The loop of each kind once; the instances are at the end.

# Temporal, by a vector register of \width bytes (16, 32, 64). Up to eight of them the pieces
# overlap, from both ends; beyond, four at a time to an aligned destination, and the last four from
# the end. So bytes are stored once only where the destination is aligned and the length a multiple
# of four registers: whole pages. \x and \y name the 16- and 32-byte forms of the registers.
.macro cw_copy_temporal name, width, load, store, fixup, leave, prefetch, x, y, r
cw_begin \name
    cmp rdx, 16
    jb cachewise_{major}_{minor}_{patch}_copy_below_16
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
    cw_copy_ends 1, 16, \load, \store, \fixup, \x
    cw_return
    .if \width > 16
4:  cw_copy_ends 1, 32, \load, \store, \fixup, \y
    cw_return \leave
    .endif
    .if \width > 32
2:  cw_copy_ends 1, 64, \load, \store, \fixup, \r
    cw_return \leave
    .endif
3:  cmp rdx, 8 * \width
    ja 3f
    cmp rdx, 4 * \width
    ja 2f
    cw_copy_ends 2, \width, \load, \store, \fixup, \r
    cw_return \leave
2:  cw_copy_ends 4, \width, \load, \store, \fixup, \r
    cw_return \leave
3:  mov ecx, edi
    and ecx, \width - 1
    jz 3f
    cw_access 0, \fixup, \load \r\()0, [rsi]
    cw_access 0, \fixup, \store [rdi], \r\()0
    sub rcx, \width
    sub rdi, rcx
    sub rsi, rcx
    add rdx, rcx
    .p2align 6
3:
    .if \prefetch
    cw_prefetch (4 * \width)
    .endif
    cw_group 4, \width, \load, \store, \fixup, 0, \r\()0, \r\()1, \r\()2, \r\()3
    cw_copied (4 * \width)
    cmp rdx, 4 * \width
    ja 3b
    cw_access 0, \fixup, \load \r\()0, [rsi + rdx - 4 * \width]
    cw_access 0, \fixup, \load \r\()1, [rsi + rdx - 3 * \width]
    cw_access 0, \fixup, \load \r\()2, [rsi + rdx - 2 * \width]
    cw_access 0, \fixup, \load \r\()3, [rsi + rdx - \width]
    cw_access 0, \fixup, \store [rdi + rdx - 4 * \width], \r\()0
    cw_access 0, \fixup, \store [rdi + rdx - 3 * \width], \r\()1
    cw_access 0, \fixup, \store [rdi + rdx - 2 * \width], \r\()2
    cw_access 0, \fixup, \store [rdi + rdx - \width], \r\()3
    cw_return \leave
cw_end \name
.endm

# \count (1, 2 or 4) registers from the beginning and as many from the end.
.macro cw_copy_ends count, width, load, store, fixup, r
    cw_access 0, \fixup, \load \r\()0, [rsi]
    .if \count > 1
    cw_access 0, \fixup, \load \r\()1, [rsi + \width]
    .endif
    .if \count > 2
    cw_access 0, \fixup, \load \r\()2, [rsi + 2 * \width]
    cw_access 0, \fixup, \load \r\()3, [rsi + 3 * \width]
    cw_access 0, \fixup, \load \r\()4, [rsi + rdx - 4 * \width]
    cw_access 0, \fixup, \load \r\()5, [rsi + rdx - 3 * \width]
    .endif
    .if \count > 1
    cw_access 0, \fixup, \load \r\()6, [rsi + rdx - 2 * \width]
    .endif
    cw_access 0, \fixup, \load \r\()7, [rsi + rdx - \width]
    cw_access 0, \fixup, \store [rdi], \r\()0
    .if \count > 1
    cw_access 0, \fixup, \store [rdi + \width], \r\()1
    .endif
    .if \count > 2
    cw_access 0, \fixup, \store [rdi + 2 * \width], \r\()2
    cw_access 0, \fixup, \store [rdi + 3 * \width], \r\()3
    cw_access 0, \fixup, \store [rdi + rdx - 4 * \width], \r\()4
    cw_access 0, \fixup, \store [rdi + rdx - 3 * \width], \r\()5
    .endif
    .if \count > 1
    cw_access 0, \fixup, \store [rdi + rdx - 2 * \width], \r\()6
    .endif
    cw_access 0, \fixup, \store [rdi + rdx - \width], \r\()7
.endm

.macro cw_prefetch bytes
    prefetchnta [rsi + {prefetch_bytes}]
    .if \bytes > 64
    prefetchnta [rsi + {prefetch_bytes} + 64]
    .endif
    .if \bytes > 128
    prefetchnta [rsi + {prefetch_bytes} + 128]
    prefetchnta [rsi + {prefetch_bytes} + 192]
    .endif
.endm

cw_begin copy_below_16
    cmp edx, 8
    jb 2f
    cw_access 0, fault_copy, mov r8, [rsi]
    cw_access 0, fault_copy, mov r9, [rsi + rdx - 8]
    cw_access 0, fault_copy, mov [rdi], r8
    cw_access 0, fault_copy, mov [rdi + rdx - 8], r9
    cw_return
2:  cmp edx, 4
    jb 2f
    cw_access 0, fault_copy, mov r8d, [rsi]
    cw_access 0, fault_copy, mov r9d, [rsi + rdx - 4]
    cw_access 0, fault_copy, mov [rdi], r8d
    cw_access 0, fault_copy, mov [rdi + rdx - 4], r9d
    cw_return
2:  cmp edx, 2
    jb 2f
    cw_access 0, fault_copy, mov r8w, [rsi]
    cw_access 0, fault_copy, mov r9w, [rsi + rdx - 2]
    cw_access 0, fault_copy, mov [rdi], r8w
    cw_access 0, fault_copy, mov [rdi + rdx - 2], r9w
    cw_return
2:  test edx, edx
    jz 3f
    cw_access 0, fault_copy, mov r8b, [rsi]
    cw_access 0, fault_copy, mov [rdi], r8b
3:  cw_return
cw_end copy_below_16

# Temporal, each byte stored once: 64 bytes at a time, then the pieces.
.macro cw_copy_once name, width, load, store, r0, r1, r2, r3
cw_begin \name
    cmp rdx, 64
    jb 3f
    .p2align 6
2:  cw_copy_64 \width, \load, \store, fault_copy, \r0, \r1, \r2, \r3
    cw_copied 64
    cmp rdx, 64
    jae 2b
3:  cw_tail copy, fault_copy
    cw_return
cw_end \name
.endm

# 64 bytes, as many registers as that takes of the four.
.macro cw_copy_64 width, load, store, fixup, r0, r1, r2, r3
    .if \width == 64
    cw_group 1, 64, \load, \store, \fixup, 0, \r0
    .elseif \width == 32
    cw_group 2, 32, \load, \store, \fixup, 0, \r0, \r1
    .elseif \width == 16
    cw_group 4, 16, \load, \store, \fixup, 0, \r0, \r1, \r2, \r3
    .else
    cw_group 4, 8, \load, \store, \fixup, 0, \r0, \r1, \r2, \r3
    cw_group 4, 8, \load, \store, \fixup, 32, \r0, \r1, \r2, \r3
    .endif
.endm

# Non-temporal: whole lines of the destination around the cache, what lies before and after by
# ordinary stores. A line is never stored both ways: that costs hundreds of cycles (case 5). Each
# byte is stored once. \pages: four pages in step while that many are left, so that four streams
# of DRAM pages are open at a time.
.macro cw_copy_nontemporal name, width, load, store, fixup, leave, prefetch, pages, r0, r1, r2, r3
cw_begin \name\()_unfenced
    cmp rdx, 64
    jb 4f
    cw_head copy, \fixup
    .if \pages
    cw_copy_pages \width, \load, \store, \fixup, \r0, \r1, \r2, \r3
    .endif
    cmp rdx, 64
    jb 4f
    .p2align 6
3:
    .if \prefetch
    cw_prefetch 64
    .endif
    cw_copy_64 \width, \load, \store, \fixup, \r0, \r1, \r2, \r3
    cw_copied 64
    cmp rdx, 64
    jae 3b
4:  cw_tail copy, \fixup
    cw_return \leave
cw_end \name\()_unfenced
cw_fenced \name
.endm

# The destination is at the start of a line.
.macro cw_copy_pages width, load, store, fixup, r0, r1, r2, r3
    cmp rdx, {step_pages} * {step_bytes}
    jb 6f
    .p2align 6
5:  mov ecx, {step_bytes} / 64
    .p2align 6
2:
    .if \width == 64
    cw_copy_step 64, 0, \load, \store, \fixup, \r0, \r1, \r2, \r3
    .else
    cw_copy_step 32, 0, \load, \store, \fixup, \r0, \r1, \r2, \r3
    cw_copy_step 32, 32, \load, \store, \fixup, \r0, \r1, \r2, \r3
    .endif
    cw_copied 64
    dec ecx
    jnz 2b
    cw_copied (({step_pages} - 1) * {step_bytes})
    cmp rdx, {step_pages} * {step_bytes}
    jae 5b
6:
.endm

# One register at \base of each page. All that a fault-free prefix is sure of is the first page's.
.macro cw_copy_step width, base, load, store, fixup, r0, r1, r2, r3
    cw_access \base, \fixup\()_pages, \load \r0, [rsi + \base]
    cw_access \base, \fixup\()_pages, \load \r1, [rsi + \base + {step_bytes}]
    cw_access \base, \fixup\()_pages, \load \r2, [rsi + \base + 2 * {step_bytes}]
    cw_access \base, \fixup\()_pages, \load \r3, [rsi + \base + 3 * {step_bytes}]
    cw_access \base, \fixup\()_pages, \store [rdi + \base], \r0
    cw_access (\base + \width), \fixup\()_pages, \store [rdi + \base + {step_bytes}], \r1
    cw_access (\base + \width), \fixup\()_pages, \store [rdi + \base + 2 * {step_bytes}], \r2
    cw_access (\base + \width), \fixup\()_pages, \store [rdi + \base + 3 * {step_bytes}], \r3
.endm

# A line in one instruction, which loads and stores: the retry tells which side failed. Weakly
# ordered, like the stores above (Intel SDM volume 2, MOVDIR64B).
.macro cw_copy_movdir64b name
cw_begin \name\()_unfenced
    cmp rdx, 64
    jb 4f
    cw_head copy, fault_copy
    cmp rdx, 64
    jb 4f
    .p2align 6
3:  cw_access 0, fault_copy, movdir64b rdi, [rsi]
    cw_copied 64
    cmp rdx, 64
    jae 3b
4:  cw_tail copy, fault_copy
    cw_return
cw_end \name\()_unfenced
cw_fenced \name
.endm

# The string instructions: the CPU chooses how to store. \width-byte elements, then the odd bytes.
.macro cw_copy_rep name, width, fixup, instruction:vararg
cw_begin \name
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
    cw_copy_piece 4, dl, fault_copy
    .endif
    cw_copy_piece 2, dl, fault_copy
    cw_copy_piece 1, dl, fault_copy
    .endif
    cw_return
cw_end \name
.endm

# From the last byte to the first, each stored once: for a destination that overlaps the source
# from above. No fix-up fits: bytes are done from the end. So its accesses have no row.
cw_begin copy_backward
    add rdi, rdx
    add rsi, rdx
    cmp rdx, 8
    jb 3f
    .p2align 6
2:  mov r8, [rsi - 8]
    mov [rdi - 8], r8
    sub rsi, 8
    sub rdi, 8
    sub rdx, 8
    cmp rdx, 8
    jae 2b
3:  test rdx, rdx
    jz 5f
    .p2align 6
4:  mov r8b, [rsi - 1]
    mov [rdi - 1], r8b
    dec rsi
    dec rdi
    dec rdx
    jnz 4b
5:  cw_return
cw_end copy_backward

cw_copy_rep copy_rep_movsb, 1, fault_rep_movsb, rep movsb
cw_copy_rep copy_rep_movsd, 4, fault_rep_movsd, rep movsd
cw_copy_rep copy_rep_movsq, 8, fault_rep_movsq, rep movsq

cw_copy_once copy_mov, 8, mov, mov, r8, r9, r10, r11
cw_copy_once copy_sse2_once, 16, movups, movups, xmm0, xmm1, xmm2, xmm3

cw_copy_temporal copy_sse2, 16, movups, movups, fault_copy,, 0, xmm, xmm, xmm
cw_copy_temporal copy_sse2_prefetchnta, 16, movups, movups, fault_copy,, 1, xmm, xmm, xmm
cw_copy_temporal copy_avx, 32, vmovups, vmovups, fault_copy_avx, vzeroupper, 0, xmm, ymm, ymm
cw_copy_temporal copy_avx_prefetchnta, 32, vmovups, vmovups, fault_copy_avx, vzeroupper, 1, xmm, ymm, ymm
# Registers from 16 on: they leave the upper halves that `vzeroupper` is about untouched.
cw_copy_temporal copy_avx512, 64, vmovdqu64, vmovdqu64, fault_copy,, 0, xmm2, ymm2, zmm2
cw_copy_temporal copy_avx512_prefetchnta, 64, vmovdqu64, vmovdqu64, fault_copy,, 1, xmm2, ymm2, zmm2

cw_copy_nontemporal copy_movnti, 8, mov, movnti, fault_copy,, 0, 0, r8, r9, r10, r11
cw_copy_nontemporal copy_movnti_prefetchnta, 8, mov, movnti, fault_copy,, 1, 0, r8, r9, r10, r11
cw_copy_nontemporal copy_mmx_movntq, 8, movq, movntq, fault_copy_mmx, emms, 0, 0, mm0, mm1, mm2, mm3
cw_copy_nontemporal copy_mmx_movntq_prefetchnta, 8, movq, movntq, fault_copy_mmx, emms, 1, 0, mm0, mm1, mm2, mm3
cw_copy_nontemporal copy_movntps, 16, movups, movntps, fault_copy,, 0, 0, xmm0, xmm1, xmm2, xmm3
cw_copy_nontemporal copy_movntps_prefetchnta, 16, movups, movntps, fault_copy,, 1, 0, xmm0, xmm1, xmm2, xmm3
cw_copy_nontemporal copy_movntdq, 16, movdqu, movntdq, fault_copy,, 0, 0, xmm0, xmm1, xmm2, xmm3
cw_copy_nontemporal copy_avx_nt, 32, vmovups, vmovntps, fault_copy_avx, vzeroupper, 0, 0, ymm0, ymm1, ymm2, ymm3
cw_copy_nontemporal copy_avx_nt_prefetchnta, 32, vmovups, vmovntps, fault_copy_avx, vzeroupper, 1, 0, ymm0, ymm1, ymm2, ymm3
cw_copy_nontemporal copy_avx_nt_pages, 32, vmovups, vmovntps, fault_copy_avx, vzeroupper, 0, 1, ymm0, ymm1, ymm2, ymm3
cw_copy_nontemporal copy_avx512_nt, 64, vmovdqu64, vmovntdq, fault_copy,, 0, 0, zmm20, zmm21, zmm22, zmm23
cw_copy_nontemporal copy_avx512_nt_prefetchnta, 64, vmovdqu64, vmovntdq, fault_copy,, 1, 0, zmm20, zmm21, zmm22, zmm23
cw_copy_nontemporal copy_avx512_nt_pages, 64, vmovdqu64, vmovntdq, fault_copy,, 0, 1, zmm20, zmm21, zmm22, zmm23
cw_copy_movdir64b copy_movdir64b
