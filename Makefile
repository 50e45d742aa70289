# `make demo` runs the main job, `make test` passes all tests; each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
TESTS ?= tests

.PHONY: setup demo desk test faults mutants fuzz fuzz-guided check bench docs clean

setup: $(VENV)/.installed $(VENV)/.sandbox
	@command -v bwrap >/dev/null || echo "understudy cohort synthesize and understudy desk run code in a sandbox, which needs Linux and: sudo apt-get install bubblewrap libseccomp2"

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Understudy needs Python 3.11 or newer; try: make PYTHON=python3.11"; exit 5; }
	@echo "Setting up $(VENV) (about a minute the first time)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	@$(PIP) --editable '.[sandbox,keystrokes,desk]'
	@touch $@

$(VENV)/.tools: $(VENV)/.created pyproject.toml constraints.txt
	@$(PIP) pip
	@$(PIP) --editable '.[all]' --group test --group lint --group docs
	@touch $@ $(VENV)/.installed

# Debian's browser, for the tests that look at pages; without root they are skipped and say so.
$(VENV)/.browser: $(VENV)/.created
	@.ci/browser
	@touch $@

# Bubblewrap, for scripts that somebody else wrote; without root it is left to the user, and `setup` says how.
$(VENV)/.sandbox: $(VENV)/.created
	@.ci/sandbox
	@touch $@

# PostgreSQL's programs, for the desk's tests; without root the tests run on SQLite only and say so.
$(VENV)/.postgres: $(VENV)/.created
	@.ci/postgres
	@touch $@

demo: setup
	@rm -rf demo && mkdir demo
	@$(BIN)/understudy simulate demo/simulated-classroom.csv
	@$(BIN)/understudy release demo/simulated-classroom.csv -o demo/bundle --group school --public-actions \
	  --title "A simulated classroom"

# A validation desk to look at: simulated learners, five people, requests in every state.
desk: setup
	@test -f desk-demo/sign-ins.txt || { rm -rf desk-demo; $(BIN)/understudy desk demonstrate desk-demo > /dev/null; }
	@echo "Sign in at http://127.0.0.1:8765 as one of these (role, e-mail, password):"
	@cat desk-demo/sign-ins.txt
	@$(BIN)/understudy desk serve --desk desk-demo

test: $(VENV)/.tools $(VENV)/.browser $(VENV)/.sandbox $(VENV)/.postgres
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# The desk's worker is killed at a hundred points instead of ten.
faults: $(VENV)/.tools $(VENV)/.postgres
	@UNDERSTUDY_KILL_POINTS=100 $(BIN)/python -m pytest tests/desk/worker/test_faults.py

# Each of some hundred small changes that break a guarantee has to be noticed by a test; make mutants ONLY=cohorts
# takes those with this word. The list is tests/privacy/mutants.toml.
mutants: $(VENV)/.tools
	@$(BIN)/python -m tests.privacy.mutants --only '$(ONLY)'

# A million broken files, a share for every reader; a run that was stopped goes on, and make fuzz N=2000000 adds to it.
# What goes wrong is kept in out/fuzz.
fuzz: $(VENV)/.tools
	@$(BIN)/python -m tests.fuzz.run --inputs $(or $(N),1000000)

# One reader, guided by what its code does: make fuzz-guided READER=log N=100000. atheris has a folder of its own.
fuzz-guided: $(VENV)/.tools
	@test -d $(VENV)/atheris || $(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(VENV)/atheris \
	  'atheris>=3' || echo "atheris does not install here"
	@PYTHONPATH=$(VENV)/atheris $(BIN)/python -m tests.fuzz.guided $(or $(READER),log) --inputs $(or $(N),100000)

check: $(VENV)/.tools
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# What became slower since the last accepted run (benchmarks/accepted.json), and how we compare with others, whose
# packages go into environments of their own; make bench ACCEPT=1 accepts this run, make bench ONLY="fits lea" is a part.
bench: $(VENV)/.tools
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.run \
	  $(if $(ACCEPT),--accept) $(if $(ONLY),--only $(ONLY))

# The site of the documentation, without the network; what is made from the code is rendered first.
docs: $(VENV)/.tools
	@$(BIN)/python -m reproductions render
	@$(BIN)/python docs/build.py
	@$(BIN)/python -m sphinx -q -n -W --keep-going -b html docs docs/_build/html
	@echo "The site: docs/_build/html/index.html"

clean:
	rm -rf $(VENV) demo desk-demo out docs/_build
