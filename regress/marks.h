/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a program in the guest tells the plugins of scripts/tcg what to count. A mark is the
 * eight-byte nop of x86, "nopl disp32(%rax,%rax,1)", with a displacement that
 * says which one: the last of MARK_BYTES, and the number of the mark.
 *
 * The plugin knows it by its bytes when the code is translated. It is executed
 * in user space, on the virtual CPU that it is about, without a system call
 * whose memory accesses would count; it touches no memory and no register, and
 * where there is no plugin it does nothing. Compilers and assemblers pad with
 * this nop, too, but always with a displacement of 0. Elsewhere than on x86-64,
 * where the plugins do not count, a mark is nothing.
 */
#ifndef MARKS_H
#define MARKS_H

#define MARK_BYTES	0x0f, 0x1f, 0x84, 0x00, 'h', 'p', 'l'
#define MARK_SIZE	8

enum mark {
	MARK_OPEN = 1,	/* a window begins: forget what was recorded */
	MARK_OP,	/* this CPU begins an operation; its accesses count from here */
	MARK_END,	/* this CPU has done its operations */
	MARK_CLOSE,	/* the window is over: write down what was recorded */
};

#ifdef __x86_64__
/* As an operand of asm, each byte has to be an argument of its own */
#define MARK_OPERANDS(b0, b1, b2, b3, b4, b5, b6, mark) \
	"i" (b0), "i" (b1), "i" (b2), "i" (b3), "i" (b4), "i" (b5), "i" (b6), "i" (mark)
#define MARK_EXPAND(macro, ...)	macro(__VA_ARGS__)
#define MARK(mark) \
	__asm__ volatile(".byte %c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7" \
			 : : MARK_EXPAND(MARK_OPERANDS, MARK_BYTES, mark) : "memory")
#else
#define MARK(mark)	((void)(mark))
#endif

#endif /* MARKS_H */
