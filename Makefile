# SPDX-License-Identifier: GPL-2.0
# The user interface of hotpaths.  Each target is one step of scripts/, which
# says more with --help.

BASE ?= v6.18
PYTHON ?= python3
KDIR ?=
export KDIR

topic = $(if $(TOPIC),--topic $(TOPIC))
fresh = $(if $(FRESH),--fresh)
need-topic = $(if $(TOPIC),,$(error give a topic, for instance 'make $@ TOPIC=pipe'))
step = @$(PYTHON) scripts/$(1).py

.PHONY: help install bench check check-teeth tree export lint shell mail report clean

help:
	@echo "hotpaths: patch series for the Linux kernel, and their proof"
	@echo
	@echo "  make bench [TOPIC=pipe]      build baseline and patched, boot both, print the comparison"
	@echo "  make check                   tooling's tests, lint, every kselftest in guests"
	@echo "  make check-teeth TOPIC=filemap   see race tests fail where parts of the series are left out"
	@echo "  make lint [TOPIC=pipe]       check patches and scripts; needs no boot"
	@echo "  make tree TOPIC=pipe         a git tree to edit the series in"
	@echo "  make export TOPIC=pipe       write patches/ and the mirrors from that tree"
	@echo "  make shell TOPIC=pipe        an interactive guest with the patched kernel"
	@echo "  make mail TOPIC=pipe FROM='Name <address>'     write a series as mails, and prove them"
	@echo "  make report RESULTS=dir      write a results directory's report again"
	@echo "  make install                 install what is missing (the others do it too)"
	@echo "  make clean                   remove builds and guest runs from the cache (ALL=1: all)"
	@echo
	@echo "  BASE=v6.18                   a base of bases.toml"
	@echo "  KDIR=dir                     your own kernel tree instead of a download"
	@echo "  ACCEL=auto|kvm|tcg CPUS=n TIMED=1 BOOTS=n OUT=dir      for make bench"
	@echo "  CONFIG=trace|debug|bench                       for make shell"
	@echo "  KDIR=clone VERSION=2 PREFIX='PATCH mm-new' ASSISTED_BY='...' IN_REPLY_TO=id    for make mail"
	@echo "  FRESH=1                      for make check and lint: build also what was seen to pass"
	@echo "  MINUTES=75                   for make check: skip what would not end within so many"

install:
	$(call step,install)

bench: install
	$(call step,bench) --base $(BASE) $(topic) $(if $(ACCEL),--accel $(ACCEL)) $(if $(CPUS),--cpus $(CPUS)) \
		$(if $(TIMED),--timed) $(if $(BOOTS),--boots $(BOOTS)) $(if $(OUT),--out $(OUT))

check: install
	$(call step,check) --base $(BASE) $(if $(ACCEL),--accel $(ACCEL)) $(fresh) $(if $(MINUTES),--minutes $(MINUTES))

check-teeth: install
	$(need-topic)
	$(call step,teeth) --base $(BASE) $(topic) $(if $(ACCEL),--accel $(ACCEL))

lint: install
	$(call step,lint) --base $(BASE) $(topic) $(fresh)

tree: install
	$(need-topic)
	$(call step,tree) --base $(BASE) $(topic)

export: install
	$(need-topic)
	$(call step,export) --base $(BASE) $(topic)

shell: install
	$(need-topic)
	$(call step,guest) --base $(BASE) $(topic) $(if $(CONFIG),--config $(CONFIG))

mail: install
	$(need-topic)
	$(call step,mail) --base $(BASE) $(topic) --from "$$FROM" $(if $(VERSION),--version $(VERSION)) \
		$(if $(PREFIX),--subject-prefix "$$PREFIX") $(if $(IN_REPLY_TO),--in-reply-to "$$IN_REPLY_TO") \
		$(if $(ASSISTED_BY),--assisted-by "$$ASSISTED_BY") $(if $(OUT),--out $(OUT))

report: install
	$(if $(RESULTS),,$(error give a results directory, for instance 'make report RESULTS=results/v6.18/2026-11-21'))
	$(call step,report) $(RESULTS)

clean:
	$(call step,clean) $(if $(ALL),--all)
