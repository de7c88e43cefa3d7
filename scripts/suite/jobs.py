# SPDX-License-Identifier: GPL-2.0
"""Builds with a job server: several makes that share tokens in a pipe."""

import jobserver
from process import output
from suite import Had, Program, Suite, Where

# What the jobs of a make leave has to be each of them once.
SETUP = jobserver.JOBS + """
sed 's|/bin/true $@ > /dev/null|echo $@ >> done|' /tmp/jobs.mk > /tmp/told.mk
sed -i 's|/tmp/jobs.mk|/tmp/told.mk|' /tmp/told.mk
cat > /tmp/build.mk << 'END'
directories := $(addprefix d, 1 2 3 4)
program: $(directories)
	gcc -o $@ $(addsuffix /all.o, $^)
$(directories):; +@$(MAKE) -C $@ -f /tmp/build.mk all.o
all.o: $(patsubst %.c, %.o, $(sort $(wildcard f*.c)))
	ld -r -o $@ $^
%.o: %.c; gcc -O2 -c -o $@ $<
.PHONY: $(directories)
END
sources() {
	local number=0 directory
	echo '#include <stdio.h>' > main.c
	for directory in d1 d2 d3 d4; do
		mkdir $directory
		for file in 1 2 3 4 5 6; do
			echo "int value$number(void) { return $number; }" > $directory/f$number.c
			echo "int value$number(void);" >> main.c
			number=$((number + 1))
		done
	done
	echo 'int main(void) { int sum = 0;' >> main.c
	for number in $(seq 0 23); do echo "sum += value$number();" >> main.c; done
	echo 'return printf("%d\\n", sum) < 0; }' >> main.c
	mv main.c d1/f-main.c
}
export -f sources
"""
JOBS = """for turn in {1..5}; do
	rm -f done
	make -j%s -f /tmp/told.mk || exit
	[ $(wc -l < done) = 48 ] && [ $(sort done | uniq -c | grep -c '^ *4 ') = 12 ] || exit
done"""
BUILD = "sources && make -j%s -f /tmp/build.mk program && [ $(./program) = 276 ]"


def get(_where: Where) -> Had:
    """What every machine has that builds kernels."""
    return Had(output("make", "--version").splitlines()[0], tuple(
        Program(f"{name}-{tokens}", command % tokens, 240)
        for name, command in (("jobs", JOBS), ("build", BUILD)) for tokens in (2, 4, 16)))


SUITE = Suite("jobs", "makes that share a job server: every job runs once, and what they build works", get,
              short=("jobs-4", "build-4"), setup=SETUP)
