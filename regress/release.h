/* SPDX-License-Identifier: GPL-2.0 */
/* Which release of the kernel this is, where what is right depends on it. */
#ifndef RELEASE_H
#define RELEASE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/utsname.h>

static inline bool kernel_before(unsigned int major, unsigned int minor)
{
	unsigned int has_major, has_minor;
	struct utsname uts;

	if (uname(&uts) || sscanf(uts.release, "%u.%u", &has_major, &has_minor) != 2)
		return false;
	return has_major < major || (has_major == major && has_minor < minor);
}

#endif
