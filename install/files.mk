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
$(MADE)/tm3-rp.service $(MADE)/tm3-lp.service: $(MADE)/%.service: install/units/%.service.in install/units/common
	@mkdir -p $(@D)
	$(Q)echo "  GEN   $@"
	$(Q)sed -e 's|@BINDIR@|$(BINDIR)|' -e '/^@COMMON@$$/{r install/units/common' -e 'd}' $< >$@

put_files = set -e; for it in $(FILES) $(if $(wildcard $(BUILD)/tm3bpf),$(BPF_FILE)); do \
	rest=$${it\#*:}; \
	install -D -m $${it%%:*} $${rest%%:*} "$(DESTDIR)$${rest\#*:}"; \
	echo "  INST  $(DESTDIR)$${rest\#*:}"; done
remove_files = set -e; for it in $(FILES) $(BPF_FILE); do rm -f "$(DESTDIR)$${it\#\#*:}"; done; \
	for it in $(FOLDERS); do [ ! -d "$(DESTDIR)$$it" ] || \
		rmdir --ignore-fail-on-non-empty "$(DESTDIR)$$it"; done

# --- Debian packages ---

VERSION	:= $(shell sed -n 's/^\#define TM3_VERSION "\(.*\)"$$/\1/p' mux/settings/settings.h)
DEB	:= $(BUILD)/deb
DEB_TREE := $(DEB)/tm3-$(VERSION)
# The tree but for what no package is made of.
DEB_PARTS := $(filter-out Vagrantfile bench build dissector experiments results tests topologies vm,$(wildcard *))
# Of the last commit, so that the same tree makes the same packages.
DEB_EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),$(shell date +%s))

# Nothing of what was told to this make, such as another BUILD, is told to that of the packages.
build_packages = set -e; \
	rm -rf $(DEB); mkdir -p $(DEB_TREE); \
	cp -R $(DEB_PARTS) $(DEB_TREE); \
	cp -R install/debian $(DEB_TREE)/debian; \
	sed -e 's/@VERSION@/$(VERSION)/' -e "s/@DATE@/$$(LC_ALL=C date -u -R -d @$(DEB_EPOCH))/" \
		install/debian/changelog.in >$(DEB_TREE)/debian/changelog; \
	rm $(DEB_TREE)/debian/changelog.in; \
	command -v dpkg-buildpackage >/dev/null || \
		{ echo 'deb: no dpkg-buildpackage here: apt-get install dpkg-dev' >&2; exit 1; }; \
	cd $(DEB_TREE); \
	env -i PATH="$$PATH" HOME="$$HOME" DEB_BUILD_OPTIONS="$$DEB_BUILD_OPTIONS" \
		dpkg-buildpackage -b -us -uc
