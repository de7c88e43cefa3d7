// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU that counts the instructions of each operation that a program
 * in the guest marks (regress/marks.h), and those of them that are executed while
 * a lock is held.
 *
 *   -plugin insns.so,out=FILE[,lock=ADDRESS][,begin=ADDRESS:...][,end=ADDRESS:...]
 *
 * lock: a queued spinlock of the kernel: taking it stores the whole word, and
 * releasing it the first byte.
 * begin, end: instructions of the kernel: a lock is held from the execution of a
 * first to that of a second, as after a call of mutex_lock() and at a call of
 * mutex_unlock(). Addresses are in hex.
 *
 * Each window becomes a line of FILE, a JSON object:
 *   ops       a list of the instructions of each operation
 *   sections  a list of [operation, address, instructions], one for each time
 *             that the lock was held: from 0, where it began, how long
 *
 * Whatever the CPU that marks does between the marks counts, whoever does it:
 * interrupts and other tasks as well as the program. What other CPUs do meanwhile
 * does not: most of it is their timers. An iteration of a string instruction is an
 * instruction here, as it is for -icount.
 *
 * For CPUs that one thread runs by turns, as for -icount, so nothing here is locked.
 * Times that locks are held are for one CPU, so that nobody waits for a lock. An
 * error ends QEMU, with a word on standard error.
 */
#include <errno.h>
#include <inttypes.h>

#define PLUGIN_NAME	"insns"
#include "common.h"

#define MOST_ADDRESSES	64

struct addresses {
	uint64_t ip[MOST_ADDRESSES];
	unsigned int nr;
};

struct section {
	uint64_t op;
	uint64_t ip;
	uint64_t insns;
};

/* Instructions that were executed, ever, by all CPUs */
static uint64_t executed;
/* Of those, what others than the CPU that marks executed; its turn is not over */
static uint64_t elsewhere;
static unsigned int marking;
static unsigned int running;
static uint64_t turn_began;
static bool several;
static struct addresses begins, ends;
static uint64_t lock;
static FILE *out;

static bool is_open;
static bool counting;
static uint64_t op_began;
/* Where the lock was taken, or 0, and when */
static uint64_t held_ip;
static uint64_t held_began;

static uint64_t *ops;
static size_t nr_ops, room_ops;
static struct section *sections;
static size_t nr_sections, room_sections;

/* Only while the CPU that marks runs: what it has executed */
static uint64_t own(void)
{
	return executed - elsewhere;
}

/* A CPU begins to execute a block; only between blocks does another get its turn */
static void on_block(unsigned int cpu, void *unused)
{
	(void)unused;
	if (cpu == running)
		return;
	if (running != marking)
		elsewhere += executed - turn_began;
	running = cpu;
	turn_began = executed;
}

static void section_begin(uint64_t ip)
{
	if (held_ip)
		return;
	held_ip = ip;
	held_began = executed;
}

static void section_end(void)
{
	if (held_ip && counting) {
		if (nr_sections == room_sections) {
			room_sections = room_sections ? 2 * room_sections : 1024;
			sections = allocated(realloc(sections, room_sections * sizeof(*sections)));
		}
		sections[nr_sections++] = (struct section){
			.op = nr_ops, .ip = held_ip, .insns = executed - held_began,
		};
	}
	held_ip = 0;
}

static void on_begin(unsigned int cpu, void *ip)
{
	(void)cpu;
	section_begin((uintptr_t)ip);
}

static void on_end(unsigned int cpu, void *ip)
{
	(void)cpu;
	(void)ip;
	section_end();
}

static void on_store(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va, void *ip)
{
	(void)cpu;
	if (va != lock)
		return;
	if (qemu_plugin_mem_size_shift(info))
		section_begin((uintptr_t)ip);
	else
		section_end();
}

static void op_end(void)
{
	if (!counting)
		return;
	counting = false;
	if (nr_ops == room_ops) {
		room_ops = room_ops ? 2 * room_ops : 1024;
		ops = allocated(realloc(ops, room_ops * sizeof(*ops)));
	}
	ops[nr_ops++] = own() - op_began;
}

static void close_window(void)
{
	size_t i;

	if (!is_open)
		die("a window is closed that was not opened");
	if (counting)
		die("a window is closed within an operation");
	is_open = false;
	fputs("{\"ops\": [", out);
	for (i = 0; i < nr_ops; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", ops[i]);
	fputs("], \"sections\": [", out);
	for (i = 0; i < nr_sections; i++)
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", i ? "," : "",
			sections[i].op, sections[i].ip, sections[i].insns);
	fputs("]}\n", out);
	nr_ops = 0;
	nr_sections = 0;
	if (fflush(out))
		die(strerror(errno));
}

static void on_mark(unsigned int cpu, void *mark)
{
	if (is_open && cpu != marking)
		die("two CPUs mark in one window");
	switch ((enum mark)(uintptr_t)mark) {
	case MARK_OPEN:
		if (is_open)
			die("a window is opened in another one");
		is_open = true;
		marking = cpu;
		break;
	case MARK_OP:
		op_end();
		/* Operations before a window warm up */
		counting = is_open;
		op_began = own();
		break;
	case MARK_END:
		op_end();
		break;
	case MARK_CLOSE:
		close_window();
		break;
	}
}

static bool among(const struct addresses *addresses, uint64_t ip)
{
	unsigned int i;

	for (i = 0; i < addresses->nr; i++)
		if (addresses->ip[i] == ip)
			return true;
	return false;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i;

	(void)id;
	if (several)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, NULL);
	for (i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uintptr_t mark = mark_of(insn), ip = qemu_plugin_insn_vaddr(insn);

		qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
							   &executed, 1);
		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark,
							       QEMU_PLUGIN_CB_NO_REGS, (void *)mark);
		if (among(&begins, ip))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin,
							       QEMU_PLUGIN_CB_NO_REGS, (void *)ip);
		if (among(&ends, ip))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end,
							       QEMU_PLUGIN_CB_NO_REGS, (void *)ip);
		if (lock && ip >= USER_END)
			qemu_plugin_register_vcpu_mem_cb(insn, on_store, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_W, (void *)ip);
	}
}

/* False: there are too many, or one is no address */
static bool parse(struct addresses *addresses, char *list)
{
	char *word, *end;

	for (word = strtok(list, ":"); word; word = strtok(NULL, ":")) {
		if (addresses->nr == MOST_ADDRESSES)
			return false;
		addresses->ip[addresses->nr++] = strtoull(word, &end, 16);
		if (*end)
			return false;
	}
	return true;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		bool known = true;

		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
		else if (!strncmp(argv[i], "lock=", 5))
			lock = strtoull(argv[i] + 5, NULL, 16);
		else if (!strncmp(argv[i], "begin=", 6))
			known = parse(&begins, argv[i] + 6);
		else if (!strncmp(argv[i], "end=", 4))
			known = parse(&ends, argv[i] + 4);
		else
			known = false;
		if (!known) {
			fprintf(stderr, "insns: cannot take '%s'\n", argv[i]);
			return 1;
		}
	}
	if (!out) {
		fputs("insns: cannot write out=FILE\n", stderr);
		return 1;
	}
	if (!info->system_emulation || (info->system.max_vcpus != 1 && (lock || begins.nr))) {
		fputs("insns: this is for a whole system, and locks are for one of one CPU\n", stderr);
		return 1;
	}
	several = info->system.max_vcpus != 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
