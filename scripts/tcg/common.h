/* SPDX-License-Identifier: GPL-2.0 */
/* What our plugins of QEMU have in common. */
#ifndef TCG_COMMON_H
#define TCG_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "marks.h"
#include "qemu_plugin.h"

/* Of x86-64: above is the kernel */
#define USER_END	(1ULL << 47)

/* At once: QEMU's own exit handlers would wait for the CPU that is in here */
static inline void die(const char *why)
{
	fprintf(stderr, "%s: %s\n", PLUGIN_NAME, why);
	_exit(1);
}

static inline void *allocated(void *p)
{
	if (!p)
		die("out of memory");
	return p;
}

/* The mark of regress/marks.h that an instruction is, or 0 */
static inline unsigned int mark_of(const struct qemu_plugin_insn *insn)
{
	static const unsigned char bytes[] = { MARK_BYTES };
	const unsigned char *data = qemu_plugin_insn_data(insn);

	if (qemu_plugin_insn_size(insn) != MARK_SIZE || qemu_plugin_insn_vaddr(insn) >= USER_END ||
	    memcmp(data, bytes, sizeof(bytes)))
		return 0;
	return data[sizeof(bytes)];
}

#endif /* TCG_COMMON_H */
