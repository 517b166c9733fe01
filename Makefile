# The two commands of a newcomer: `make demo` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STACK ?= tf1.15-py27-el7
DATA_NODES ?= 2
HOST ?= edge1
CDSW ?=
HADOOP ?=
# molecule, ansible-lint and ansible-playbook call each other by name.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help demo demo-down demo-shell test test-long lint unit molecule e2e structure docs lock release
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: ## boot a Hadoop cluster, install the platform, train a model (STACK=... DATA_NODES=... GPU_NODES=0 CDSW=1 KERBEROS=1 HADOOP=3.1.1)
	@PYTHONPATH=lib $(PYTHON) -m hadoop_dl_dev.demo.prerequisites
	@$(MAKE) --no-print-directory $(VENV)/.complete
	scripts/demo run --stack '$(STACK)' --data-nodes '$(DATA_NODES)' $(if $(CDSW),--cdsw $(filter-out 1,$(CDSW))) $(if $(GPU_NODES),--gpu-nodes $(GPU_NODES)) $(if $(KERBEROS),--kerberos) $(if $(HADOOP),--hadoop $(HADOOP))

demo-down: $(VENV)/.complete ## remove everything that make demo made
	scripts/demo down

demo-shell: $(VENV)/.complete ## open a shell on a node of the demo (HOST=data1)
	scripts/demo shell '$(HOST)'

test: $(VENV)/.complete ## every check: lint, unit, molecule, e2e
	scripts/check

test-long: $(VENV)/.complete ## slow tests: every stack, every Hadoop, faults (docs/develop/testing.md)
	scripts/check long $(ARGS)

lint unit molecule e2e: $(VENV)/.complete
	scripts/check $@ $(ARGS)

structure: $(VENV)/.complete ## layers and circles of imports
	scripts/_run hadoop_dl_dev.structure

docs: $(VENV)/.complete ## the documents as a site, in .cache/site: open index.html
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

release: $(VENV)/.complete ## the archive, the Ansible collection and the documents of this commit, with checksums, in .cache/release
	@scripts/_run hadoop_dl_dev.release $(ARGS)

lint: ## formats, types, Python 2.7 on hosts, ansible-lint, links of the documents
unit: ## tests that need no host
molecule: ## one scenario for each role (ARGS='--scenario cuda' runs one)
e2e: ## the demo cluster for both stacks, with faults (ARGS='--stack tf1.15-py27-el7' runs one)

$(VENV)/.complete: requirements.lock
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 10) <= v[:2] <= (3, 12) else "Python 3.10 to 3.12 is required, but %s is %d.%d. Name another one: make PYTHON=/path/to/python3.11" % (sys.executable, v[0], v[1]))'
	scripts/_venv $(PYTHON) $(VENV)
	@touch $@

.venv: $(VENV)/.complete

lock: $(VENV)/.complete ## write requirements.lock from requirements.in
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-annotate --output-file requirements.lock requirements.in
