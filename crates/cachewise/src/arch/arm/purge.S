// The macros go again: they are visible to whatever is assembled after this.

.purgem cw_label
.purgem cw_in_frame
.purgem cw_begin
.purgem cw_begin_clear
.purgem cw_begin_inside
.purgem cw_end
.purgem cw_return_with
.purgem cw_return
.purgem cw_access
.purgem cw_copied
.purgem cw_cleared
.purgem cw_copy_words
.purgem cw_copy_piece
.purgem cw_clear_piece
.purgem cw_tail
.purgem cw_head
.purgem cw_copy_lines
.purgem cw_pld
.purgem cw_count
.purgem cw_word_return
.purgem cw_word
