/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __KERNEL_PID_NR_H
#define __KERNEL_PID_NR_H

struct pid;
struct pid_namespace;

int alloc_pid_nr(struct pid_namespace *ns, unsigned int tid);
void publish_pid_nr(struct pid_namespace *ns, unsigned int nr, struct pid *pid);
void free_pid_nr(struct pid_namespace *ns, unsigned int nr);
void pid_nr_init(void);

#endif
