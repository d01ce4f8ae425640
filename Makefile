# make setup  what the demo needs, kdyno itself included; builds no kernel
# make demo   the main job on a real kernel: build two, boot them in blocks, judge, write demo-report.html
# make demo-fleet   the same on a fleet of this machine: PostgreSQL, a scheduler, three workers; then without, and compared
# make test   all tests but the long ones: make test-quick, then make test-e2e; both say which were the slowest
# make test-quick  those that build and boot no real kernel, two files at a time
# make test-e2e    those with real kernels, whose builds take all CPUs
# make test-long   the tests marked `long`, two files at a time; hours
# make check  format, lints, types, schemas, docs and the commands in them; seconds
# make docs   the documents as a site with a search, in build/docs; loads nothing from the network
# make fuzz   hostile bytes for every reader of foreign ones, S seconds each: make fuzz S=60
# make lock   requirements/*.txt from pyproject.toml; versions that still fit stay, unless: make lock U=--upgrade
# make sanitize   the tests of the Rust crates that have `unsafe`, under AddressSanitizer; ten minutes
# make audit  licences and sources of the Rust crates; needs `cargo install --locked cargo-deny`, ten minutes
# make bench  the harness's own figures beside their aims, as ratios where a host's speed would matter

export PATH := $(CURDIR)/.venv/bin:$(HOME)/.cargo/bin:$(PATH)
# A machine without any locale has at least this one; without it, paths with an ü can't be told.
export LC_ALL := C.UTF-8
# cargo, pip and kdyno keep files in HOME.
ifneq ($(shell test -d "$$HOME" && test -w "$$HOME" && echo yes),yes)
$(info HOME is not set or can't be written to: $(CURDIR)/.home takes its place)
export HOME := $(CURDIR)/.home
endif
# pytest's arguments: make test-quick T='-k lock'
T ?= -m "not long"
S ?= 3600
COMPILE := pip compile --quiet --universal --python-version 3.11 --no-emit-package kdyno --generate-hashes \
    --custom-compile-command "make lock" $(U)
PYTHON_TOOLS := $(sort $(shell grep -lE '^\#!.*python' tools/*) $(wildcard tools/*.py))

.PHONY: setup demo demo-fleet test test-quick test-e2e test-long check check-types check-crates check-documents \
    check-style fuzz sanitize lock audit bench docs setup-demo setup-demo-fleet setup-test setup-check setup-bench \
    setup-docs

setup: setup-demo

demo: setup-demo
	kdyno doctor
	kdyno run experiments/quickstart.toml --html demo-report.html

demo-fleet: setup-demo-fleet
	python tools/demo-fleet

test: test-quick
	$(MAKE) --no-print-directory test-e2e

test-quick: setup-test
	cargo test --workspace --quiet
	pytest --durations=25 --ignore=tests/e2e -n 2 --dist loadfile --no-loadscope-reorder $(T)

test-e2e: setup-test
	pytest --durations=25 -n 2 --dist loadfile $(T) tests/e2e

test-long: setup-test
	pytest --durations=0 -n 2 --dist loadfile -m long

# Two at a time: mypy, check-docs and much of clippy use one CPU each.
check: setup-check
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-style check-types check-crates check-documents

check-style:
	ruff format --check src tests tools examples
	ruff check src tests tools examples
	cargo fmt --check

check-types:
	mypy --scripts-are-modules src tests examples $(PYTHON_TOOLS)

check-crates:
	cargo clippy --workspace --all-targets --quiet -- -D warnings

check-documents:
	python tools/check-docs

fuzz: setup-test
	tools/fuzz --seconds $(S)
	timeout $(S) sh -c 'while PROPTEST_CASES=2000 PROPTEST_RNG_SEED=$$(od -An -N4 -tu4 /dev/urandom | tr -d " ") \
	    cargo test --workspace --quiet --bins --lib -- fuzz any_job; do :; done'; test $$? = 124

docs: setup-docs
	NO_MKDOCS_2_WARNING=1 mkdocs build --quiet --clean

lock: setup-check
	echo uv | uv $(COMPILE) --output-file requirements/uv.txt -
	uv $(COMPILE) --extra dev --output-file requirements/dev.txt pyproject.toml
	uv $(COMPILE) --extra pages --constraint requirements/dev.txt --output-file requirements/pages.txt \
	    pyproject.toml

sanitize: setup-test
	nice tools/sanitize

audit:
	cargo deny --offline check bans licenses sources

bench: setup-bench
	python tools/bench
	python tools/bench-delegate

setup-demo setup-demo-fleet setup-test setup-check setup-bench setup-docs:
	@mkdir -p "$(HOME)"
	@tools/setup $(@:setup-%=%)
