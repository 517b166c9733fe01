# The two commands of a newcomer: `make demo` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help lock
help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

$(VENV)/.complete: requirements.lock
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 10) <= v[:2] <= (3, 12) else "Python 3.10 to 3.12 is needed, and %s is %d.%d. Say which one to use: make PYTHON=/path/to/python3.11" % (sys.executable, v[0], v[1]))'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	touch $@

.venv: $(VENV)/.complete

lock: ## write requirements.lock from requirements.in
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-annotate --output-file requirements.lock requirements.in
