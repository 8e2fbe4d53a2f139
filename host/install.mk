# SPDX-License-Identifier: Apache-2.0
# The shared library, installation and the source archive.
#
# PREFIX   /usr/local      LIBDIR   $(PREFIX)/lib      DESTDIR  put in front of everything
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
MANDIR  ?= $(PREFIX)/share/man
DOCDIR  ?= $(PREFIX)/share/doc/millrace
DESTDIR ?=
VERSION := $(shell sed -n 's/^\#define MR_VERSION_STRING "\(.*\)"/\1/p' host/include/millrace.h)
# Before 1.0 the interface may change with every minor version.
SOVERSION := $(basename $(VERSION))
SHARED  := $(BUILD)/libmillrace.so
# The day on man pages and in the archive: that of the last commit, or of the archive's files.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)

# Public is what millrace.h declares.
$(LIB_OBJ): VISIBILITY := -fvisibility=hidden
$(LIB_OBJ): host/install.mk
$(SHARED).$(VERSION): $(LIB_OBJ)
	@echo "LINK  $@"
	@$(CC) $(CFLAGS) $(EXTRA_CFLAGS) -shared -Wl,-soname,libmillrace.so.$(SOVERSION) -Wl,-z,defs -o $@ $(LIB_OBJ) $(LIBS)
$(SHARED): $(SHARED).$(VERSION)
	@ln -sf $(notdir $<) $(BUILD)/libmillrace.so.$(SOVERSION)
	@ln -sf $(notdir $<) $@

# Everything under its final path in STAGE: what `install` copies and `uninstall` removes.
STAGE := $(BUILD)/stage
# Folders of pages, a folder behind those in it.
DOC_DIRS := $(patsubst %/,%,$(sort $(dir $(wildcard docs/*/*.md)))) docs
.PHONY: stage install uninstall dist
stage: all sim-views
	@rm -rf $(STAGE)
	@install -D -m 755 -t $(STAGE)$(PREFIX)/bin $(MILLRACE)
	@install -D -m 644 -t $(STAGE)$(PREFIX)/include host/include/*.h
	@install -D -m 644 -t $(STAGE)$(LIBDIR) $(LIB) $(SHARED).$(VERSION)
	@ln -s libmillrace.so.$(VERSION) $(STAGE)$(LIBDIR)/libmillrace.so.$(SOVERSION)
	@ln -s libmillrace.so.$(VERSION) $(STAGE)$(LIBDIR)/libmillrace.so
	@install -D -m 644 -t $(STAGE)$(PREFIX)/lib/millrace $(SIM_DEVICES) $(SIM_DEVICES:%.so=%-view.so) \
	  $(wildcard $(SIM_DEVICES:%.so=%-trace.so)) $(MPI_MODULE)
	@mkdir -p $(STAGE)$(LIBDIR)/pkgconfig
	@sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(LIBS)|' \
	  host/millrace.pc.in >$(STAGE)$(LIBDIR)/pkgconfig/millrace.pc
	@install -D -m 644 -t $(STAGE)$(DOCDIR) LICENSE README.md CHANGELOG.md
	@for d in $(DOC_DIRS); do \
	  install -D -m 644 -t $(STAGE)$(DOCDIR)/$$d $$d/*.md $$(ls $$d/*.svg 2>/dev/null) || exit 1; done
	@install -D -m 644 -t $(STAGE)$(PREFIX)/share/millrace/models/demo models/demo/*
	@install -D -m 644 -t $(STAGE)$(PREFIX)/share/millrace/python host/python/millrace.py
	@mkdir -p $(STAGE)$(MANDIR)/man1 $(STAGE)$(PREFIX)/share/bash-completion/completions \
	  $(STAGE)$(PREFIX)/share/zsh/site-functions $(STAGE)$(PREFIX)/share/fish/vendor_completions.d
	@set -e; export SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH); cd $(STAGE); \
	millrace=.$(PREFIX)/bin/millrace; \
	$$millrace man >.$(MANDIR)/man1/millrace.1; \
	for c in $$($$millrace --help | sed -n '/^commands:/,/^$$/s/^  \([a-z]*\) .*/\1/p'); do \
	  $$millrace man $$c >.$(MANDIR)/man1/millrace-$$c.1; done; \
	$$millrace completion bash >.$(PREFIX)/share/bash-completion/completions/millrace; \
	$$millrace completion zsh >.$(PREFIX)/share/zsh/site-functions/_millrace; \
	$$millrace completion fish >.$(PREFIX)/share/fish/vendor_completions.d/millrace.fish

## install: program, library, headers, simulators, demo model, docs, man pages, completions (PREFIX=/usr/local, DESTDIR=)
install: stage
	@mkdir -p "$(DESTDIR)/"
	@cd $(STAGE) && find . ! -type d -print0 | xargs -0 cp -P --remove-destination --parents -t "$(DESTDIR)/"
	@echo "program     $(PREFIX)/bin/millrace"
	@echo "simulators  $(PREFIX)/lib/millrace, with those of 'millrace trace'$(if $(wildcard $(SIM_DEVICES:%.so=%-trace.so)), \
	  and its waves,; for waves run 'make sim-traces' first)"
	@echo "demo model  $(PREFIX)/share/millrace/models/demo"
	@echo "docs        $(DOCDIR), 'man millrace'"

## uninstall: removes what `make install` with the same PREFIX and DESTDIR has written
uninstall: stage
	@cd $(STAGE) && find . ! -type d | while IFS= read -r f; do rm -f "$(DESTDIR)/$$f"; done
	@for d in $(PREFIX)/lib/millrace $(addprefix $(DOCDIR)/,$(DOC_DIRS)) $(DOCDIR) $(addprefix $(PREFIX)/share/millrace/,python models/demo models) $(PREFIX)/share/millrace; do \
	  [ ! -d "$(DESTDIR)$$d" ] || rmdir --ignore-fail-on-non-empty "$(DESTDIR)$$d"; done

## dist: the last commit as build/millrace-VERSION.tar.gz, the same bytes each time
dist:
	@git rev-parse --verify -q HEAD >/dev/null || { echo "dist: not a git repository" >&2; exit 1; }
	@[ -z "$$(git status --porcelain)" ] || echo "dist: what is not committed is left out" >&2
	@mkdir -p $(BUILD)
	@git -c tar.umask=0022 archive --format=tar --prefix=millrace-$(VERSION)/ HEAD | gzip -n -9 >$(BUILD)/dist.tmp
	@mv $(BUILD)/dist.tmp $(BUILD)/millrace-$(VERSION).tar.gz
	@echo $(BUILD)/millrace-$(VERSION).tar.gz
