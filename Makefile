# `make` alone lists the targets.

CARGO ?= cargo

.DEFAULT_GOAL := help
.PHONY: help fio-examples demo page wheel static fast container window test test-live vm bench reproduce reproduce-full fuzz lint docs

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1|/' \
	  | while IFS='|' read -r name what; do printf '  make %-14s %s\n' "$$name" "$$what"; done

demo: ## Build, then show what host memory buys an RC100 (out/demo.html, out/what-if.html)
	$(CARGO) build --release -p lodger --bins
	@scripts/what-if.sh || echo "out/what-if.html is left out: see above" >&2
	$(CARGO) run --release -q -p lodger --example demo

page: ## Build the what-if page, the simulator in one HTML file (out/what-if.html)
	scripts/what-if.sh

wheel: ## Build a wheel that installs without a compiler (out/wheels)
	scripts/wheel.sh

static: ## Build the command as one file that runs on any Linux (out/lodger)
	scripts/static.sh

fast: ## Build the command as fast as it gets, guided by runs of its own (out/fast/lodger)
	scripts/fast.sh

container: static ## Put that file into an image that holds nothing else (ENGINE=docker, buildah)
	$(or $(ENGINE),podman) build -t lodger .

window: ## Build the libraries for programs on a byte window (out/window)
	$(CARGO) build --release -p lodger-window-c -p lodger-window-preload
	mkdir -p out/window
	cp crates/window-c/include/lodger_window.h target/release/liblodger_window_c.so \
	  target/release/liblodger_window_c.a target/release/liblodger_window_preload.so out/window

test: ## Run the whole fast suite, Rust and Python
	$(CARGO) test --workspace
	@if [ -x scripts/python-test.sh ]; then scripts/python-test.sh; fi

test-live: ## Linux in QEMU on served drives; fetches what is missing (LIVE="--kernel 6.1")
	$(CARGO) build --release -q -p lodger --bins
	$(CARGO) build --release -q -p lodger-window-preload -p lodger-window-c
	$(CARGO) build --release -q -p lodger-window --example pin_file
	$(CC) -o target/release/examples/window_in_c -I crates/window-c/include crates/window-c/tests/file.c \
	  target/release/liblodger_window_c.a -lgcc_s -lpthread -ldl -lm
	scripts/live/test.py --lodger target/release/lodger $(LIVE)

vm: ## A shell in a virtual machine with a drive attached (VM="--drive bg4 --kernel 6.1")
	$(CARGO) build --release -q -p lodger --bins
	scripts/live/shell.py --lodger target/release/lodger $(VM)

fio-examples: ## Run fio's own example job files and count them (Debian's package fio-examples)
	$(CARGO) build --release -q -p lodger --bins
	scripts/fio-examples.py --lodger target/release/lodger

bench: ## Measure the simulator's speed
	$(CARGO) bench -p lodger-run --bench throughput

reproduce: ## Check what papers say, one seed each (out/reproduce.html)
	scripts/reproduce.sh

reproduce-full: ## The same with 8 seeds, nulls and long studies; writes docs/validation/studies.md
	scripts/reproduce.sh --full

fuzz: ## Run the parsers on hostile inputs, and random drives (SECONDS=600 for each target)
	SECONDS_EACH=$(or $(SECONDS),60) scripts/fuzz.sh

lint: ## Check format, lints, API documentation, dependencies and scripts
	scripts/lint.sh

docs: ## Write docs/reference from the code
	UPDATE_REFERENCE=1 $(CARGO) test -q -p lodger --test command docs::
	UPDATE_REFERENCE=1 scripts/python-test.sh -q python/tests/test_docs.py
