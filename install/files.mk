# SPDX-License-Identifier: MIT
#
# What `make install` puts where, and what that is made of. Each folder may be
# named; DESTDIR stands before all of them.

PREFIX		?= /usr/local
BINDIR		?= $(PREFIX)/bin
SBINDIR		?= $(PREFIX)/sbin
LIBEXECDIR	?= $(PREFIX)/libexec/tm3
MANDIR		?= $(PREFIX)/share/man
DOCDIR		?= $(PREFIX)/share/doc/tm3
BASHDIR		?= $(PREFIX)/share/bash-completion/completions
ZSHDIR		?= $(PREFIX)/share/zsh/site-functions
FISHDIR		?= $(PREFIX)/share/fish/vendor_completions.d
UNITDIR		?= $(PREFIX)/lib/systemd/system

MADE	:= $(BUILD)/install
MAKERS	:= $(wildcard install/*.py install/examples/*.conf) mux/settings/settings.h install/files.mk

# MODE:WHAT:WHERE
FILES	:= \
	755:$(BUILD)/rp:$(BINDIR)/tm3-rp \
	755:$(BUILD)/lp:$(BINDIR)/tm3-lp \
	755:kmod/tm3ctl:$(SBINDIR)/tm3ctl \
	644:$(MADE)/tm3-rp.1:$(MANDIR)/man1/tm3-rp.1 \
	644:$(MADE)/tm3-lp.1:$(MANDIR)/man1/tm3-lp.1 \
	644:$(MADE)/tm3ctl.8:$(MANDIR)/man8/tm3ctl.8 \
	$(foreach name,tm3-rp tm3-lp tm3ctl, \
		644:$(MADE)/$(name).bash:$(BASHDIR)/$(name) \
		644:$(MADE)/$(name).zsh:$(ZSHDIR)/_$(name) \
		644:$(MADE)/$(name).fish:$(FISHDIR)/$(name).fish) \
	644:$(MADE)/tm3-rp.service:$(UNITDIR)/tm3-rp.service \
	644:$(MADE)/tm3-lp.service:$(UNITDIR)/tm3-lp.service \
	644:install/examples/rp.conf:$(DOCDIR)/examples/rp.conf \
	644:install/examples/lp.conf:$(DOCDIR)/examples/lp.conf \
	644:install/examples/60-tm3.conf:$(DOCDIR)/examples/60-tm3.conf
# Where somebody has built it: it needs clang and libbpf.
BPF_FILE := 755:$(BUILD)/tm3bpf:$(LIBEXECDIR)/tm3bpf
# Removed when they are empty; the others are not ours alone.
FOLDERS	:= $(DOCDIR)/examples $(DOCDIR) $(LIBEXECDIR)

part = $(word $1,$(subst :, ,$2))
INSTALLED := $(foreach it,$(FILES),$(call part,2,$(it)))

# $(call pages,NAME,PROGRAM,SECTION)
define pages
$(MADE)/$1.$3: $2 $(MAKERS)
	@mkdir -p $$(@D)
	$(Q)echo "  GEN   $$@"
	$(Q)$(PYTHON) -m install man $1 $2 >$$@

$(addprefix $(MADE)/$1.,bash zsh fish): $(MADE)/$1.%: $2 $(MAKERS)
	@mkdir -p $$(@D)
	$(Q)echo "  GEN   $$@"
	$(Q)$(PYTHON) -m install $$* $1 $2 >$$@
endef
$(eval $(call pages,tm3-rp,$(BUILD)/rp,1))
$(eval $(call pages,tm3-lp,$(BUILD)/lp,1))
$(eval $(call pages,tm3ctl,kmod/tm3ctl,8))

# The folder of the programs is not in the name of the file: it is asked each time.
.PHONY: $(MADE)/tm3-rp.service $(MADE)/tm3-lp.service
$(MADE)/tm3-rp.service $(MADE)/tm3-lp.service: $(MADE)/%.service: install/units/%.service.in install/units/hardening
	@mkdir -p $(@D)
	$(Q)echo "  GEN   $@"
	$(Q)sed -e 's|@BINDIR@|$(BINDIR)|' -e '/^@HARDENING@$$/{r install/units/hardening' -e 'd}' $< >$@

put_files = set -e; for it in $(FILES) $(if $(wildcard $(BUILD)/tm3bpf),$(BPF_FILE)); do \
	rest=$${it\#*:}; \
	install -D -m $${it%%:*} $${rest%%:*} "$(DESTDIR)$${rest\#*:}"; \
	echo "  INST  $(DESTDIR)$${rest\#*:}"; done
remove_files = set -e; for it in $(FILES) $(BPF_FILE); do rm -f "$(DESTDIR)$${it\#\#*:}"; done; \
	for it in $(FOLDERS); do [ ! -d "$(DESTDIR)$$it" ] || \
		rmdir --ignore-fail-on-non-empty "$(DESTDIR)$$it"; done
