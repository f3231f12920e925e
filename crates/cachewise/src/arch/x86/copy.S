# Copies. The loop of each kind once; the instances are at the end.

# Temporal, by a vector register of \width bytes (16, 32). Up to eight of them the pieces overlap,
# from both ends; beyond, four at a time to an aligned destination, and the last four from the end.
# So bytes are stored once only where the destination is aligned and the length a multiple of four
# registers: whole pages. \r names the register without its number.
.macro cw_copy_temporal name, width, load, store, fixup, leave, prefetch, r
cw_begin_copy \name
    cmp edx, 16
    jb cachewise_{major}_{minor}_{patch}_copy_below_16
    cmp edx, 2 * \width
    ja 3f
    .if \width > 16
    cmp edx, 32
    ja 4f
    .endif
    cw_copy_ends 1, 16, \load, \store, \fixup, xmm
    cw_return
    .if \width > 16
4:  cw_copy_ends 1, 32, \load, \store, \fixup, \r
    cw_return \leave
    .endif
3:  cmp edx, 8 * \width
    ja 3f
    cmp edx, 4 * \width
    ja 2f
    cw_copy_ends 2, \width, \load, \store, \fixup, \r
    cw_return \leave
2:  cw_copy_ends 4, \width, \load, \store, \fixup, \r
    cw_return \leave
3:  mov ecx, edi
    and ecx, \width - 1
    jz 3f
    cw_access 0, \fixup, \load \r\()0, [esi]
    cw_access 0, \fixup, \store [edi], \r\()0
    sub ecx, \width
    sub edi, ecx
    sub esi, ecx
    add edx, ecx
    .p2align 5
3:
    .if \prefetch
    cw_prefetch (4 * \width)
    .endif
    cw_group 4, \width, \load, \store, \fixup, 0, \r\()0, \r\()1, \r\()2, \r\()3
    cw_copied (4 * \width)
    cmp edx, 4 * \width
    ja 3b
    cw_access 0, \fixup, \load \r\()0, [esi + edx - 4 * \width]
    cw_access 0, \fixup, \load \r\()1, [esi + edx - 3 * \width]
    cw_access 0, \fixup, \load \r\()2, [esi + edx - 2 * \width]
    cw_access 0, \fixup, \load \r\()3, [esi + edx - \width]
    cw_access 0, \fixup, \store [edi + edx - 4 * \width], \r\()0
    cw_access 0, \fixup, \store [edi + edx - 3 * \width], \r\()1
    cw_access 0, \fixup, \store [edi + edx - 2 * \width], \r\()2
    cw_access 0, \fixup, \store [edi + edx - \width], \r\()3
    cw_return \leave
cw_end \name
.endm

# \count (1, 2 or 4) registers from the beginning and as many from the end.
.macro cw_copy_ends count, width, load, store, fixup, r
    cw_access 0, \fixup, \load \r\()0, [esi]
    .if \count > 1
    cw_access 0, \fixup, \load \r\()1, [esi + \width]
    .endif
    .if \count > 2
    cw_access 0, \fixup, \load \r\()2, [esi + 2 * \width]
    cw_access 0, \fixup, \load \r\()3, [esi + 3 * \width]
    cw_access 0, \fixup, \load \r\()4, [esi + edx - 4 * \width]
    cw_access 0, \fixup, \load \r\()5, [esi + edx - 3 * \width]
    .endif
    .if \count > 1
    cw_access 0, \fixup, \load \r\()6, [esi + edx - 2 * \width]
    .endif
    cw_access 0, \fixup, \load \r\()7, [esi + edx - \width]
    cw_access 0, \fixup, \store [edi], \r\()0
    .if \count > 1
    cw_access 0, \fixup, \store [edi + \width], \r\()1
    .endif
    .if \count > 2
    cw_access 0, \fixup, \store [edi + 2 * \width], \r\()2
    cw_access 0, \fixup, \store [edi + 3 * \width], \r\()3
    cw_access 0, \fixup, \store [edi + edx - 4 * \width], \r\()4
    cw_access 0, \fixup, \store [edi + edx - 3 * \width], \r\()5
    .endif
    .if \count > 1
    cw_access 0, \fixup, \store [edi + edx - 2 * \width], \r\()6
    .endif
    cw_access 0, \fixup, \store [edi + edx - \width], \r\()7
.endm

.macro cw_prefetch bytes
    prefetchnta [esi + {prefetch_bytes}]
    .if \bytes > 64
    prefetchnta [esi + {prefetch_bytes} + 64]
    .endif
.endm

cw_begin_inside copy_below_16
    cmp edx, 8
    jb 2f
    cw_group 2, 4, mov, mov, fault_copy, 0, eax, ebx
    cw_access 0, fault_copy, mov eax, [esi + edx - 8]
    cw_access 0, fault_copy, mov ebx, [esi + edx - 4]
    cw_access 0, fault_copy, mov [edi + edx - 8], eax
    cw_access 0, fault_copy, mov [edi + edx - 4], ebx
    cw_return
2:  cmp edx, 4
    jb 2f
    cw_access 0, fault_copy, mov eax, [esi]
    cw_access 0, fault_copy, mov ebx, [esi + edx - 4]
    cw_access 0, fault_copy, mov [edi], eax
    cw_access 0, fault_copy, mov [edi + edx - 4], ebx
    cw_return
2:  cmp edx, 2
    jb 2f
    cw_access 0, fault_copy, mov ax, [esi]
    cw_access 0, fault_copy, mov bx, [esi + edx - 2]
    cw_access 0, fault_copy, mov [edi], ax
    cw_access 0, fault_copy, mov [edi + edx - 2], bx
    cw_return
2:  test edx, edx
    jz 3f
    cw_access 0, fault_copy, mov al, [esi]
    cw_access 0, fault_copy, mov [edi], al
3:  cw_return
cw_end copy_below_16

# 64 bytes: by registers of 32, 16 or 8 bytes, as many as that takes of the four, or by the two
# general ones.
.macro cw_copy_64 width, load, store, fixup, r0, r1, r2, r3
    .if \width == 32
    cw_group 2, 32, \load, \store, \fixup, 0, \r0, \r1
    .elseif \width == 16
    cw_group 4, 16, \load, \store, \fixup, 0, \r0, \r1, \r2, \r3
    .elseif \width == 8
    cw_group 4, 8, \load, \store, \fixup, 0, \r0, \r1, \r2, \r3
    cw_group 4, 8, \load, \store, \fixup, 32, \r0, \r1, \r2, \r3
    .else
    cw_copy_words_16 \store, \fixup, 0
    cw_copy_words_16 \store, \fixup, 16
    cw_copy_words_16 \store, \fixup, 32
    cw_copy_words_16 \store, \fixup, 48
    .endif
.endm

# Temporal, each byte stored once: 64 bytes at a time, then the pieces.
.macro cw_copy_once name, width, load, store, r0, r1, r2, r3
cw_begin_copy \name
    cmp edx, 64
    jb 3f
    .p2align 5
2:  cw_copy_64 \width, \load, \store, fault_copy, \r0, \r1, \r2, \r3
    cw_copied 64
    cmp edx, 64
    jae 2b
3:  cw_tail copy, fault_copy
    cw_return
cw_end \name
.endm

# Non-temporal: whole lines of the destination around the cache, what lies before and after by
# ordinary stores. A line is never stored both ways: that costs hundreds of cycles (case 5). Each
# byte is stored once. 64 bytes are a line, or two of a CPU with lines of 32 bytes.
.macro cw_copy_nontemporal name, width, load, store, fixup, leave, prefetch, r0, r1, r2, r3
cw_begin_copy \name\()_unfenced
    cmp edx, 64
    jb 4f
    cw_head copy, \fixup
    cmp edx, 64
    jb 4f
    .p2align 5
3:
    .if \prefetch
    cw_prefetch 64
    .endif
    cw_copy_64 \width, \load, \store, \fixup, \r0, \r1, \r2, \r3
    cw_copied 64
    cmp edx, 64
    jae 3b
4:  cw_tail copy, \fixup
    cw_return \leave
cw_end \name\()_unfenced
cw_fenced \name, 3
.endm

# The string instructions: the CPU chooses how to store. \width-byte elements, then the odd bytes.
.macro cw_copy_rep name, width, fixup, instruction:vararg
cw_begin_copy \name
    mov ecx, edx
    .if \width == 4
    shr ecx, 2
    .endif
    cw_access 0, \fixup, \instruction
    .if \width == 4
    and edx, 3
    cw_copy_piece 2, dl, fault_copy
    cw_copy_piece 1, dl, fault_copy
    .endif
    cw_return
cw_end \name
.endm

# From the last byte to the first, each stored once: for a destination that overlaps the source
# from above. No fix-up fits: bytes are done from the end. So its accesses have no row.
cw_begin_copy copy_backward
    add edi, edx
    add esi, edx
    cmp edx, 4
    jb 3f
    .p2align 5
2:  mov eax, [esi - 4]
    mov [edi - 4], eax
    sub esi, 4
    sub edi, 4
    sub edx, 4
    cmp edx, 4
    jae 2b
3:  test edx, edx
    jz 5f
    .p2align 5
4:  mov al, [esi - 1]
    mov [edi - 1], al
    dec esi
    dec edi
    dec edx
    jnz 4b
5:  cw_return
cw_end copy_backward

cw_copy_rep copy_rep_movsb, 1, fault_rep_movsb, rep movsb
cw_copy_rep copy_rep_movsd, 4, fault_rep_movsd, rep movsd

cw_copy_once copy_mov, 4, mov, mov
cw_copy_once copy_sse2_once, 16, movups, movups, xmm0, xmm1, xmm2, xmm3

cw_copy_temporal copy_sse2, 16, movups, movups, fault_copy,, 0, xmm
cw_copy_temporal copy_sse2_prefetchnta, 16, movups, movups, fault_copy,, 1, xmm
cw_copy_temporal copy_avx, 32, vmovups, vmovups, fault_copy_avx, vzeroupper, 0, ymm
cw_copy_temporal copy_avx_prefetchnta, 32, vmovups, vmovups, fault_copy_avx, vzeroupper, 1, ymm

cw_copy_nontemporal copy_movnti, 4, mov, movnti, fault_copy_nt,, 0
cw_copy_nontemporal copy_movnti_prefetchnta, 4, mov, movnti, fault_copy_nt,, 1
cw_copy_nontemporal copy_mmx_movntq, 8, movq, movntq, fault_copy_mmx_nt, emms, 0, mm0, mm1, mm2, mm3
cw_copy_nontemporal copy_mmx_movntq_prefetchnta, 8, movq, movntq, fault_copy_mmx_nt, emms, 1, mm0, mm1, mm2, mm3
cw_copy_nontemporal copy_movntps, 16, movups, movntps, fault_copy_nt,, 0, xmm0, xmm1, xmm2, xmm3
cw_copy_nontemporal copy_movntps_prefetchnta, 16, movups, movntps, fault_copy_nt,, 1, xmm0, xmm1, xmm2, xmm3
cw_copy_nontemporal copy_movntdq, 16, movdqu, movntdq, fault_copy_nt,, 0, xmm0, xmm1, xmm2, xmm3
cw_copy_nontemporal copy_avx_nt, 32, vmovups, vmovntps, fault_copy_avx_nt, vzeroupper, 0, ymm0, ymm1
cw_copy_nontemporal copy_avx_nt_prefetchnta, 32, vmovups, vmovntps, fault_copy_avx_nt, vzeroupper, 1, ymm0, ymm1
