// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU that records which virtual CPUs write, and which touch, each
 * 64-byte line of guest memory, while a program in the guest does some
 * operations on each of several CPUs; marks.h says how that program tells when.
 *
 *   -plugin lines.so,out=FILE,tick=ADDRESS
 *
 * Each window becomes a line of FILE, a JSON object:
 *   ops      operations by CPU
 *   ticks    by CPU, the operations in which it came to ADDRESS, in hex, where
 *            the guest's kernel handles its timer; from 1
 *   touched  how many lines these CPUs touched
 *   lines    of those, the ones that one CPU wrote and another touched: "line",
 *            the physical address; "va", the virtual one of the first access;
 *            "cpus", a list of [CPU, [[operation, loads, stores], ...]] with the
 *            operations that touched it; "sites", a list of [address of
 *            an instruction, loads, stores]
 *
 * What is counted is what the CPU does between its marks, whoever does it:
 * interrupts and other tasks as well as the program. What the CPU's page table
 * walker and the fetch of instructions read is not, as QEMU does not tell.
 *
 * QEMU has to run the CPUs by turns (thread=single or icount): nothing here is
 * locked. An error ends QEMU, with a word on standard error.
 */
#include <errno.h>
#include <inttypes.h>

#define PLUGIN_NAME	"lines"
#include "common.h"

#define LINE_SHIFT	6
#define CPUS		64
#define BUCKETS		(1U << 16)

/* What one operation did with a line */
struct turn {
	uint32_t op;
	uint32_t loads;
	uint32_t stores;
};

/* What a CPU did with it, in the order of its operations */
struct use {
	struct turn *turn;
	uint32_t nr;
	uint32_t room;
};

/* What an instruction did with it */
struct site {
	uint64_t ip;
	uint64_t loads;
	uint64_t stores;
	struct site *next;
};

struct line {
	uint64_t nr;
	uint64_t va;
	struct site *sites;
	struct line *next;
	struct use use[];	/* as many as there are CPUs */
};

struct cpu {
	bool counting;
	uint32_t op;
	struct use ticks;
};

static struct cpu cpus[CPUS];
static unsigned int nr_cpus;
static struct line *bucket[BUCKETS];
static bool is_open;
static uint64_t tick_ip;
static FILE *out;

/* ---- recording ---- */

static struct line *find_line(uint64_t nr, uint64_t va)
{
	struct line **head = &bucket[nr % BUCKETS];
	struct line *line;

	for (line = *head; line; line = line->next)
		if (line->nr == nr)
			return line;
	line = allocated(calloc(1, sizeof(*line) + nr_cpus * sizeof(line->use[0])));
	line->nr = nr;
	line->va = va;
	line->next = *head;
	*head = line;
	return line;
}

/* The site is first in the list then: what touches a line does it again soon */
static struct site *find_site(struct line *line, uint64_t ip)
{
	struct site **at, *site;

	for (at = &line->sites; *at; at = &(*at)->next)
		if ((*at)->ip == ip)
			break;
	site = *at;
	if (site) {
		*at = site->next;
	} else {
		site = allocated(calloc(1, sizeof(*site)));
		site->ip = ip;
	}
	site->next = line->sites;
	line->sites = site;
	return site;
}

static struct turn *find_turn(struct use *use, uint32_t op)
{
	if (!use->nr || use->turn[use->nr - 1].op != op) {
		if (use->nr == use->room) {
			use->room = use->room ? 2 * use->room : 4;
			use->turn = allocated(realloc(use->turn, use->room * sizeof(*use->turn)));
		}
		use->turn[use->nr++] = (struct turn){ .op = op };
	}
	return &use->turn[use->nr - 1];
}

static void record(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va, uint64_t ip)
{
	struct qemu_plugin_hwaddr *addr = qemu_plugin_get_hwaddr(info, va);
	struct turn *turn;
	struct line *line;
	struct site *site;

	/* Registers of devices are no memory */
	if (!addr || qemu_plugin_hwaddr_is_io(addr))
		return;
	line = find_line(qemu_plugin_hwaddr_phys_addr(addr) >> LINE_SHIFT, va);
	site = find_site(line, ip);
	turn = find_turn(&line->use[cpu], cpus[cpu].op);
	if (qemu_plugin_mem_is_store(info)) {
		site->stores++;
		turn->stores++;
	} else {
		site->loads++;
		turn->loads++;
	}
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va, void *ip)
{
	uint64_t last;

	if (!cpus[cpu].counting)
		return;
	record(cpu, info, va, (uintptr_t)ip);
	last = va + (1ULL << qemu_plugin_mem_size_shift(info)) - 1;
	if (va >> LINE_SHIFT != last >> LINE_SHIFT)
		record(cpu, info, last, (uintptr_t)ip);
}

static void on_tick(unsigned int cpu, void *data)
{
	(void)data;
	if (cpus[cpu].counting)
		find_turn(&cpus[cpu].ticks, cpus[cpu].op);
}

/* ---- windows ---- */

static bool is_written(const struct use *use)
{
	uint32_t i;

	for (i = 0; i < use->nr; i++)
		if (use->turn[i].stores)
			return true;
	return false;
}

static bool is_shared(const struct line *line)
{
	unsigned int users = 0, i;
	bool written = false;

	for (i = 0; i < nr_cpus; i++) {
		users += line->use[i].nr != 0;
		written = written || is_written(&line->use[i]);
	}
	return written && users > 1;
}

static void print_line(const struct line *line)
{
	const char *comma = "";
	struct site *site;
	unsigned int cpu;
	uint32_t i;

	fprintf(out, "{\"line\": %" PRIu64 ", \"va\": %" PRIu64 ", \"cpus\": [",
		line->nr << LINE_SHIFT, line->va);
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		const struct use *use = &line->use[cpu];

		if (!use->nr)
			continue;
		fprintf(out, "%s[%u, [", comma, cpu);
		for (i = 0; i < use->nr; i++)
			fprintf(out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", i ? "," : "",
				use->turn[i].op, use->turn[i].loads, use->turn[i].stores);
		fputs("]]", out);
		comma = ", ";
	}
	fputs("], \"sites\": [", out);
	comma = "";
	for (site = line->sites; site; site = site->next) {
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", comma, site->ip,
			site->loads, site->stores);
		comma = ",";
	}
	fputs("]}", out);
}

static void forget(struct line *line)
{
	struct site *site;
	unsigned int i;

	while ((site = line->sites)) {
		line->sites = site->next;
		free(site);
	}
	for (i = 0; i < nr_cpus; i++)
		free(line->use[i].turn);
	free(line);
}

static void open_window(void)
{
	if (is_open)
		die("a window is opened in another one");
	is_open = true;
}

static void print_ticks(const struct use *ticks)
{
	uint32_t i;

	fputc('[', out);
	for (i = 0; i < ticks->nr; i++)
		fprintf(out, "%s%" PRIu32, i ? "," : "", ticks->turn[i].op);
	fputc(']', out);
}

/* Write down and forget the window */
static void close_window(void)
{
	const char *comma = "";
	uint64_t touched = 0;
	struct line *line;
	unsigned int i;

	if (!is_open)
		die("a window is closed that was not opened");
	is_open = false;
	fputs("{\"ops\": [", out);
	for (i = 0; i < nr_cpus; i++) {
		if (cpus[i].counting)
			die("a window is closed while a CPU is in it");
		fprintf(out, "%s%" PRIu32, i ? ", " : "", cpus[i].op);
	}
	fputs("], \"ticks\": [", out);
	for (i = 0; i < nr_cpus; i++) {
		fputs(i ? ", " : "", out);
		print_ticks(&cpus[i].ticks);
		free(cpus[i].ticks.turn);
	}
	memset(cpus, 0, sizeof(cpus));
	fputs("], \"lines\": [", out);
	for (i = 0; i < BUCKETS; i++) {
		while ((line = bucket[i])) {
			bucket[i] = line->next;
			touched++;
			if (is_shared(line)) {
				fputs(comma, out);
				print_line(line);
				comma = ", ";
			}
			forget(line);
		}
	}
	fprintf(out, "], \"touched\": %" PRIu64 "}\n", touched);
	if (fflush(out))
		die(strerror(errno));
}

static void on_mark(unsigned int cpu, void *mark)
{
	switch ((enum mark)(uintptr_t)mark) {
	case MARK_OPEN:
		open_window();
		break;
	case MARK_OP:
		if (!is_open)
			die("an operation begins, and no window is open");
		cpus[cpu].op++;
		cpus[cpu].counting = true;
		break;
	case MARK_END:
		cpus[cpu].counting = false;
		break;
	case MARK_CLOSE:
		close_window();
		break;
	}
}

/* ---- what QEMU calls ---- */

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i;

	(void)id;
	for (i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uintptr_t mark = mark_of(insn), ip = qemu_plugin_insn_vaddr(insn);

		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark,
							       QEMU_PLUGIN_CB_NO_REGS, (void *)mark);
		else
			qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW, (void *)ip);
		if (ip == tick_ip)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_tick,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	if (argc != 2 || strncmp(argv[0], "out=", 4) || strncmp(argv[1], "tick=", 5)) {
		fputs("lines: give out=FILE,tick=ADDRESS, and nothing else\n", stderr);
		return 1;
	}
	tick_ip = strtoull(argv[1] + 5, NULL, 16);
	if (!info->system_emulation || info->system.max_vcpus > CPUS) {
		fprintf(stderr, "lines: this is for a whole system of at most %u CPUs\n", CPUS);
		return 1;
	}
	nr_cpus = info->system.max_vcpus;
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		fprintf(stderr, "lines: cannot write %s: %s\n", argv[0] + 4, strerror(errno));
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
