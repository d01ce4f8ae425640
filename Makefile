# make demo   the main job on a real kernel: build two, boot them in blocks, judge, write demo-report.html
# make test   all tests, with real kernels
# make check  format, lints, types, schemas and docs; seconds
# make bench  the harness's own figures, as ratios

PY := .venv/bin
export PATH := $(CURDIR)/.venv/bin:$(HOME)/.cargo/bin:$(PATH)
# pytest's arguments: make test T='-m "not e2e"'
T ?=

.PHONY: demo test check bench setup-demo setup-test

demo: setup-demo
	kdyno doctor
	kdyno run experiments/quickstart.toml --html demo-report.html

test: setup-test
	cargo test --workspace --quiet
	pytest $(T)

check: setup-test
	ruff format --check src tests tools
	ruff check src tests tools
	mypy
	cargo fmt --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	python tools/check-docs

bench: setup-demo
	python tools/bench

setup-demo:
	@tools/setup demo

setup-test:
	@tools/setup test
