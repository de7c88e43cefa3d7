#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# After jobserver.sh: what the jobs of a make leave has to be each of them once, and what a
# build makes has to work.

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
		for _ in 1 2 3 4 5 6; do
			echo "int value$number(void) { return $number; }" > $directory/f$number.c
			echo "int value$number(void);" >> main.c
			number=$((number + 1))
		done
	done
	echo 'int main(void) { int sum = 0;' >> main.c
	for number in $(seq 0 23); do echo "sum += value$number();" >> main.c; done
	printf '%s\n' 'return printf("%d\n", sum) < 0; }' >> main.c
	mv main.c d1/f-main.c
}
export -f sources
