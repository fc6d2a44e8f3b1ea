# SPDX-License-Identifier: MIT
#
# `make` builds the two proxies, `make help` lists what else there is.
#
#   BUILD=DIR   where everything is built (default: build)
#   SAN=1       with AddressSanitizer and UndefinedBehaviorSanitizer,
#               in $(BUILD)/asan
#   V=1         show whole command lines

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

BUILD	?= build
# By one name, whoever gives it: what the compiler notes of headers is of objects by their names.
override BUILD := $(patsubst $(CURDIR)/%,%,$(BUILD))
VENV	?= build/venv
Q	:= $(if $(V),,@)
JOBS	?= $(shell nproc 2>/dev/null || echo 2)

# For small machines: a C library that is made to be linked statically.
STATIC_CC	?= musl-gcc
STATIC_CFLAGS	?= -Os -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables
FUZZ_SECONDS	?= 300
FUZZ_CC		?= clang
BPF_CC		?= clang
SOAK_SECONDS	?= 600
# A test waits for most of its time, and takes three tenths of a core in the mean:
# more at once than cores. Who takes which, and when, is in tests/order.py.
PYTEST_JOBS	?= $(shell expr $(JOBS) \* 3)
PYTEST_ARGS	?=

# Without the headers of OpenSSL the proxies are built without --key-file.
TLS	:= $(shell echo '\#include <openssl/ssl.h>' | $(CC) $(CPPFLAGS) -E -x c - >/dev/null 2>&1 && echo 1)
TLS_LIBS := $(if $(TLS),-lssl -lcrypto)

CFLAGS	?= -O2 -g
TM3_CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror \
	-pthread $(if $(TLS),-DTM3_TLS)
# Of what little time is spent in: compiling it takes a quarter less.
QUICKLY	:= -O1
# What sanitizers report are lines: -g1 has them, and takes a tenth less time than -g.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer -g1
SANITIZE_THREADS := -fsanitize=thread -fno-omit-frame-pointer -g1 $(QUICKLY)
FUZZ_SANITIZE := -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all -fno-omit-frame-pointer

OUT	:= $(BUILD)$(if $(SAN),/asan)
ASAN	:= $(BUILD)/asan
TSAN	:= $(BUILD)/tsan
STATIC	:= $(BUILD)/static
UNIT	:= $(BUILD)/unit
FAULTS	:= $(BUILD)/faults
FUZZ	:= $(BUILD)/fuzz
VENV_PYTHON := $(abspath $(VENV))/bin/python
# For what needs nothing but the standard library: without set-up too.
PYTHON	:= $(or $(wildcard $(VENV_PYTHON)),python3)

RP_SRC	:= $(sort $(wildcard rp/*.c))
LP_SRC	:= $(sort $(wildcard lp/*.c))
MUX_SRC	:= $(sort $(wildcard mux/*/*.c))
TLS_SRC	:= $(if $(TLS),$(sort $(wildcard tls/*.c)))
LINKEM_SRC := $(sort $(wildcard topologies/linkem/*.c))
UNIT_SRC := $(filter-out $(if $(TLS),,tests/unit/test_tls%),$(sort $(wildcard tests/unit/test_*.c)))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
# Files beside the tests that are shared by them: linked into each.
UNIT_COMMON := $(filter-out $(UNIT_SRC) tests/unit/linkem_% tests/unit/sctp_% tests/unit/tls_% tests/unit/addrinfo.c,$(sort $(wildcard tests/unit/*.c)))
FUZZ_COMMON := $(filter-out $(FUZZ_SRC),$(sort $(wildcard tests/fuzz/*.c)))

# Those that take long under sanitizers: there a part, and without them all (tests/unit/part.h).
UNIT_WHOLE := $(addprefix $(UNIT)/whole/,test_matrix test_rivals test_shared test_thin test_together)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(UNIT)/%) $(UNIT_WHOLE)
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(FUZZ)/%)

# Nothing that Python or a test leaves behind lies outside the build
# directory, and a build directory made by sudo goes back to its user. There
# bytecode is no litter, and without it every start of Python takes thrice as long.
export TM3_BUILD := $(abspath $(BUILD))
export PYTHONPYCACHEPREFIX := $(abspath $(BUILD))/pycache
unexport PYTHONDONTWRITEBYTECODE
hand_back = if [ -n "$$SUDO_UID" ]; then \
	chown -Rh "$$SUDO_UID:$$SUDO_GID" $(BUILD) $(VENV); fi

.PHONY: all
all: $(OUT)/rp $(OUT)/lp $(OUT)/linkem $(BUILD)/tm3lab ## build rp, lp, linkem and tm3lab in build/ (SAN=1: with sanitizers, in build/asan)

.PHONY: setup
setup: ## install what is missing, from Debian and PyPI only (root; else it says what)
	@VENV=$(VENV) REQUIREMENTS=$(REQUIREMENTS) .ci/setup $(LISTS)

.PHONY: static
static: $(STATIC)/include ## rp and lp for small machines in build/static: one stripped file each, of musl (musl-tools)
	@$(MAKE) --no-print-directory BUILD=$(STATIC) CC='$(STATIC_CC)' \
		CFLAGS='$(STATIC_CFLAGS) -idirafter $(STATIC)/include' \
		LDFLAGS='-static -s -Wl,--gc-sections' TLS= $(STATIC)/rp $(STATIC)/lp

.PHONY: test-programs
test-programs: $(BUILD)/rp $(BUILD)/lp $(BUILD)/linkem $(BUILD)/tm3lab \
	$(ASAN)/rp $(ASAN)/lp $(ASAN)/linkem $(TSAN)/rp $(FAULTS)/rp $(FAULTS)/lp \
	$(UNIT_BIN) $(FUZZ_BIN) $(BUILD)/tm3bpf $(BUILD)/intruder.so

.PHONY: test
test: ## setup, build, then every test that this machine can run
	@$(MAKE) --no-print-directory setup
	@$(MAKE) --no-print-directory -j$(JOBS) $(BUILD)/pycache/read test-programs
	@status=0; \
	$(VENV_PYTHON) -m pytest -n $(PYTEST_JOBS) $(PYTEST_ARGS) || status=$$?; \
	$(hand_back); exit $$status

# In a fresh tree each worker would compile all tests and all that they import, at the same time.
$(BUILD)/pycache/read:
	@mkdir -p $(@D)
	$(Q)echo "  READ  tests"
	$(Q)$(VENV_PYTHON) -m pytest --collect-only -qq >$@ 2>&1 || :

.PHONY: test-fast
test-fast: ## the same without the tests that are marked slow
	@$(MAKE) --no-print-directory test PYTEST_ARGS="-m 'not slow'"

.PHONY: test-net
test-net: ## the tests in labs alone: links as declared, late binding beside early (root)
	@$(MAKE) --no-print-directory test PYTEST_ARGS="tests/net $(PYTEST_ARGS)"

.PHONY: unit
unit: $(UNIT_BIN) ## build and run the unit tests (C, cmocka, sanitizers)
	@set -e; for t in $^; do echo "== $$t"; $$t; done

.PHONY: fuzz
fuzz: $(FUZZ_BIN) ## run each fuzz target for FUZZ_SECONDS (300); findings in build/fuzz
	@set -e; for f in $^; do \
		echo "== $$f for $(FUZZ_SECONDS) s"; \
		mkdir -p $$f.corpus; \
		seeds=tests/fuzz/corpus/$$(basename $$f); \
		[ -d $$seeds ] || seeds=; \
		$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
			-rss_limit_mb=2048 -print_final_stats=1 \
			-artifact_prefix=$$f. $$f.corpus $$seeds; \
	done

SOAK_PATHS := tests/relay/test_paths.py::test_paths_are_killed_by_turns
SOAK_PATHS += tests/relay/test_failover.py::test_devices_go_and_come_by_turns
# Policies and rules of paths besides: CI leaves them out (SOAK_POLICIES=).
SOAK_POLICIES := tests/relay/test_path_policies.py::test_paths_die_under_a_policy
SOAK_POLICIES += tests/relay/test_path_rules.py::test_under_path_death
.PHONY: soak
soak: all ## pipes and paths killed under connections of all kinds, SOAK_SECONDS (600) in each test, and long pauses (root)
	@$(MAKE) --no-print-directory -j$(JOBS) $(ASAN)/rp $(ASAN)/lp
	@status=0; TM3_SOAK_SECONDS=$(SOAK_SECONDS) $(VENV_PYTHON) -m pytest -rP \
		tests/relay/test_outlives.py $(SOAK_PATHS) $(SOAK_POLICIES) $(PYTEST_ARGS) || status=$$?; \
	$(hand_back); exit $$status

.PHONY: sweep
sweep: $(BUILD)/sweep ## what the law for the pipes' sum does over many modelled paths (ARGS='-n 100 delay off')
	@$< $(or $(ARGS),delay off)

.PHONY: vectors
vectors: $(BUILD)/vectors/generate ## write tests/vectors/vectors.json anew from the C encoders
	@$< >tests/vectors/vectors.json.new
	@mv tests/vectors/vectors.json.new tests/vectors/vectors.json

.PHONY: grade
grade: $(BUILD)/rp ## grade a remote proxy: make grade RP='./a.out'
	@$(PYTHON) -m tests.grade $(ARGS) --rp '$(or $(RP),$(BUILD)/rp)'

.PHONY: bench
bench: $(BUILD)/rp $(BUILD)/lp ## measure rp and lp beside other relays (ARGS=--quick, --help)
	@VENV=$(VENV) .ci/setup bench/packages.debian
	@$(PYTHON) -m bench $(ARGS)

.PHONY: bench-ramp
bench-ramp: $(BUILD)/rp $(BUILD)/lp ## DNS queries over 100 to 10,000 connections, up to the peak, with and without rp and lp (ARGS=--quick, --help)
	@VENV=$(VENV) .ci/setup bench/ramp/packages.debian
	@$(PYTHON) -m bench.ramp $(ARGS)

.PHONY: bench-growth
bench-growth: $(BUILD)/rp $(BUILD)/lp ## plot what a message costs against connections, pipes, sessions, gaps (ARGS=--quick, --help)
	@VENV=$(VENV) .ci/setup bench/growth/packages.debian
	@$(PYTHON) -m bench.growth $(ARGS)

.PHONY: bench-redirect
bench-redirect: $(BUILD)/tm3bpf $(BUILD)/bpf/connects ## measure what a redirected connection costs, by nftables and by BPF (root; ARGS=--help)
	@$(PYTHON) -m tests.bpf.measure $(ARGS)

.PHONY: calibrate
calibrate: $(BUILD)/linkem ## measure how exact linkem is here (root; ARGS=--quick, --help)
	@$(PYTHON) -m tests.net.calibrate $(ARGS)

.PHONY: demo
demo: ## setup, build, then a small sweep: 1, 4, 8 pipes and none, over two last miles
	@$(MAKE) --no-print-directory setup
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@status=0; $(BUILD)/tm3lab run experiments/sweeps/demo.toml --fresh || status=$$?; \
	$(hand_back); exit $$status

.PHONY: kmod
kmod: ## build/tm3.ko, the kernel module (KDIR=headers of another kernel)
	@$(MAKE) --no-print-directory -C kmod OUT=$(abspath $(BUILD))

.PHONY: bpf
bpf: $(BUILD)/tm3bpf ## build/tm3bpf for `tm3ctl --bpf` (clang, libbpf-dev)

.PHONY: kernels
kernels: ## headers of newer kernels, of arm64's, and checkpatch, for tests/kmod; not installed (root)
	@VENV=$(VENV) .ci/setup vm/packages.debian vm/kernels.debian
	@status=0; $(VENV_PYTHON) -m vm kernels || status=$$?; \
	$(hand_back); exit $$status

.PHONY: wireshark
wireshark: ## tshark of the next Debian, for tests/dissector; not installed (root)
	@VENV=$(VENV) .ci/setup vm/packages.debian
	@status=0; $(VENV_PYTHON) -m vm wireshark || status=$$?; \
	$(hand_back); exit $$status

.PHONY: vm
vm: ## make the guest machine's image from Debian packages, once (root)
	@VENV=$(VENV) .ci/setup vm/packages.debian
	@status=0; $(VENV_PYTHON) -m vm build || status=$$?; \
	$(hand_back); exit $$status

.PHONY: vm-shell
vm-shell: vm ## a shell in a fresh guest, the tree at /tm3 (root)
	@$(VENV_PYTHON) -m vm shell $(ARGS)

.PHONY: vm-clean
vm-clean: ## remove the guests' images and boxes, but those in use (root)
	@$(PYTHON) -m vm clean

.PHONY: test-vm
test-vm: vm kmod bpf all $(FAULTS)/rp $(FAULTS)/lp ## the tests that need another kernel, in guests (root; KERNEL=backports or arm64, ARGS='--only kernel')
	@lists='$(if $(KERNEL),$(wildcard $(KERNEL:%=vm/%.debian)),install/packages.debian)'; \
	[ -z "$$lists" ] || VENV=$(VENV) .ci/setup $$lists || true # vm says what it misses
	@status=0; $(VENV_PYTHON) -m vm test $(addprefix --only ,$(KERNEL)) $(ARGS) || status=$$?; \
	$(hand_back); exit $$status

.PHONY: test-vm-debug
test-vm-debug: ## tm3.ko's tests under a kernel with KASAN, lockdep and kmemleak, built here once (root; nightly)
	@$(MAKE) --no-print-directory test-vm KERNEL=debug

.PHONY: box
box: ## the box for `vagrant up` without network, from Debian packages (root)
	@VENV=$(VENV) .ci/setup vm/packages.debian vm/vagrant.debian
	@status=0; $(VENV_PYTHON) -m vm box || status=$$?; \
	$(hand_back); exit $$status

.PHONY: test-vagrant
test-vagrant: ## vagrant up, ssh, destroy with that box, libvirt and qemu (root)
	@VENV=$(VENV) .ci/setup vm/packages.debian vm/vagrant.debian
	@status=0; $(VENV_PYTHON) -m vm.roundtrip || status=$$?; \
	$(hand_back); exit $$status

.PHONY: net-clean
net-clean: ## remove the labs whose runner was killed, nothing else (root)
	@$(PYTHON) -m topologies clean

.PHONY: lint
lint: ## ruff over the Python
	@$(VENV_PYTHON) -m ruff check --cache-dir $(BUILD)/ruff .
	@$(VENV_PYTHON) -m ruff format --check --cache-dir $(BUILD)/ruff .

include install/files.mk

.PHONY: install
install: $(INSTALLED) ## install tm3-rp and tm3-lp, tm3ctl, manual, completions, units (PREFIX=/usr/local, DESTDIR=)
	@$(put_files)
	@$(hand_back)

.PHONY: uninstall
uninstall: ## remove what `make install` with the same PREFIX and DESTDIR has installed
	@$(remove_files)

.PHONY: deb
deb: ## Debian packages tm3-proxies and tm3-dkms in build/deb (debhelper, dh-dkms, clang, libbpf-dev)
	@$(build_packages)
	@$(hand_back)

.PHONY: install-dissector
install-dissector: ## install the Wireshark dissector and its profile for this user
	@dissector/install

.PHONY: capture
capture: $(BUILD)/rp $(BUILD)/lp ## record the hand-out's first experiment to tm3.pcap (root)
	@$(PYTHON) -m dissector.record experiment1 $(or $(PCAP),tm3.pcap)

.PHONY: bench-dissector
bench-dissector: ## time the dissector on 200 MB, beside tshark without it (ARGS=--help)
	@$(PYTHON) -m dissector.bench $(ARGS)

.PHONY: clean
clean: ## remove what was built (the virtual environment stays)
	rm -rf $(BUILD)/obj $(STATIC) $(BUILD)/sweep $(BUILD)/sweep.obj $(ASAN) $(TSAN) $(UNIT) $(FUZZ) $(FAULTS) $(BUILD)/ruff \
		$(BUILD)/pycache $(BUILD)/pytest $(BUILD)/vectors \
		$(BUILD)/libmux.a $(BUILD)/rp $(BUILD)/lp $(BUILD)/linkem \
		$(BUILD)/tm3lab $(BUILD)/kmod $(BUILD)/tm3.ko \
		$(BUILD)/bpf $(BUILD)/tm3bpf $(BUILD)/install $(BUILD)/deb $(BUILD)/intruder.so

.PHONY: help
help: ## list these targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r t d; do printf '%-10s %s\n' "$$t" "$$d"; done

# --- how things are built -------------------------------------------------

# $(call program,DIR,FLAGS): rp, lp and linkem in DIR. mux, and what the programs
# have beside their main(), are libraries too, so that a unit test links only
# what it uses.
define program
$(1)/rp: $(RP_SRC:%.c=$(1)/obj/%.o) $(TLS_SRC:%.c=$(1)/obj/%.o) $(1)/libmux.a
	$(Q)echo "  LD    $$@$(if $(TLS),, without --key-file: no libssl-dev)"
	$(Q)$$(CC) $$(CFLAGS) $(2) $$(LDFLAGS) -o $$@ $$^ $(TLS_LIBS) -pthread

$(1)/lp: $(LP_SRC:%.c=$(1)/obj/%.o) $(TLS_SRC:%.c=$(1)/obj/%.o) $(1)/libmux.a
	$(Q)echo "  LD    $$@$(if $(TLS),, without --key-file: no libssl-dev)"
	$(Q)$$(CC) $$(CFLAGS) $(2) $$(LDFLAGS) -o $$@ $$^ $(TLS_LIBS) -pthread

$(1)/linkem: $(LINKEM_SRC:%.c=$(1)/obj/%.o) $(1)/libmux.a
	$(Q)echo "  LD    $$@"
	$(Q)$$(CC) $$(CFLAGS) $(2) $$(LDFLAGS) -o $$@ $$^ -lm

$(1)/libmux.a: $(MUX_SRC:%.c=$(1)/obj/%.o)
$(1)/librp.a: $(filter-out %/main.o,$(RP_SRC:%.c=$(1)/obj/%.o))
$(1)/liblp.a: $(filter-out %/main.o,$(LP_SRC:%.c=$(1)/obj/%.o))
$(1)/lib%.a:
	$(Q)rm -f $$@
	$(Q)$$(AR) rcs $$@ $$^

$(1)/obj/%.o: %.c Makefile
	@mkdir -p $$(@D)
	$(Q)echo "  CC    $$@"
	$(Q)$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(TM3_CFLAGS) $(2) -MMD -MP -c -o $$@ $$<
endef

$(eval $(call program,$(BUILD),))
$(eval $(call program,$(ASAN),$(SANITIZE)))
# For tests/relay/test_workers.py.
$(eval $(call program,$(TSAN),$(SANITIZE_THREADS)))

# musl has no headers of the kernel's: those of this machine do, which are looked
# at last. Its compiler may be another one with a folder of them already.
$(STATIC)/include:
	@command -v $(firstword $(STATIC_CC)) >/dev/null || \
		{ echo 'static: no $(firstword $(STATIC_CC)) here: apt-get install musl-tools' >&2; exit 1; }
	@mkdir -p $@
	@ln -s /usr/include/linux /usr/include/asm-generic \
		/usr/include/$(shell $(CC) -print-multiarch)/asm $@

$(BUILD)/tm3lab: experiments/tm3lab.in Makefile
	@mkdir -p $(@D)
	$(Q)echo "  GEN   $@"
	$(Q)sed -e 's|@ROOT@|$(CURDIR)|' -e 's|@BUILD@|$(abspath $(BUILD))|' \
		-e 's|@PYTHON@|$(VENV_PYTHON)|' $< >$@
	$(Q)chmod 755 $@

# Unit tests: one cmocka program for each test_*.c.
$(UNIT)/obj/test_%.o: SANITIZE += $(QUICKLY)
$(UNIT)/obj/%.o: tests/unit/%.c Makefile
	@mkdir -p $(@D)
	$(Q)echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(TM3_CFLAGS) $(SANITIZE) -I. -MMD -MP -c -o $@ $<

$(UNIT)/%: $(UNIT)/obj/%.o $(UNIT_COMMON:tests/unit/%.c=$(UNIT)/obj/%.o) \
		$(ASAN)/librp.a $(ASAN)/liblp.a $(ASAN)/libmux.a
	$(Q)echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) -Wl,--wrap=clock_gettime -o $@ $(filter %.o,$^) $(filter %.a,$^) -lcmocka -lm $(UNIT_LIBS) -pthread

# What a test needs besides mux.
$(UNIT)/test_access: $(ASAN)/obj/rp/access.o
$(UNIT)/test_lobby: $(ASAN)/obj/rp/lobby.o $(ASAN)/obj/rp/access.o $(ASAN)/obj/rp/entrances.o
$(UNIT)/test_socks: $(ASAN)/obj/lp/socks.o
$(UNIT)/test_forward: $(ASAN)/obj/lp/rule.o $(ASAN)/obj/lp/endpoint.o
$(filter $(UNIT)/test_tls%,$(UNIT_BIN)): $(TLS_SRC:%.c=$(ASAN)/obj/%.o) $(UNIT)/obj/tls_pair.o
$(filter $(UNIT)/test_tls%,$(UNIT_BIN)): UNIT_LIBS := $(TLS_LIBS)
$(UNIT)/test_tls_short: UNIT_LIBS += -Wl,--wrap=malloc,--wrap=realloc
$(UNIT)/test_unix_listen: UNIT_LIBS := -Wl,--wrap=listen,--wrap=unlink
$(UNIT)/test_call $(UNIT)/test_dialer $(UNIT)/test_resolver: $(UNIT)/obj/addrinfo.o
$(filter $(UNIT)/test_sctp%,$(UNIT_BIN)): $(UNIT)/obj/sctp_kernel.o
$(filter $(UNIT)/test_linkem_%,$(UNIT_BIN)): \
	$(filter-out %/main.o,$(LINKEM_SRC:%.c=$(ASAN)/obj/%.o)) \
	$(UNIT)/obj/linkem_bed.o

# rp and lp whose calls of these can be made to fail, for tests/relay/test_faults.py.
FAULTY := malloc calloc realloc strdup open_memstream socket accept4 eventfd timerfd_create \
	signalfd fopen open epoll_create1 epoll_ctl epoll_wait pthread_create sendmmsg \
	setsockopt getsockopt
comma := ,

$(FAULTS)/inject.o: tests/faults/inject.c Makefile
	@mkdir -p $(@D)
	$(Q)echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(TM3_CFLAGS) $(SANITIZE) -MMD -MP -c -o $@ $<

$(FAULTS)/rp: $(RP_SRC:%.c=$(ASAN)/obj/%.o)
$(FAULTS)/lp: $(LP_SRC:%.c=$(ASAN)/obj/%.o)
$(FAULTS)/rp $(FAULTS)/lp: $(FAULTS)/inject.o $(TLS_SRC:%.c=$(ASAN)/obj/%.o) $(ASAN)/libmux.a
	$(Q)echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) $(FAULTY:%=-Wl$(comma)--wrap=%) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(TLS_LIBS) -pthread

# Code of others within rp and lp, for tests/relay/test_sandbox.py.
$(BUILD)/intruder.so: tests/relay/intruder.c Makefile
	@mkdir -p $(@D)
	$(Q)echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(TM3_CFLAGS) $(LDFLAGS) -fPIC -shared -o $@ $< -ldl

# Fuzz targets: libFuzzer programs, mux instrumented along with them.
$(FUZZ)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)echo "  CC    $@"
	$(Q)$(FUZZ_CC) -O1 -g $(TM3_CFLAGS) $(FUZZ_SANITIZE) -I. -MMD -MP -c -o $@ $<

# What a target needs besides mux.
$(FUZZ)/fuzz_socks_udp: $(FUZZ)/obj/lp/socks_udp.o $(FUZZ)/obj/lp/target.o
$(FUZZ)/fuzz_rules: $(addprefix $(FUZZ)/obj/,rp/access.o rp/permits.o lp/rule.o lp/endpoint.o lp/target.o)
$(FUZZ)/fuzz_path_rule: $(FUZZ)/obj/lp/path_rule.o
$(FUZZ)/fuzz_first_bytes: $(FUZZ)/obj/lp/first_bytes.o
$(FUZZ)/fuzz_meeting: $(addprefix $(FUZZ)/obj/,rp/reception.o rp/entrances.o rp/access.o rp/places.o lp/opening.o lp/attempt.o lp/departure.o)
$(FUZZ)/fuzz_rp_options: $(addprefix $(FUZZ)/obj/rp/,options.o access.o permits.o)
$(FUZZ)/fuzz_lp_options: $(addprefix $(FUZZ)/obj/lp/,options.o options_paths.o \
	path_option.o path_rule.o rp_address.o rule.o endpoint.o target.o)

$(FUZZ)/libmux.a: $(MUX_SRC:%.c=$(FUZZ)/obj/%.o)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(FUZZ)/%: $(FUZZ)/obj/tests/fuzz/%.o $(FUZZ_COMMON:%.c=$(FUZZ)/obj/%.o) $(FUZZ)/libmux.a
	$(Q)echo "  LD    $@"
	$(Q)$(FUZZ_CC) -g -fsanitize=fuzzer,address,undefined -Wl,--wrap=clock_gettime -o $@ $(filter %.o,$^) $(filter %.a,$^) -pthread

# What `tm3ctl --bpf` starts, with the programs for the kernel in it.
TM3BPF_SRC := $(filter-out %.bpf.c,$(sort $(wildcard bpf/*.c)))
$(BUILD)/tm3bpf: $(TM3BPF_SRC:bpf/%.c=$(BUILD)/bpf/%.o) $(BUILD)/bpf/embed.o
	$(Q)echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lbpf

$(BUILD)/bpf/%.o: bpf/%.c Makefile
	@mkdir -p $(@D)
	@echo '#include <bpf/libbpf.h>' | $(CC) -E -x c - >/dev/null 2>&1 || \
		{ echo 'bpf: no libbpf here: apt-get install clang libbpf-dev' >&2; exit 1; }
	$(Q)echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(TM3_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bpf/embed.o: bpf/embed.S $(BUILD)/bpf/redirect.bpf.o Makefile
	$(Q)$(CC) -Wa,-I$(BUILD)/bpf -c -o $@ $<

# clang's BPF target does not look where Debian has the headers of one architecture.
$(BUILD)/bpf/redirect.bpf.o: bpf/redirect.bpf.c bpf/redirect.h Makefile
	@mkdir -p $(@D)
	$(Q)echo "  BPF   $@"
	$(Q)$(BPF_CC) -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror \
		-I/usr/include/$(shell $(CC) -print-multiarch) -c -o $@ $<

$(BUILD)/bpf/connects: tests/bpf/connects.c lp/origin.c $(BUILD)/libmux.a Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(TM3_CFLAGS) -I. -o $@ $(filter-out Makefile,$^)

# Laws for what the pipes hold together, over many modelled paths.
MODEL_OBJ := $(patsubst %,$(BUILD)/sweep.obj/tests/unit/%.o, \
	cellular clock matrix model network random rival tcp tcp_window)
$(BUILD)/sweep: $(BUILD)/sweep.obj/tests/sweep/sweep.o
$(UNIT_WHOLE): $(UNIT)/whole/%: $(BUILD)/sweep.obj/tests/unit/%.o
$(BUILD)/sweep $(UNIT_WHOLE): $(MODEL_OBJ) $(BUILD)/libmux.a
	@mkdir -p $(@D)
	$(Q)echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lcmocka -lm -pthread

$(BUILD)/sweep.obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(TM3_CFLAGS) -I. -MMD -MP -c -o $@ $<

$(BUILD)/vectors/generate: $(wildcard tests/vectors/*.c) tests/vectors/print.h $(BUILD)/libmux.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(TM3_CFLAGS) -I. -o $@ $(filter-out %.h,$^)

.SECONDARY:
# Goals of which this make compiles nothing itself: to read what a thousand objects
# depend on would take longer than they do.
COMPILE_NOTHING := help setup clean uninstall deb static kmod test test-fast test-net
ifneq ($(filter-out $(COMPILE_NOTHING),$(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))),)
# What lies in the guest's image or was built by the kernel's Makefile is not ours.
-include $(shell find $(BUILD) -path $(BUILD)/vm -prune -o -path $(BUILD)/kmod -prune -o -path $(BUILD)/kernels -prune -o -path $(BUILD)/wireshark -prune -o -type f -name '*.d' -print 2>/dev/null)
endif
