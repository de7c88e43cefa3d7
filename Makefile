# SPDX-License-Identifier: GPL-2.0
# The user interface of hotpaths.  Each target is one step of scripts/, which
# says more with --help: python3 scripts check --help.

PYTHON ?= python3
KDIR ?=
CASES ?=
LTP ?=
XFSTESTS ?=
UNIXBENCH ?=
export KDIR CASES LTP XFSTESTS UNIXBENCH
export HOTPATHS_INSTALL := $(filter 1,$(INSTALL))
# Variables of this make are not for the makes that it starts: some have an INSTALL, too.
unexport INSTALL MAKEFLAGS

# What the user gives reaches the steps through the environment, so that spaces
# and what the shell takes for its own are safe.
given = $(if $($(1)),$(2) "$$$(1)")
base = $(call given,BASE,--base)
topic = $(call given,TOPIC,--topic)
fresh = $(if $(FRESH),--fresh)
need-topic = $(if $(TOPIC),,$(error give a topic, for instance 'make $@ TOPIC=pipe'))
no-config = $(if $(CONFIG),$(error CONFIG= is a file for 'make deb': a guest is named with GUEST=))
step = @$(PYTHON) scripts $(1)

.PHONY: help install bench bundle deb survey check check-full suites knockout tree diff fit export lint shell mail report clean

help:
	@echo "hotpaths: patch series for the Linux kernel, and their proof"
	@echo
	@echo "Try it:"
	@echo "  make survey                 would this machine gain? looks at its load with bpftrace; needs root"
	@echo "  make shell TOPIC=pipe       an interactive guest with the patched kernel"
	@echo "  make deb TOPIC='pipe pid'   packages of the kernel without and with series, to install"
	@echo "Check it:"
	@echo "  make check                  before each commit: patches, tests in two guests, touched objects"
	@echo "  make check-full             everything, on every base; takes hours"
	@echo "  make lint [TOPIC=pipe]      check patches and scripts; needs no boot"
	@echo "  make knockout TOPIC=pid     see race tests fail where parts of the series are left out"
	@echo "  make suites [SUITE=ltp,fsx] other people's tests, on the kernel without series and with all of them"
	@echo "Measure it:"
	@echo "  make bench [TOPIC=pipe]     build baseline and patched, boot both, count and time both"
	@echo "  make bundle [TOPIC=pid]     an archive with which any x86-64 Linux times the series, without root"
	@echo "  make report [ADD=file]      write the report of all runs, and the figures in README, pages and letters;"
	@echo "                              ADD= takes in what a bundle has measured"
	@echo "Change it, send it:"
	@echo "  make tree TOPIC=pipe        a git tree to edit the series in"
	@echo "  make tree KDIR=clone        a branch of each series, for a tree that test robots take"
	@echo "  make diff TOPIC=pipe BASE=v6.18    what a port differs in from the series of the reference base"
	@echo "  make fit KDIR=tree          would the series apply to another release? a tree, or a linux-source package"
	@echo "  make export TOPIC=pipe      write patches/ and the mirrors from that tree"
	@echo "  make mail TOPIC=pipe FROM='Name <address>'    write a series as mails, and prove them"
	@echo "  make install                install what is missing (the others ask before they do)"
	@echo "  make clean                  say what the cache has, and remove what can be made again (LIST=1: remove nothing; ALL=1: all)"
	@echo
	@echo "  BASE=v7.3        a base of bases.toml            KDIR=dir   your own kernel tree or clone of that base"
	@echo "  TOPIC='pipe pid' series, all where none is named INSTALL=1  install packages without asking"
	@echo "  FRESH=1          do also what was seen to pass   MINUTES=75 end a check within so many"
	@echo "  ACCEL=auto|kvm|tcg     how QEMU runs guests      OUT=path   where bench, bundle, suites, deb, mail write"
	@echo "  GUEST=check|trace|debug|bench|kcsan|rt|up        of shell; suites: um, check"
	@echo "  CONFIG=file      of deb: a kernel configuration  SUITE=a,b  of suites; CASES=dir LTP=dir XFSTESTS=dir"
	@echo "  UNIXBENCH=dir    of suites, bundle: a checkout of byte-unixbench"
	@echo "  ONLY=counts|time BOOTS=n      of bench: these alone; rounds of boots at most (suites: of unixbench)"
	@echo "  DURATION=10 COMMAND='...'     of survey: seconds for each script, or while a command runs"
	@echo "  VERSION=2 PREFIX='PATCH mm-new' ASSISTED_BY='...' IN_REPLY_TO=id    of mail"

install:
	$(call step,install)

bench:
	$(call step,bench) $(base) $(topic) $(call given,ACCEL,--accel) $(call given,ONLY,--only) \
		$(call given,BOOTS,--boots) $(call given,OUT,--out)

bundle:
	$(call step,bundle) $(base) $(topic) $(call given,OUT,--out)

deb:
	$(call step,deb) $(base) $(topic) $(call given,CONFIG,--config) $(call given,OUT,--out)

survey:
	$(call step,survey) $(topic) $(call given,DURATION,--duration) $(call given,COMMAND,--exec)

check check-full:
	$(call step,check) $(base) $(call given,ACCEL,--accel) $(fresh) $(call given,MINUTES,--minutes) \
		$(if $(filter check-full,$@),--full)

suites:
	$(no-config)
	$(call step,suites) $(base) $(call given,ACCEL,--accel) $(fresh) $(call given,SUITE,--suite) \
		$(call given,GUEST,--config) $(call given,BOOTS,--boots) $(call given,OUT,--out)

knockout:
	$(need-topic)
	$(call step,knockout) $(base) $(topic) $(call given,ACCEL,--accel)

fit:
	$(call step,fit) $(base) $(topic) $(call given,OUT,--out)

diff:
	$(need-topic)
	$(call step,ports) $(base) $(topic)

lint:
	$(call step,lint) $(base) $(topic) $(fresh)

tree:
	$(call step,$(if $(TOPIC),tree,branches)) $(base) $(topic)

export:
	$(need-topic)
	$(call step,export) $(base) $(topic)

shell:
	$(need-topic)
	$(no-config)
	$(call step,guest) $(base) $(topic) $(call given,GUEST,--config)

mail:
	$(need-topic)
	$(call step,mail) $(base) $(topic) --from "$$FROM" $(call given,VERSION,--version) \
		$(call given,PREFIX,--subject-prefix) $(call given,IN_REPLY_TO,--in-reply-to) \
		$(call given,ASSISTED_BY,--assisted-by) $(call given,OUT,--out)

report:
	$(call step,report) $(base) $(call given,ADD,--add)

clean:
	$(call step,clean) $(if $(LIST),--list) $(if $(ALL),--all)
