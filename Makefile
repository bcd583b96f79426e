# Each command below sets up what it needs: a machine with Python 3.11 or newer, make and a package
# index is enough. The environment lives in .venv and is rebuilt when pyproject.toml changes.

PYTHON ?= python3
VENV ?= .venv
DATA ?=
ARGS ?=
RESULTS ?= benchmark-output
WORKERS ?= 2
SECONDS ?= 600
SEED ?= 0

RUN := $(VENV)/bin/python
STAMPS := $(VENV)/stamps
# The workers of the tests have a core each: one thread of BLAS and of ours, unless a test asks for more.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1
# Compiled files are kept: else every process that a test starts compiles the sources again.
KEPT := PYTHONDONTWRITEBYTECODE=

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-cluster test fuzz mutations lint format docs bench bench-full bench-papers release-check clean

help:
	@echo "make demo     train on bundled data: a model, a report and an accuracy line in demo-output/"
	@echo "make demo-cluster"
	@echo "              train on two worker processes with Dask, print accuracy, time and bytes moved"
	@echo "make test     run all tests and the examples of all docstrings"
	@echo "make fuzz     random configurations, changed model files, killed processes (SECONDS=600 SEED=0)"
	@echo "make mutations"
	@echo "              change numerical lines on purpose and count what the tests notice"
	@echo "make lint     check style (ruff) and types (mypy --strict)"
	@echo "make format   rewrite the files in the style that 'make lint' checks"
	@echo "make docs     build the documentation into docs/_build/html"
	@echo "make bench    the evidence, a quick part of it (20 minutes): bundled sets, with DATA=folder real tables too"
	@echo "make bench-full"
	@echo "              all of the evidence, days on two cores; ARGS='--methods table' takes a part"
	@echo "make bench-papers"
	@echo "              the studies of the papers; ARGS='--sets bld,hea' makes a short run of it"
	@echo "make release-check"
	@echo "              build sdist and wheel, check them, install them fresh with the oldest and the newest"
	@echo "              dependencies (on the newest Python that is here) and with each extra, and run the"
	@echo "              README's example"
	@echo "make setup    only build the environment"
	@echo "make clean    remove the environment and everything the commands wrote"
	@echo
	@echo "Variables: PYTHON (now $(PYTHON)), VENV (now $(VENV)), DATA (now '$(DATA)'),"
	@echo "           RESULTS (now $(RESULTS)), WORKERS of the tests (now $(WORKERS))"

# --- the environment ---------------------------------------------------------------------------

$(RUN):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; $(PYTHON) is older or missing. Use make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# `pip install --group` reads [dependency-groups]; it came with pip 25.1.
$(STAMPS)/pip: | $(RUN)
	$(RUN) -m pip install --quiet --upgrade 'pip>=25.1'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/package: pyproject.toml $(STAMPS)/pip
	$(RUN) -m pip install --quiet --editable '.[cli,files,plots]'
	@touch $@

$(STAMPS)/extra-%: pyproject.toml $(STAMPS)/package
	$(RUN) -m pip install --quiet --editable '.[$*]'
	@touch $@

$(STAMPS)/group-%: pyproject.toml $(STAMPS)/package
	$(RUN) -m pip install --quiet --group $*
	@touch $@

# Compiled loops, where numba has a wheel for this Python; without it the same numbers come slower.
$(STAMPS)/fast: pyproject.toml $(STAMPS)/package
	@$(RUN) -m pip install --quiet --only-binary numba,llvmlite --editable '.[fast]' \
		|| echo "numba does not install here: predictions are computed by SciPy, at a third of the speed."
	@touch $@

setup: $(STAMPS)/package

# --- the commands ------------------------------------------------------------------------------

demo: $(STAMPS)/package $(STAMPS)/fast
	$(VENV)/bin/lssvm demo demo-output

demo-cluster: $(STAMPS)/extra-dask
	$(ONE_THREAD) $(RUN) examples/demo_cluster.py

test: $(STAMPS)/group-test
	$(ONE_THREAD) $(KEPT) $(RUN) -m pytest -n $(WORKERS) --dist worksteal --doctest-modules tests src/lssvm

# Random configurations, changed model files and killed processes, for SECONDS in all.
fuzz: $(STAMPS)/group-test
	$(ONE_THREAD) $(RUN) -m tests.fuzz.configurations --seed $(SEED) --seconds $$(($(SECONDS) / 2))
	$(ONE_THREAD) $(RUN) -m tests.fuzz.model_files --seed $(SEED) --seconds $$(($(SECONDS) / 4))
	$(ONE_THREAD) $(RUN) -m tests.fuzz.kills --seed $(SEED) --seconds $$(($(SECONDS) / 4))

# Numerical lines changed on purpose: 95 of 100 have to be noticed.
mutations: $(STAMPS)/group-test
	$(ONE_THREAD) $(RUN) -m tests.fuzz.mutations

lint: $(STAMPS)/group-lint
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(STAMPS)/group-lint
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

docs: $(STAMPS)/group-docs
	$(ONE_THREAD) $(RUN) -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "The pages are in docs/_build/html: open index.html there."

# A study keeps what it has measured and goes on from there: stop it and start it again at will.
HAS_DATA = @test -n '$(DATA)' || { echo "Say where the data are: make $@ DATA=folder (see benchmarks/README.md)" >&2; exit 2; }
EVIDENCE ?= benchmarks/results/evidence.jsonl

bench: $(STAMPS)/group-bench
	@mkdir -p $(RESULTS)
	$(RUN) -m benchmarks.evidence run --quick --total 1140 $(if $(DATA),--data '$(DATA)') --out $(RESULTS)/evidence_quick.jsonl $(ARGS)
	$(RUN) -m benchmarks.evidence read $(RESULTS)/evidence_quick.jsonl > $(RESULTS)/evidence_quick.md
	@echo "What the records say is in $(RESULTS)/evidence_quick.md."

bench-full: $(STAMPS)/group-bench $(STAMPS)/group-peers
	$(HAS_DATA)
	$(RUN) -m benchmarks.evidence run --full --data '$(DATA)' --out $(EVIDENCE) $(ARGS)
	$(RUN) -m benchmarks.evidence report --records $(EVIDENCE)
	$(RUN) -m benchmarks.profile

bench-papers: $(STAMPS)/group-bench
	$(HAS_DATA)
	@mkdir -p $(RESULTS)
	$(RUN) -m benchmarks.dual_speed --out $(RESULTS)/dual_speed.json
	$(RUN) -m benchmarks.chapter3 --data '$(DATA)' --out $(RESULTS)/chapter3.jsonl $(ARGS)
	$(RUN) -m benchmarks.tables_chapter3 --results $(RESULTS)/chapter3.jsonl --out $(RESULTS)/chapter3.md
	$(RUN) -m benchmarks.fixed_size2010 --data '$(DATA)' --out $(RESULTS)/fixed_size2010.jsonl
	$(RUN) -m benchmarks.tables_2010 --results $(RESULTS)/fixed_size2010.jsonl --out $(RESULTS)/fixed_size2010.md
	$(RUN) -m benchmarks.prototypes_moc --data '$(DATA)' --tuned $(RESULTS)/fixed_size2010.jsonl --out $(RESULTS)/prototypes_moc.jsonl
	$(RUN) -m benchmarks.circulant2011 --data '$(DATA)' --out $(RESULTS)/circulant2011.jsonl
	$(RUN) -m benchmarks.tables_circulant2011 --results $(RESULTS)/circulant2011.jsonl --out $(RESULTS)/circulant2011.md
	$(RUN) -m benchmarks.greedy2007 --data '$(DATA)' --out $(RESULTS)/greedy2007.jsonl
	$(RUN) -m benchmarks.greedy2007 --out $(RESULTS)/greedy2007.jsonl --tables $(RESULTS)/greedy2007.md
	$(RUN) -m benchmarks.sparse2014 --data '$(DATA)' --out $(RESULTS)/sparse2014.jsonl
	$(RUN) -m benchmarks.tables_sparse2014 --results $(RESULTS)/sparse2014.jsonl --out $(RESULTS)/sparse2014.md
	$(RUN) -m benchmarks.figures_2007 --results $(RESULTS)/greedy2007.jsonl --out $(RESULTS)/figures1to3_2007.png
	$(RUN) -m benchmarks.figures_2014 --data '$(DATA)' --results $(RESULTS)/sparse2014.jsonl --out $(RESULTS)
	@echo "The tables and speed ratios are in $(RESULTS)."

# Nothing of the checkout is on the path of the fresh environments: what runs is what would be uploaded.
release-check: $(STAMPS)/group-release
	rm -rf dist .release
	$(RUN) -m build --outdir dist .
	$(RUN) -m twine check --strict dist/*
	@mkdir -p .release
	$(RUN) tests/release/readme_example.py README.md .release/example.py
	$(RUN) .ci/oldest.py > .release/oldest.txt
	touch .release/newest.txt
	$(PYTHON) -m venv .release/oldest
	"$$($(RUN) .ci/newest.py)" -m venv .release/newest
	for kind in oldest newest; do \
		.release/$$kind/bin/python -m pip install --quiet --constraint .release/$$kind.txt dist/*.whl || exit 1; \
		.release/$$kind/bin/python --version; \
		(cd .release && $$kind/bin/python -W error::ImportWarning example.py) || exit 1; \
	done
	$(PYTHON) -m venv .release/source
	.release/source/bin/python -m pip install --quiet dist/*.tar.gz
	.release/source/bin/python -c 'import lssvm; print("sdist installs:", lssvm.__version__)'
	for extra in $$($(RUN) tests/release/extras.py); do \
		$(PYTHON) -m venv --clear .release/extra || exit 1; \
		.release/extra/bin/python -m pip install --quiet "$$(echo dist/*.whl)[$$extra]" || exit 1; \
		(cd .release && extra/bin/python ../tests/release/extras.py $$extra) || exit 1; \
	done
	@echo "The wheel and the sdist in dist/ are ready."

clean:
	rm -rf .release dist $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis demo-output $(RESULTS) \
		docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst
