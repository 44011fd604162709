# The few verbs of the harness. Every one sets up what it needs; nothing but Python 3.10+ and make is asked for.

PYTHON ?= python3
# Where pip finds a CPU build of torch, if a plain install would fetch one for GPUs (see pytorch.org, "Get started").
TORCH_INDEX ?=
SUBMISSION ?= tests/samples/normalised_residual
JSON ?= results.json
SUBMISSIONS ?=
OUT ?= out
ARGS ?=

VENV := .venv
RUN := $(VENV)/bin/python

.PHONY: grade batch test lint audit mutate bench gradescope handout record clean

grade: $(VENV)/ready ## grade one submission, a folder or a zip: SUBMISSION=… JSON=…
	$(RUN) -m grader grade "$(SUBMISSION)" --json "$(JSON)" $(ARGS)

batch: $(VENV)/ready ## grade a class, as the LMS gives it: SUBMISSIONS=… OUT=…
	$(if $(SUBMISSIONS),,$(error SUBMISSIONS must be a folder or a zip, got nothing))
	$(RUN) -m grader batch "$(SUBMISSIONS)" --out "$(OUT)" $(ARGS)

test: $(VENV)/ready ## test the harness: ARGS="-k loader" for some of it
	$(RUN) -m pytest -n auto --dist worksteal $(ARGS)

lint: $(VENV)/ready ## style, types
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy

audit: $(VENV)/ready ## grade the grader: every known right and wrong submission, all of them twice
	$(RUN) -m grader audit $(ARGS)

mutate: $(VENV)/ready ## let cosmic-ray mutate the reference; every survivor must be explained
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[mutate]"
	$(RUN) -m grader mutate $(ARGS)

bench: $(VENV)/ready ## what grading costs beside the student's own code
	$(RUN) -m tests.bench.grading $(ARGS)
	$(RUN) -m tests.bench.batch

gradescope: $(VENV)/ready ## build dist/autograder.zip for Gradescope; the audit comes first, some minutes
	$(RUN) -m grader build gradescope $(ARGS)

handout: $(VENV)/ready ## build dist/hw3-handout.zip for students, and the folder; the audit comes first, some minutes
	$(RUN) -m grader build handout $(ARGS)
	rm -rf dist/hw3-handout
	$(RUN) -m zipfile -e dist/hw3-handout.zip dist

record: $(VENV)/ready ## draw the cases again, of the families in ARGS, after they have changed
	$(RUN) -m grader record $(ARGS)

clean: ## remove everything that was built
	rm -rf $(VENV) dist build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis results.json

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) torch
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[batch,dev]"
	touch $@
