// SPDX-License-Identifier: GPL-2.0
/*
 * Time what the series are about within the kernel, where User-Mode Linux runs
 * natively: its system calls are signals of the host, which cost far more than
 * what is measured.
 *
 * This is part of no series.  It is copied to kernel/ of each kernel that is
 * timed.  A line that is written to /proc/hotpaths_bench runs one benchmark:
 *
 *	<milliseconds> pread <bytes> <threads> <file>		all read one page
 *	<milliseconds> pread-own <bytes> <threads> <file>	of <file>.0, <file>.1, ...
 *	<milliseconds> pread-shared <bytes> <threads> <file>	by one struct file
 *	<milliseconds> pipe <bytes> <writers> <readers>		where the scheduler puts them
 *	<milliseconds> pipe-bound <bytes> <writers> <readers>	to a CPU each by turns
 *	<milliseconds> pipe-mixed <bytes> <writers> <readers>	pairs of both by turns
 *	<milliseconds> pipe-small <bytes> <writers> <readers>	all writers but one write
 *								100 bytes at a time
 *	<milliseconds> pipe-poll <bytes> <writers> <readers>	one of the writers does not
 *								block; its bytes are counted
 *	<milliseconds> pair <bytes>				write, then read: one task
 *	<milliseconds> pid <batch> <threads>			alloc_pid(), free_pid()
 *
 * All but "pipe", "pipe-small" and "pipe-poll" bind each thread to a CPU, by turns.
 * Reading it then gives "<operations> <nanoseconds>", but of pipe the bytes
 * that were written: a large write may not come to its end in time.
 * /proc/hotpaths_bench_more then has "<context switches> <median> <99th percentile>
 * <maximum>" of all threads and of the nanoseconds of each write of 100 bytes.
 */

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/pipe_fs_i.h>
#include <linux/poll.h>
#include <linux/proc_fs.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <uapi/linux/sched/types.h>

#define MOST_THREADS	128
#define MOST_BATCH	64
#define SMALL		100
#define SMALL_EVERY_NS	2000
#define BUCKETS		(40 << 3)
#define WARMUP_MS	5

struct job;

struct worker {
	struct job *job;
	struct task_struct *task;
	struct completion done;
	bool (*op)(struct worker *worker);
	struct file *in;
	struct file *out;
	char *buf;
	u64 ops;
	u64 written;
	u64 switches;
	u32 took[BUCKETS];
	bool counted;
};

struct job {
	size_t bytes;
	unsigned int batch;
	unsigned int workers;
	bool count_bytes;
	bool bound;
	bool mixed;
	bool go;
	bool stop;
	struct worker worker[MOST_THREADS];
};

static DEFINE_MUTEX(bench_lock);
static u64 bench_ops, bench_ns, bench_switches, bench_took[3];
static bool bench_spins;
/* bench_spin=0 on the command line where the host has fewer CPUs than the guest */
static bool bench_spin_wanted = true;
core_param(bench_spin, bench_spin_wanted, bool, 0444);

static bool do_pread(struct worker *worker)
{
	loff_t pos = 0;

	return kernel_read(worker->in, worker->buf, worker->job->bytes, &pos) ==
	       worker->job->bytes;
}

static bool do_write(struct worker *worker)
{
	ssize_t ret = kernel_write(worker->out, worker->buf, worker->job->bytes, NULL);

	if (ret > 0)
		worker->written += ret;
	return ret == worker->job->bytes;
}

/* In which eighth of a power of two @ns are, and where that one begins. */
static unsigned int bucket_of(u64 ns)
{
	unsigned int power = ilog2(ns | 8);

	return min(BUCKETS - 1, ((power - 3) << 3) + (unsigned int)((ns >> (power - 3)) & 7));
}

static u64 bucket_begin(unsigned int bucket)
{
	return (8ULL + (bucket & 7)) << (bucket >> 3);
}

/* A short message, some time after the one before. */
static bool do_small(struct worker *worker)
{
	u64 begin = ktime_get_ns();
	ssize_t ret = kernel_write(worker->out, worker->buf, SMALL, NULL);

	worker->took[bucket_of(ktime_get_ns() - begin)]++;
	ndelay(SMALL_EVERY_NS);
	return ret == SMALL;
}

struct polled {
	struct poll_table_struct table;
	struct wait_queue_entry entry;
	struct wait_queue_head *head;
};

static void poll_queue(struct file *file, struct wait_queue_head *head,
		       struct poll_table_struct *table)
{
	struct polled *polled = container_of(table, struct polled, table);

	polled->head = head;
	add_wait_queue(head, &polled->entry);
}

/* Wait as poll() does, then write what there is room for. */
static bool do_poll(struct worker *worker)
{
	struct polled polled = { };
	ssize_t ret;

	init_poll_funcptr(&polled.table, poll_queue);
	init_waitqueue_entry(&polled.entry, current);
	set_current_state(TASK_INTERRUPTIBLE);
	if (!(vfs_poll(worker->out, &polled.table) & EPOLLOUT) && !signal_pending(current))
		schedule();
	__set_current_state(TASK_RUNNING);
	if (polled.head)
		remove_wait_queue(polled.head, &polled.entry);
	ret = kernel_write(worker->out, worker->buf, worker->job->bytes, NULL);
	if (ret > 0)
		worker->written += ret;
	return ret > 0 || (ret == -EAGAIN && !signal_pending(current));
}

static bool do_read(struct worker *worker)
{
	return kernel_read(worker->in, worker->buf, worker->job->bytes, NULL) > 0;
}

static bool do_pair(struct worker *worker)
{
	return do_write(worker) && do_read(worker);
}

static bool do_pids(struct worker *worker)
{
	unsigned int batch = worker->job->batch, n, i;
	struct pid *pids[MOST_BATCH];

	for (n = 0; n < batch; n++) {
		pids[n] = alloc_pid(&init_pid_ns, NULL, 0);
		if (IS_ERR(pids[n]))
			break;
	}
	for (i = 0; i < n; i++)
		free_pid(pids[i]);
	return n == batch;
}

static int bench_work(void *data)
{
	struct worker *worker = data;
	struct job *job = worker->job;
	u64 ops = 0;

	/* Who waits in a pipe when the time is over is woken by it. */
	allow_signal(SIGTERM);
	while (!READ_ONCE(job->go))
		cond_resched();
	while (!READ_ONCE(job->stop) && worker->op(worker)) {
		if (!(++ops & 63))
			cond_resched();
	}
	worker->ops = ops;
	worker->switches = current->nvcsw + current->nivcsw;
	complete(&worker->done);
	return 0;
}

/*
 * An idle CPU of User-Mode Linux sleeps in the host, and a wakeup takes as long
 * as the host takes to run it again.  On real machines it polls.
 */
static int bench_spin(void *unused)
{
	for (;;) {
		cond_resched();
		cpu_relax();
	}
	return 0;
}

static int bench_start_spinning(void)
{
	struct sched_attr attr = { .size = sizeof(attr), .sched_policy = SCHED_IDLE };
	struct task_struct *task;
	int cpu;

	for_each_online_cpu(cpu) {
		task = kthread_create(bench_spin, NULL, "bench_spin/%d", cpu);
		if (IS_ERR(task))
			return PTR_ERR(task);
		kthread_bind(task, cpu);
		sched_setattr_nocheck(task, &attr);
		wake_up_process(task);
	}
	bench_spins = true;
	return 0;
}

static int bench_add(struct job *job, bool (*op)(struct worker *worker), struct file *in,
		     struct file *out, bool counted)
{
	struct worker *worker = &job->worker[job->workers];
	unsigned int cpu = (job->mixed ? job->workers / 2 : job->workers) % num_online_cpus();

	worker->buf = kvzalloc(max_t(size_t, job->bytes, PAGE_SIZE), GFP_KERNEL);
	if (!worker->buf)
		return -ENOMEM;
	worker->job = job;
	worker->op = op;
	worker->in = in;
	worker->out = out;
	worker->counted = counted;
	init_completion(&worker->done);
	worker->task = kthread_create(bench_work, worker, "bench/%u", job->workers);
	if (IS_ERR(worker->task)) {
		kvfree(worker->buf);
		return PTR_ERR(worker->task);
	}
	get_task_struct(worker->task);
	if (job->bound)
		kthread_bind(worker->task, cpu);
	job->workers++;
	return 0;
}

/* The nanoseconds that one of the writes of @took took: @nth of @of from the fast end. */
static u64 bench_nth(const u32 *took, u64 nth, u64 of)
{
	u64 all = 0, passed = 0;
	unsigned int i;

	for (i = 0; i < BUCKETS; i++)
		all += took[i];
	for (i = 0; i < BUCKETS && all; i++) {
		passed += took[i];
		if (passed * of >= all * nth)
			return bucket_begin(i);
	}
	return 0;
}

/* All workers, also those that were added before an error, have to come home. */
static void bench_run(struct job *job, unsigned int ms, bool begin)
{
	u64 start, end;
	unsigned int i;

	if (!begin)
		job->stop = true;
	for (i = 0; i < job->workers; i++)
		wake_up_process(job->worker[i].task);
	if (begin)
		msleep(WARMUP_MS);
	start = ktime_get_ns();
	WRITE_ONCE(job->go, true);
	if (begin)
		msleep(ms);
	WRITE_ONCE(job->stop, true);
	end = ktime_get_ns();

	bench_ops = 0;
	bench_switches = 0;
	bench_ns = end - start;
	for (i = 0; i < job->workers; i++) {
		struct worker *worker = &job->worker[i];

		do {
			send_sig(SIGTERM, worker->task, 1);
		} while (!wait_for_completion_timeout(&worker->done, 1));
		if (worker->counted)
			bench_ops += job->count_bytes ? worker->written :
				     worker->ops * (job->batch ?: 1);
		bench_switches += worker->switches;
		for (unsigned int bucket = 0; i && bucket < BUCKETS; bucket++)
			job->worker[0].took[bucket] += worker->took[bucket];
		put_task_struct(worker->task);
		kvfree(worker->buf);
	}
	bench_took[0] = bench_nth(job->worker[0].took, 1, 2);
	bench_took[1] = bench_nth(job->worker[0].took, 99, 100);
	bench_took[2] = bench_nth(job->worker[0].took, 1, 1);
}

static int bench_pread(struct job *job, unsigned int threads, const char *path, const char *op)
{
	bool own = !strcmp(op, "pread-own"), shared = !strcmp(op, "pread-shared");
	struct file *file = NULL;
	unsigned int i;
	int err = 0;

	for (i = 0; i < threads && !err; i++) {
		char *name;

		if (i && shared) {
			get_file(file);
		} else {
			name = own ? kasprintf(GFP_KERNEL, "%s.%u", path, i) :
				kstrdup(path, GFP_KERNEL);
			if (!name)
				return -ENOMEM;
			/* A struct file each, as processes have that open it. */
			file = filp_open(name, O_RDONLY, 0);
			kfree(name);
			if (IS_ERR(file))
				return PTR_ERR(file);
		}
		err = bench_add(job, do_pread, file, NULL, true);
		if (err)
			fput(file);
	}
	return err;
}

static int bench_pipe(struct job *job, struct file **ends, const char *op,
		      unsigned int writers, unsigned int readers)
{
	bool small = !strcmp(op, "pipe-small"), polls = ends[2];
	unsigned int i;
	int err = 0;

	job->count_bytes = true;
	/* Writers and readers by turns, so that one of each has a CPU of its own. */
	for (i = 0; i < max(writers, readers) && !err; i++) {
		if (i < writers && !i && polls)
			err = bench_add(job, do_poll, NULL, ends[2], true);
		else if (i < writers)
			err = bench_add(job, small && i ? do_small : do_write, NULL, ends[1],
					!polls && !(small && i));
		if (i < readers && !err)
			err = bench_add(job, do_read, ends[0], NULL, false);
	}
	return err;
}

static int bench_line(struct job *job, char *line)
{
	unsigned int ms, first = 1, second = 1, i;
	struct file *ends[3] = { };
	char op[16], path[64] = "";
	bool pipe;
	int err = 0;

	if (sscanf(line, "%u %15s %zu %u %63s", &ms, op, &job->bytes, &first, path) < 3)
		return -EINVAL;
	pipe = !strncmp(op, "pipe", 4);
	job->mixed = !strcmp(op, "pipe-mixed");
	if (pipe && kstrtouint(path, 10, &second))
		return -EINVAL;
	job->bound = !pipe || job->mixed || !strcmp(op, "pipe-bound");
	if (!first || !second || first > MOST_THREADS || second > MOST_THREADS ||
	    first + second > MOST_THREADS || job->bytes > SZ_16M)
		return -EINVAL;
	if (!strncmp(op, "pread", 5)) {
		err = bench_pread(job, first, path, op);
	} else if (!strcmp(op, "pid")) {
		job->batch = job->bytes;
		if (!job->batch || job->batch > MOST_BATCH)
			return -EINVAL;
		for (i = 0; i < first && !err; i++)
			err = bench_add(job, do_pids, NULL, NULL, true);
	} else if (pipe || !strcmp(op, "pair")) {
		err = create_pipe_files(ends, 0);
		if (err)
			return err;
		if (!strcmp(op, "pipe-poll"))
			ends[2] = dentry_open(&ends[1]->f_path, O_WRONLY | O_NONBLOCK,
					      current_cred());
		if (IS_ERR(ends[2]))
			err = PTR_ERR(ends[2]);
		else
			err = pipe ? bench_pipe(job, ends, op, first, second) :
				bench_add(job, do_pair, ends[0], ends[1], true);
	} else {
		return -EINVAL;
	}

	bench_run(job, ms, !err);
	if (ends[0]) {
		fput(ends[0]);
		fput(ends[1]);
		if (!IS_ERR_OR_NULL(ends[2]))
			fput(ends[2]);
	} else {
		for (i = 0; i < job->workers; i++)
			if (job->worker[i].in)
				fput(job->worker[i].in);
	}
	return err;
}

static ssize_t bench_proc_write(struct file *file, const char __user *from, size_t count,
				loff_t *pos)
{
	struct job *job;
	char *line;
	int err;

	line = memdup_user_nul(from, min_t(size_t, count, PAGE_SIZE));
	if (IS_ERR(line))
		return PTR_ERR(line);
	job = kvzalloc(sizeof(*job), GFP_KERNEL);
	err = job ? 0 : -ENOMEM;
	mutex_lock(&bench_lock);
	if (!err && !bench_spins && bench_spin_wanted)
		err = bench_start_spinning();
	if (!err)
		err = bench_line(job, line);
	mutex_unlock(&bench_lock);
	kvfree(job);
	kfree(line);
	return err ?: count;
}

static int bench_show(struct seq_file *seq, void *unused)
{
	seq_printf(seq, "%llu %llu\n", bench_ops, bench_ns);
	return 0;
}

static int bench_show_more(struct seq_file *seq, void *unused)
{
	seq_printf(seq, "%llu %llu %llu %llu\n", bench_switches, bench_took[0], bench_took[1],
		   bench_took[2]);
	return 0;
}

static int bench_proc_open(struct inode *inode, struct file *file)
{
	return single_open(file, bench_show, NULL);
}

static const struct proc_ops bench_proc_ops = {
	.proc_open	= bench_proc_open,
	.proc_read	= seq_read,
	.proc_write	= bench_proc_write,
	.proc_lseek	= seq_lseek,
	.proc_release	= single_release,
};

static int __init bench_init(void)
{
	return proc_create("hotpaths_bench", 0600, NULL, &bench_proc_ops) &&
	       proc_create_single("hotpaths_bench_more", 0400, NULL, bench_show_more) ? 0 : -ENOMEM;
}
late_initcall(bench_init);
