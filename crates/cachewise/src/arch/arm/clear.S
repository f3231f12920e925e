// Clears and fills: r1 holds the byte repeated four times. The same shapes as the copies.

cw_begin_clear clear_stm
cw_label clear_stm_inside
    cmp r2, 32
    blo 4f
    cw_head clear
    cmp r2, 32
    blo 4f
    mov r4, r1
    mov r5, r1
    mov r6, r1
    mov r7, r1
    mov r8, r1
    mov r9, r1
    mov r10, r1
    mov r11, r1
    .p2align 6
2:  cw_access 0, fault_clear, stm r0, {{r4-r11}}
    cw_cleared 32
    cmp r2, 32
    bhs 2b
4:  cw_tail clear
    cw_return
cw_end clear_stm

cw_begin_clear clear_neon
    cmp r2, 64
    blo cachewise_{major}_{minor}_{patch}_clear_stm_inside
    vdup.32 q0, r1
    vdup.32 q1, r1
    .p2align 6
2:  add r4, r0, 32
    cw_access 0, fault_clear, vst1.8 {{d0-d3}}, [r0]
    cw_access 32, fault_clear, vst1.8 {{d0-d3}}, [r4]
    cw_cleared 64
    cmp r2, 64
    bhs 2b
    b cachewise_{major}_{minor}_{patch}_clear_stm_inside
cw_end clear_neon
