// SPDX-License-Identifier: GPL-2.0
/*
 * The first program of a User-Mode Linux guest of the bundle.  It does what the
 * lines of the file /jobs/<name> say, for each <name> that it is given, prints what
 * came out, and powers off:
 *
 *	ext4			mount the copy of /ext4.img in memory on /tmp/ext4
 *	files <path> <number>	make <path> and <path>.0, <path>.1, ..., which are read
 *	bench <words>		a benchmark of /proc/hotpaths_bench, TURNS times
 *	run <program> <words>	a program, which prints a line of JSON
 *	copies <number> <words>	that many copies at once of a program of UnixBench
 *
 * {cpus} stands for the number of CPUs that there are, {half} for half of it.  Of a
 * line "bench", "hotpaths: <job> <line> <operations> <nanoseconds>" is printed, of
 * "run" and "copies", "hotpaths: <job> <line> <JSON>".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* As scripts/measure/native.py has them. */
#define TURNS		4
#define MILLISECONDS	40
#define FILE_BYTES	65536
#define MOST_LINES	64
#define MOST_WORDS	16
#define MOST_COPIES	64

static long cpus;

static void end(void)
{
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void fail(const char *format, ...)
{
	va_list words;

	printf("hotpaths: failed: ");
	va_start(words, format);
	vprintf(format, words);
	va_end(words);
	printf(" (%s)\n", strerror(errno));
	end();
}

static int opened(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	if (fd < 0)
		fail("open %s", path);
	return fd;
}

static void mounted(const char *what, const char *where, const char *type, unsigned long flags)
{
	if (mount(what, where, type, flags, NULL))
		fail("mount %s on %s", what, where);
}

/* What is zero in the image stays a hole. */
static void copy_image(int from, int to)
{
	static const char zeros[4096];
	char block[4096];
	ssize_t got;

	while ((got = read(from, block, sizeof(block))) > 0) {
		if (!memcmp(block, zeros, got) ? lseek(to, got, SEEK_CUR) < 0 :
		    write(to, block, got) != got)
			fail("write /tmp/ext4.img");
	}
	if (got < 0 || ftruncate(to, lseek(to, 0, SEEK_CUR)))
		fail("copy /ext4.img");
}

static void mount_ext4(void)
{
	int from = opened("/ext4.img", O_RDONLY);
	int to = opened("/tmp/ext4.img", O_RDWR | O_CREAT);
	int loop = opened("/dev/loop0", O_RDWR);

	copy_image(from, to);
	if (ioctl(loop, LOOP_SET_FD, to))
		fail("LOOP_SET_FD");
	mkdir("/tmp/ext4", 0700);
	mounted("/dev/loop0", "/tmp/ext4", "ext4", MS_NOATIME);
}

static void make_file(const char *path)
{
	static char bytes[FILE_BYTES];
	int fd = opened(path, O_RDWR | O_CREAT);

	if (write(fd, bytes, FILE_BYTES) != FILE_BYTES ||
	    pread(fd, bytes, FILE_BYTES, 0) != FILE_BYTES)
		fail("write and read %s", path);
	close(fd);
}

static void make_files(const char *words)
{
	char path[100], name[128];
	int number, i;

	if (sscanf(words, "%99s %d", path, &number) != 2)
		fail("files %s", words);
	make_file(path);
	for (i = 0; i < number; i++) {
		snprintf(name, sizeof(name), "%s.%d", path, i);
		make_file(name);
	}
}

static void bench(const char *job, int number, const char *words)
{
	int fd = opened("/proc/hotpaths_bench", O_RDWR);
	char text[256];
	ssize_t size;

	size = snprintf(text, sizeof(text), "%d %s", MILLISECONDS, words);
	if (write(fd, text, size) != size)
		fail("bench %s", words);
	size = pread(fd, text, sizeof(text) - 1, 0);
	if (size <= 0)
		fail("read of bench %s", words);
	text[size] = '\0';
	printf("hotpaths: %s %d %s", job, number, text);
	close(fd);
}

static void split(char *words, char *argv[MOST_WORDS + 1])
{
	int i;

	for (i = 0; i < MOST_WORDS && (argv[i] = strsep(&words, " ")); i++)
		;
}

static void run(const char *job, int number, char *words)
{
	char *argv[MOST_WORDS + 1] = { };
	int status;
	pid_t pid;

	split(words, argv);
	printf("hotpaths: %s %d ", job, number);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execv(argv[0], argv);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0 || status)
		fail("%s ended with status %x", argv[0], status);
}

struct copy {
	pid_t pid;
	int said;
	double begin;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void start_copy(struct copy *copy, char **argv)
{
	char path[64];
	int fds[2];

	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC))
		fail("pipe2");
	copy->said = fds[0];
	copy->begin = now();
	copy->pid = fork();
	if (!copy->pid) {
		dup2(open("/dev/null", O_WRONLY), 1);
		dup2(fds[1], 2);
		snprintf(path, sizeof(path), "/bin/%s", argv[0]);
		execv(path, argv);
		_exit(127);
	}
	close(fds[1]);
}

/*
 * What the ended @copy did a second.  Its last line COUNT|<done>|<seconds>|<unit> tells
 * what was done in the time that passed or, with 0 seconds, in each second.
 */
static double rate(const struct copy *copy, const char *name)
{
	double took = now() - copy->begin, done = 0, seconds;
	char said[4096], *line = said, *last = NULL;
	ssize_t size = read(copy->said, said, sizeof(said) - 1);

	said[size > 0 ? size : 0] = '\0';
	close(copy->said);
	while ((line = strstr(line, "COUNT|")))
		last = line++;
	if (!last || sscanf(last, "COUNT|%lf|%lf|", &done, &seconds) != 2 || done <= 0)
		fail("%s counted nothing: %s", name, said);
	return seconds > 0 ? done * seconds / took : done;
}

static void run_copies(const char *job, int number, char *words)
{
	char *argv[MOST_WORDS + 1] = { };
	struct copy copies[MOST_COPIES];
	int status, left, most, i;
	double sum = 0;
	pid_t pid;

	most = atoi(strsep(&words, " "));
	if (most < 1 || most > MOST_COPIES)
		fail("%d copies", most);
	split(words, argv);
	for (i = 0; i < most; i++)
		start_copy(&copies[i], argv);
	for (left = most; left; ) {
		pid = wait(&status);
		if (pid < 0)
			fail("wait for %s", argv[0]);
		for (i = 0; i < most && copies[i].pid != pid; i++)
			;
		if (i == most)	/* a child that a copy left */
			continue;
		if (status)
			fail("%s ended with status %x", argv[0], status);
		sum += rate(&copies[i], argv[0]);
		left--;
	}
	printf("hotpaths: %s %d {\"ops_per_s\": %.1f}\n", job, number, sum);
}

/* @line, its end cut off, with numbers for {cpus} and {half}. */
static char *expanded(char *line)
{
	static char out[512];
	size_t used = 0;

	line[strcspn(line, "\n")] = '\0';
	while (*line && used < sizeof(out) - 16) {
		if (!strncmp(line, "{cpus}", 6) || !strncmp(line, "{half}", 6)) {
			used += sprintf(out + used, "%ld",
					line[1] == 'c' ? cpus : cpus / 2 ?: 1);
			line += 6;
		} else {
			out[used++] = *line++;
		}
	}
	out[used] = '\0';
	return strdup(out);
}

static void do_job(const char *job)
{
	char path[64], line[256], *lines[MOST_LINES], *arg;
	int turn, number = 0, i;
	FILE *file;

	snprintf(path, sizeof(path), "/jobs/%s", job);
	file = fopen(path, "r");
	if (!file)
		fail("open %s", path);
	while (number < MOST_LINES && fgets(line, sizeof(line), file))
		lines[number++] = expanded(line);
	fclose(file);
	for (turn = 0; turn < TURNS; turn++) {
		for (i = 0; i < number; i++) {
			arg = strchr(lines[i], ' ');
			arg = arg ? arg + 1 : "";
			if (!strncmp(lines[i], "bench ", 6))
				bench(job, i, arg);
			else if (turn)
				continue;
			else if (!strcmp(lines[i], "ext4"))
				mount_ext4();
			else if (!strncmp(lines[i], "files ", 6))
				make_files(arg);
			else if (!strncmp(lines[i], "run ", 4))
				run(job, i, arg);
			else if (!strncmp(lines[i], "copies ", 7))
				run_copies(job, i, arg);
			else
				fail("line %d of %s", i, path);
		}
	}
}

int main(int argc, char **argv)
{
	int i;

	mounted("proc", "/proc", "proc", 0);
	mounted("dev", "/dev", "devtmpfs", 0);
	mounted("tmp", "/tmp", "tmpfs", 0);
	/* UnixBench's execl looks there for itself; fstime writes where it is. */
	setenv("UB_BINDIR", "/bin", 1);
	if (chdir("/tmp"))
		fail("chdir /tmp");
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	printf("hotpaths: cpus %ld\n", cpus);
	/* The kernel adds words of its own, like console=tty0. */
	for (i = 1; i < argc; i++)
		if (!strchr(argv[i], '='))
			do_job(argv[i]);
	printf("hotpaths: done\n");
	end();
}
