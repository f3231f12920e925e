// The macros go again: they are visible to whatever is assembled after this.

.purgem cw_begin
.purgem cw_label
.purgem cw_end
.purgem cw_return
.purgem cw_access
.purgem cw_copied
.purgem cw_cleared
.purgem cw_copy_piece
.purgem cw_clear_piece
.purgem cw_tail
.purgem cw_head
.purgem cw_copy_64
.purgem cw_copy
.purgem cw_copy_mops
.purgem cw_clear_64
.purgem cw_clear
.purgem cw_clear_mops
.purgem cw_word
.purgem cw_swap
.purgem cw_compare_exchange
