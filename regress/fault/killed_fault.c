// SPDX-License-Identifier: GPL-2.0
/*
 * A fault that is killed pins its file until it has unlocked mapping->invalidate_lock.
 * Two processes read the memory of a third one: the first has the folio locked while the
 * device is read, the second waits for that lock, and is killed.  Then the third unmaps
 * the file.  For a kernel with knockout.patch, where a first attempt reads nothing, and a
 * fault that is killed sleeps before it puts the file.
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/uio.h>

#include "kselftest_harness.h"
#include "../../tools/testing/selftests/mm/dm_hold.h"

#define MOUNTED		"/tmp/killed_fault"

enum { MAPPED = 1, UNMAP, UNMAPPED };
static struct {
	int step;
	char *at;
} *owner;
static const char *missing;
static long psz;

/* The file has no name, and the mapping is all that keeps it */
static void map_and_unmap(void)
{
	int fd = open(MOUNTED, O_TMPFILE | O_RDWR, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	write(fd, &fd, sizeof(fd));
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	owner->at = mmap(NULL, psz, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	store(&owner->step, MAPPED);
	while (load(&owner->step) != UNMAP)
		usleep(1000);
	munmap(owner->at, psz);
	store(&owner->step, UNMAPPED);
	for (;;)
		pause();
}

static void read_memory(pid_t pid)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	process_vm_readv(pid, &(struct iovec) { &byte, 1 }, 1,
			 &(struct iovec) { owner->at, 1 }, 1, 0);
	_exit(0);
}

/* Where it waits, in the kernel */
static const char *where(pid_t pid)
{
	static char text[2][64];
	static int turn;
	char file[32];
	FILE *wchan;

	turn = !turn;
	snprintf(file, sizeof(file), "/proc/%d/wchan", pid);
	wchan = fopen(file, "r");
	if (!wchan || !fgets(text[turn], sizeof(text[turn]), wchan))
		strcpy(text[turn], "?");
	if (wchan)
		fclose(wchan);
	return text[turn];
}

static pid_t start_reader(pid_t mapper)
{
	pid_t pid = fork();

	if (!pid)
		read_memory(mapper);
	return waits_in('D', pid) ? pid : -1;
}

static long free_inodes(void)
{
	struct statfs fs = {};

	statfs(MOUNTED, &fs);
	return fs.f_ffree;
}

FIXTURE(killed) {};
FIXTURE_SETUP(killed) {}
FIXTURE_TEARDOWN(killed) {}

/* munmap() does not free the inode of a fault that is killed, and has yet to end */
TEST_F_TIMEOUT(killed, pins_file, 120)
{
	pid_t mapper, first, reader;
	char command[128], folio_lock[64];
	long before;

	snprintf(command, sizeof(command), "mkfs.ext4 -q -b 4096 -O ^has_journal %s", path[DATA]);
	if (access("/sys/kernel/debug/fault_knockout", F_OK))
		missing = "no knockout.patch";
	if (!missing && process_vm_readv(getpid(), NULL, 0, NULL, 0, 0))
		missing = "no process_vm_readv()";
	if (!missing && (unshare(CLONE_NEWNS) ||
			 mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
			 mount("tmpfs", "/tmp", "tmpfs", 0, NULL) || mkdir(MOUNTED, 0700) ||
			 system(command) || mount(path[DATA], MOUNTED, "ext4", 0, NULL)))
		missing = "no ext4";
	if (missing)
		SKIP(return, "%s", missing);

	mapper = fork();
	if (!mapper)
		map_and_unmap();
	ASSERT_TRUE(comes(load(&owner->step) == MAPPED));
	ASSERT_NE(MAP_FAILED, owner->at);
	before = free_inodes();
	suspend(DATA, true);
	first = start_reader(mapper);
	reader = start_reader(mapper);
	ASSERT_TRUE(first > 0 && reader > 0);
	store(&owner->step, UNMAP);
	ASSERT_TRUE(waits_in('D', mapper));

	strcpy(folio_lock, where(reader));
	kill(reader, SIGKILL);
	ASSERT_TRUE(comes(strcmp(folio_lock, where(reader))));
	suspend(DATA, false);
	ASSERT_TRUE(comes(waitpid(first, NULL, WNOHANG) == first));
	ASSERT_TRUE(comes(load(&owner->step) == UNMAPPED));
	EXPECT_EQ(before, free_inodes());
	/* It was in the fault meanwhile */
	ASSERT_EQ(0, waitpid(reader, NULL, WNOHANG));
	EXPECT_TRUE(comes(waitpid(reader, NULL, WNOHANG) == reader));
	EXPECT_EQ(before + 1, free_inodes());
	kill(mapper, SIGKILL);
	EXPECT_EQ(0, umount(MOUNTED));
}

int main(int argc, char **argv)
{
	int ret;

	psz = sysconf(_SC_PAGESIZE);
	owner = mmap(NULL, psz, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	missing = make_devices(psz);
	ret = test_harness_run(argc, argv);
	remove_devices();
	return ret;
}
