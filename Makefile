# dagbridge. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# A binary without cgo runs on any Linux of its architecture.
BUILD = CGO_ENABLED=0 $(GO) build -trimpath
# Unit tests need nothing but Go; the integration tests start a real Slurm and a real Kubernetes. The race detector is for what
# has goroutines in the test's own process: the command line's tests run the program, which it would slow down many times over.
RACE = ./clients/go/... ./proto/... ./server/... ./translators/...
UNIT = $(RACE) ./cmd/...
# What starts a whole Airflow has the machine to itself: make test-airflow.
INTEGRATION = $(filter-out %/integration/airflow,$(shell $(GO) list ./integration/...))
TIMEOUT ?= 20m

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dagbridge
BUF_VERSION := 1.75.0
BUF := $(shell command -v buf || echo $(CACHE)/buf-$(BUF_VERSION)/bin/buf)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/dagbridge
	$(BUILD) -o bin/ ./cmd/dagbridge

.PHONY: demo
demo: build ## run a small pipeline through an embedded gateway on this machine
	@bin/dagbridge demo

.PHONY: demo-kubernetes
demo-kubernetes: build ## run the same pipeline on a real Kubernetes that this starts (root; its first build takes ten minutes)
	@integration/kubernetes/demo.sh "$(CURDIR)/bin/dagbridge"

.PHONY: test
test: vet test-python ## vet, format, the Python package, unit tests with the race detector, then those against a real Slurm, Kubernetes and Airflow
	$(GO) test -race -timeout $(TIMEOUT) $(RACE)
	$(GO) test -timeout $(TIMEOUT) ./cmd/...
	@# Before the time of the tests begins: a Kubernetes takes ten minutes to build, once.
	@integration/kubernetes/testcluster/build.sh >/dev/null
	@integration/kubernetes/programs/build.sh helm >/dev/null
	@# -count 1: these build and run the program, which a cached result does not see. -parallel 8: they mostly wait.
	$(GO) test -timeout $(TIMEOUT) -count 1 -parallel 8 $(INTEGRATION)
	$(MAKE) --no-print-directory test-airflow

.PHONY: test-unit
test-unit: vet ## the unit tests alone: nothing but Go is needed
	$(GO) test -timeout $(TIMEOUT) $(UNIT)

# The environments are made when they are absent: environment.sh prints where. The four mostly wait, and so wait together.
.PHONY: test-python
test-python: lint-python ## the Python client against a gateway of this machine, its wheel, the provider in both Airflows, KFP's steps
	@$(MAKE) --no-print-directory -j4 --output-sync=target test-python-client test-python-3.3 test-python-2.11 test-python-kfp

.PHONY: test-python-client test-python-3.3 test-python-2.11 test-python-kfp
test-python-client:
	cd clients/python && "$$(./environment.sh dev)/bin/pytest" -q tests/client tests/package
test-python-3.3 test-python-2.11: test-python-%:
	cd clients/python && "$$(./environment.sh airflow-$*)/bin/pytest" -q tests/airflow
test-python-kfp:
	cd clients/python && "$$(./environment.sh kfp)/bin/pytest" -q tests/kfp

.PHONY: test-airflow
test-airflow: ## a real Airflow, a gateway and a real Slurm, all of them killed (five minutes; with DAGBRIDGE_LONG=1 both Airflows)
	$(GO) test -timeout 40m -count 1 ./integration/airflow

.PHONY: lint-python
lint-python: # mypy needs Airflow to know its types
	cd clients/python && dev=$$(./environment.sh dev) && "$$dev/bin/ruff" check && "$$dev/bin/ruff" format --check
	cd clients/python && "$$(./environment.sh airflow-3.3)/bin/mypy"

.PHONY: pins
pins: ## pin the newest of what the Python tests need (clients/python/requirements/*.in says what)
	cd clients/python/requirements && uv="$$(../environment.sh dev)/bin/uv" && for wanted in *.in; do \
		"$$uv" pip compile --quiet --upgrade --universal --python-version 3.10 --no-annotate "$$wanted" -o "$${wanted%.in}.txt"; \
	done

.PHONY: test-all
test-all: verify test ## what test does, then the long runs: every release of Slurm, more histories, more kills, fuzzing
	$(GO) test -timeout 6h -count 1 -run TestModel ./server/engine -rapid.checks=100000
	DAGBRIDGE_LONG=1 $(MAKE) test-python
	cd clients/python && "$$(./environment.sh oldest)/bin/pytest" -q tests/client
	DAGBRIDGE_LONG=1 $(GO) test -timeout 3h -count 1 -parallel 8 $(INTEGRATION)
	DAGBRIDGE_LONG=1 $(MAKE) --no-print-directory test-airflow
	@for package in $$(grep -rl '^func Fuzz' --include '*_test.go' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -h '^func Fuzz' $$package/*_test.go | sed 's/func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime 30s $$package; \
		done; \
	done

.PHONY: bench
bench: ## the gateway beside what it stands on, and what waiting costs in Python (an hour; needs what the tests against Slurm need)
	cd clients/python && PYTHONPATH=tests "$$(./environment.sh dev)/bin/python" bench/waits.py
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 1h ./integration/bench

.PHONY: pictures
pictures: ## what the Airflow examples look like, made anew (chromium, and what the tests against Airflow and Slurm need)
	integration/examples/airflow/pictures.sh

.PHONY: vet
vet:
	@unformatted=$$(gofmt -l clients cmd integration proto server translators); \
	if [ -n "$$unformatted" ]; then printf 'gofmt -w is needed on:\n%s\n' "$$unformatted" >&2; exit 1; fi
	$(GO) vet ./...

.PHONY: lint
lint: vet lint-python ## vet and format, ruff and mypy; golangci-lint and buf lint too, where they are installed
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else echo "golangci-lint is not installed: only vet ran"; fi
	@if [ -x "$(BUF)" ]; then "$(BUF)" lint; else echo "buf is not installed: make generate installs it"; fi

.PHONY: generate
generate: $(BUF) ## write the generated code and pages anew
	"$(BUF)" lint
	"$(BUF)" generate
	$(GO) generate ./...
	"$$(clients/python/environment.sh kfp)/bin/python" -m dagbridge.kfp.components

.PHONY: verify
verify: $(BUF) ## fail when generated code or pages are stale
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	"$(BUF)" lint && "$(BUF)" generate -o "$$fresh" && diff -r "$$fresh/proto/gen" proto/gen \
		|| { echo "proto/gen is stale: make generate" >&2; exit 1; }
	$(GO) test -run TestReference ./server/config

.PHONY: tidy
tidy: ## tidy go.mod and go.sum
	$(GO) mod tidy

# buf is one binary; where it is not installed it comes from its Python package, into a folder of its own.
$(CACHE)/buf-$(BUF_VERSION)/bin/buf:
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target $(CACHE)/buf-$(BUF_VERSION) buf-bin==$(BUF_VERSION)
