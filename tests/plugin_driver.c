// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for QEMU, to drive a plugin of scripts/tcg by what is read from
 * standard input, a command a line:
 *
 *   mark CPU N            the instruction that is mark N, in user space
 *   kmark CPU N           the same in the kernel
 *   tick CPU 0            the instruction at TICK
 *   load CPU IP PA SIZE   an access by the instruction at IP; numbers in hex
 *   store CPU IP PA SIZE
 *   io CPU IP PA SIZE     a store to a device
 *   run CPU IP N          the instruction at IP, in hex, N times
 *
 * Physical memory is mapped at DIRECT_MAP. Arguments: the number of CPUs, and
 * those of the plugin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"
#include "qemu_plugin.h"

#define DIRECT_MAP	0xffff888000000000ULL
#define USER_TEXT	0x401000ULL
#define KERNEL_TEXT	0xffffffff81000000ULL
#define TICK		0xffffffff81000800ULL

struct qemu_plugin_insn {
	unsigned char bytes[MARK_SIZE];
	uint64_t va;
	qemu_plugin_insn_cb exec;
	void *exec_data;
	qemu_plugin_mem_cb mem;
	void *mem_data;
	uint64_t *count;
};

struct qemu_plugin_tb {
	struct qemu_plugin_insn insn;
	qemu_plugin_insn_cb exec;
	void *exec_data;
};

struct qemu_plugin_hwaddr {
	uint64_t pa;
	bool io;
};

enum { STORE = 1, IO = 2, SHIFT = 2 };

extern int qemu_plugin_version;
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

static qemu_plugin_tb_cb on_translation;

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_cb cb)
{
	(void)id;
	on_translation = cb;
}

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_insn_cb cb,
					  enum qemu_plugin_cb_flags flags, void *data)
{
	(void)flags;
	tb->exec = cb;
	tb->exec_data = data;
}

void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_insn_cb cb,
					    enum qemu_plugin_cb_flags flags, void *data)
{
	(void)flags;
	insn->exec = cb;
	insn->exec_data = data;
}

void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, enum qemu_plugin_op op,
						void *ptr, uint64_t imm)
{
	if (op != QEMU_PLUGIN_INLINE_ADD_U64 || imm != 1)
		abort();
	insn->count = ptr;
}

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_mem_cb cb,
				      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw,
				      void *data)
{
	(void)flags;
	if (!(rw & QEMU_PLUGIN_MEM_W))
		abort();
	insn->mem = cb;
	insn->mem_data = data;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
	(void)tb;
	return 1;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t nth)
{
	(void)nth;
	return (struct qemu_plugin_insn *)&tb->insn;
}

const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn)
{
	return insn->bytes;
}

size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn)
{
	(void)insn;
	return MARK_SIZE;
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
	return insn->va;
}

unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info)
{
	return info >> SHIFT;
}

bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info)
{
	return info & STORE;
}

struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t va)
{
	static struct qemu_plugin_hwaddr addr;

	addr = (struct qemu_plugin_hwaddr){ .pa = va - DIRECT_MAP, .io = info & IO };
	return &addr;
}

bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *addr)
{
	return addr->io;
}

uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *addr)
{
	return addr->pa;
}

/* Translate an instruction at @va, then execute it; a mark if @mark is not 0 */
static void execute(unsigned int cpu, uint64_t va, unsigned int mark, qemu_plugin_meminfo_t info,
		    uint64_t pa)
{
	static const unsigned char bytes[] = { MARK_BYTES };
	struct qemu_plugin_tb tb = { .insn.va = va };

	if (mark) {
		memcpy(tb.insn.bytes, bytes, sizeof(bytes));
		tb.insn.bytes[sizeof(bytes)] = mark;
	}
	on_translation(0, &tb);
	if (tb.exec)
		tb.exec(cpu, tb.exec_data);
	if (tb.insn.count)
		(*tb.insn.count)++;
	if (tb.insn.exec)
		tb.insn.exec(cpu, tb.insn.exec_data);
	if (pa && tb.insn.mem)
		tb.insn.mem(cpu, info, DIRECT_MAP + pa, tb.insn.mem_data);
}

int main(int argc, char **argv)
{
	qemu_info_t info = { .system_emulation = true };
	unsigned long ip, pa;
	unsigned int cpu, nr;
	char what[16];

	if (argc < 2 || qemu_plugin_version != QEMU_PLUGIN_VERSION)
		return 2;
	info.system.max_vcpus = atoi(argv[1]);
	if (qemu_plugin_install(0, &info, argc - 2, argv + 2))
		return 3;
	while (scanf("%15s %u", what, &cpu) == 2) {
		if (strstr(what, "mark") || !strcmp(what, "tick")) {
			if (scanf("%u", &nr) != 1)
				return 2;
			execute(cpu, what[0] == 't' ? TICK : what[0] == 'k' ? KERNEL_TEXT : USER_TEXT,
				nr, 0, 0);
			continue;
		}
		if (!strcmp(what, "run")) {
			if (scanf("%lx %u", &ip, &nr) != 2)
				return 2;
			while (nr--)
				execute(cpu, ip, 0, 0, 0);
			continue;
		}
		if (scanf("%lx %lx %u", &ip, &pa, &nr) != 3)
			return 2;
		execute(cpu, ip, 0, (strcmp(what, "load") ? STORE : 0) |
			(strcmp(what, "io") ? 0 : IO) |
			(qemu_plugin_meminfo_t)__builtin_ctz(nr) << SHIFT, pa);
	}
	return 0;
}
