# Subak. `make help` lists the targets.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
GO          ?= go
BIN         := bin/subak
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS     := -s -w -X main.version=$(VERSION)
GOLANGCI    := bin/golangci-lint
# A count, not a time: at the end of a time the fuzzer may report its own deadline.
FUZZTIME    ?= 20000x
BENCHTIME   ?= 300ms

.DEFAULT_GOAL := help
.PHONY: help setup build demo demo-short test race fuzz-smoke bench golden lint fmt ci clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what a test needs (root on Debian; elsewhere says what is missing)
	@scripts/setup.sh

build: ## build bin/subak, static
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/node
	@echo "build: ok, $$(du -h $(BIN) | cut -f1) $(BIN)"

demo: build ## five nodes, one origin, a flood: about a minute, ends with the verdict
	@$(BIN) demo

test: setup ## every test
	@scripts/check.sh test $(GO) test -shuffle=on ./...

race: ## every test under the race detector
	@scripts/check.sh race $(GO) test -race -shuffle=on ./...

fuzz-smoke: ## each fuzz target FUZZTIME times (or e.g. FUZZTIME=60s)
	@scripts/fuzz.sh $(FUZZTIME)

bench: ## benchmarks: ns/op, allocs, ns/cell, bytes per row (figures, no verdict on time)
	@scripts/check.sh bench $(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) \
	    ./allocator/... ./enforce/... ./gossip/wire/... ./internal/core ./internal/node

golden: ## golden hashes on amd64 v1, amd64 v3, 386, and arm64 (emulated where possible)
	@scripts/golden.sh

$(GOLANGCI): internal/tools/go.mod
	@$(GO) build -modfile=internal/tools/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: $(GOLANGCI) ## gofmt, vet, import direction, clocks in pure packages
	@$(GOLANGCI) run ./... && echo "lint: ok"

fmt: ## format the tree
	@gofmt -w $$(git ls-files '*.go') && echo "fmt: ok"

ci: setup build lint test race golden fuzz-smoke demo-short ## what CI runs
	@scripts/check.sh bench-once $(GO) test -run '^$$' -bench . -benchtime 1x ./allocator/... ./enforce/... ./gossip/wire/... ./internal/core ./internal/node
	@echo "ci: ok"

demo-short: build ## the demo at a third of its length, plain output
	@scripts/demo.sh $(BIN)

clean: ## remove what was built
	@rm -rf bin && echo "clean: ok"
