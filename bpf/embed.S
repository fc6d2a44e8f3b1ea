/* SPDX-License-Identifier: MIT */
/* The programs for the kernel, as tm3bpf has them within it. */
	.section .rodata
	.balign 8
	.global redirect_begin, redirect_end
redirect_begin:
	.incbin "redirect.bpf.o"
redirect_end:
	.section .note.GNU-stack, "", %progbits
