# make demo, make test: everything a fresh machine needs (Python and make), then the thing itself.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Hundreds of processes are started by the tests: bytecode is written once, for all of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-pure test-slow test-lowest test-newest mutants fuzz fuzz-certificates lint format docs screenshots bench-read bench-kernels bench-startup \
	bench-threads bench-small bench-solvers bench-certify bench-peers bench-paper bench-scale bench bench-compare clean

# Peers that some tests compare with; without them these tests are skipped. Programs are installed
# where that can be done without asking: by root on Debian, as in a container.
TEST_PEERS    := liblinear-official libsvm-official
PEER_PROGRAMS := libsvm-tools liblinear-tools

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[test,plot]' $(TEST_PEERS) || \
		{ $(PIP) -e '.[test,plot]' && echo "no $(TEST_PEERS): their tests are skipped"; }
	@if command -v svm-train >/dev/null && command -v liblinear-train >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing $(PEER_PROGRAMS), which tests compare with"; \
		{ apt-get -qq update && apt-get -qq install --yes $(PEER_PROGRAMS); } >/dev/null 2>&1 || \
			echo "they cannot be installed: their tests are skipped"; \
	else echo "no svm-train, liblinear-train (Debian: $(PEER_PROGRAMS)): their tests are skipped"; fi
	touch $@

$(VENV)/.ready-demo: pyproject.toml
	@echo "making the environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e '.[sklearn]'
	@touch $@

$(VENV)/.ready-bench: $(READY)
	$(PIP) -e '.[bench]'
	touch $@

# real data, a linear and an RBF machine, in build/demo
demo: $(VENV)/.ready-demo
	@$(BIN)/python -m bench.demo

# Reading the test files that have no pure test would take longer than half of the pure ones.
PURE_TESTS = $(shell grep -l 'mark.pure' tests/test_*.py)

# one core each
test: $(READY)
	$(MAKE) -j 2 lint test-pure
	$(BIN)/python -m pytest -n 2 --dist loadfile --durations=20 -rs

# compiled loops as plain Python, which coverage can follow
test-pure: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -m pytest -m pure $(PURE_TESTS)
	$(BIN)/python -m coverage report --include='nesvm_jit/kernels/*,nesvm_jit/matrix/*' --fail-under=95

# The tests with the lowest versions that are promised, on the lowest Python; and with the newest
# ones that there are, released or not, on every Python that is found, free-threaded ones too.
LOWEST_PYTHON  ?= python3.10
NEWEST_PYTHONS ?= python3.10 python3.11 python3.12 python3.13 python3.14 python3.14t
ENVIRONMENTS   := build/environments

test-lowest:
	@command -v $(LOWEST_PYTHON) >/dev/null || { echo "$(LOWEST_PYTHON) is not installed"; exit 1; }
	$(LOWEST_PYTHON) -m venv $(ENVIRONMENTS)/lowest
	$(ENVIRONMENTS)/lowest/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints/lowest.txt -e '.[dask,plot]' -r constraints/tests.txt
	$(ENVIRONMENTS)/lowest/bin/python -m pytest -n 2 --dist loadfile -rs $(TESTS)

test-newest:
	@found=; for python in $(NEWEST_PYTHONS); do \
		command -v $$python >/dev/null && $$python -c '' 2>/dev/null || \
			{ echo "$$python is not installed: left out"; continue; }; \
		found=yes; echo "$$python"; \
		$$python -m venv $(ENVIRONMENTS)/$$python && \
		$(ENVIRONMENTS)/$$python/bin/python -m pip install --quiet --disable-pip-version-check \
			--upgrade -e '.[dask,plot]' -r constraints/tests.txt && \
		$(ENVIRONMENTS)/$$python/bin/python -m pytest -n 2 --dist loadfile -rs $(TESTS) || exit 1; \
	done; test -n "$$found"

test-slow: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow --durations=20 -rs

# a million mutated files, and every truncation of real ones
fuzz: $(READY)
	$(BIN)/python -m tests.fuzz_reader --cases 1000000

fuzz-certificates: $(READY)
	$(BIN)/python -m tests.fuzz_certificates --cases 20000

# small faults put into the package one at a time: do the tests notice? SEED=1 draws others
SEED ?= 0
mutants: $(READY)
	$(BIN)/python -m tests.mutants --seed $(SEED) $(ARGS)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# run the commands shown in README.md and docs/, write their output into the pages, build the site
docs: $(READY)
	$(BIN)/python -m bench.sessions
	$(PIP) -e '.[docs]'
	$(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

# the pictures of docs/pictures.md; Chromium by its name or in CHROMIUM
screenshots: $(READY)
	$(BIN)/python -m bench.screenshots

bench-read bench-kernels bench-startup bench-solvers bench-threads bench-small bench-certify: bench-%: $(VENV)/.ready-bench
	$(BIN)/python -m bench.$* $(ARGS)

# 20 million rows, 20 GB of disk and half an hour; ARGS=--quick for a minute
bench-scale: $(VENV)/.ready-bench
	$(PIP) -e '.[dask]'
	$(BIN)/python -m bench.scale $(ARGS)

# one by one: a peer that cannot be installed here is skipped
PEERS := liblinear-official snapml skglm rehline libsvm-official scikit-learn-intelex thundersvm-cpu

bench-peers bench-paper: $(VENV)/.ready-bench
	$(PIP) -e '.[plot]' || echo "no matplotlib: no plots"
	for peer in $(PEERS); do $(PIP) $$peer || echo "$$peer cannot be installed: skipped"; done
	$(BIN)/python -m bench.$(@:bench-%=%) $(ARGS)

# a few minutes, a page in the terminal
bench: $(VENV)/.ready-bench
	for peer in liblinear-official libsvm-official; do $(PIP) $$peer || echo "no $$peer"; done
	@$(BIN)/python -m bench

# alternating runs of the commit BASE and of this tree; fails where this tree is LIMIT times slower
BASE  ?= HEAD
LIMIT ?= 1.5
bench-compare: $(VENV)/.ready-bench
	@$(BIN)/python -m bench.compare --base $(BASE) --limit $(LIMIT) $(ARGS)

clean:
	rm -rf $(VENV) build *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
