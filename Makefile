PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASELINE := verification/baseline.csv
EXTRAS := dev,docs

.PHONY: verify findings test lint docs wheel notebooks soundness rocq clean

verify: $(VENV)/.installed
	$(BIN)/fltheory verify --json out/verify.json --html out/report.html --baseline $(BASELINE)

findings: verify
	$(BIN)/python docs/scripts/findings.py --check --verdicts out/verify.json

# Only plugins that the tests use: pytest would look for assertions to rewrite in the whole package of
# each plugin that it finds by itself, and ours is in `fltheory`.
test soundness: export PYTEST_DISABLE_PLUGIN_AUTOLOAD := 1
test soundness: export PYTEST_PLUGINS := xdist.plugin,_hypothesis_pytestplugin,fltheory.testing.pytest_plugin
test: $(VENV)/.installed
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal $(if $(VERDICTS),--verdicts=$(VERDICTS))

lint: $(VENV)/.installed
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

wheel: $(VENV)/.installed
	rm -rf out/dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir out/dist .

soundness: $(VENV)/.installed
	$(BIN)/python -m pytest -m "soundness or hypothesis" --hypothesis-profile soundness --numprocesses auto --dist worksteal
	$(BIN)/python benchmarks/soundness.py --seconds 300
	$(BIN)/python benchmarks/forged_certificates.py --count 25000

rocq: $(VENV)/.installed
	$(BIN)/python rocq/check.py $(PROOF)

notebooks: $(VENV)/.installed
	$(BIN)/python notebooks/run.py

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("fltheory needs Python 3.11 or later, got " + sys.version.split()[0] + ": try make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	touch $@

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
