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
# Seeds of make sim and make sim-timed.
SEEDS       ?= 20000
TIMEDSEEDS  ?= 200
# Scenarios of make testbed, all when empty, and where the report goes.
SCENARIO    ?=
REPORTS     ?= bin/reports

.DEFAULT_GOAL := help
.PHONY: help setup build demo demo-short changes test race baseline fuzz-smoke bench golden lint fmt sim demo-changes sim-timed \
    sim-smoke mutants explore figures scale evaluation evaluation-check bench-peers bench-peers-smoke testbed testbed-ci testbed-check contention docker ci clean

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

# A pure package starts no goroutine (make lint holds it to that), so that there is
# nothing to race; their tests are the longest, ten times so under the detector.
PURE = allocator|allocator/ledger|gossip/wire|chaos/(bound|schedule|timed)|internal/(core|contention|drift|epoch)

race: ## every test under the race detector, but for the pure packages
	@scripts/check.sh race $(GO) test -race -shuffle=on $$($(GO) list ./... | grep -vE '^subak/($(PURE))$$')

baseline: ## the build that is compared with: its code is not in the shipped one
	@$(GO) vet -tags baseline ./cmd/node ./internal/core ./internal/node
	@scripts/check.sh baseline $(GO) test -tags baseline -run Baseline ./cmd/node ./internal/core ./internal/node

fuzz-smoke: ## each fuzz target FUZZTIME times (or e.g. FUZZTIME=60s)
	@scripts/fuzz.sh $(FUZZTIME)

bench: ## benchmarks: ns/op, allocs, ns/cell, bytes per row (figures, no verdict on time)
	@scripts/check.sh bench $(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) \
	    ./allocator/... ./enforce/... ./gossip/wire/... ./internal/core ./internal/node ./testbed/wan

bench-peers: ## ours beside other limiters and bare servers, as ratios: six minutes, a report
	@scripts/bench-peers.sh

bench-peers-smoke: ## the benchmark's own tests, and each of its measurements once
	@scripts/bench-peers.sh test

golden: ## golden hashes on amd64 v1, amd64 v3, 386, and arm64 (emulated where possible)
	@scripts/golden.sh

bin/sim: $(shell git ls-files '*.go' go.mod go.sum)
	@$(GO) build -trimpath -ldflags '-s -w' -o $@ ./chaos/sim

sim: bin/sim ## the fault campaign, messages in any order: SEEDS=n seeds over all modes
	@bin/sim --seeds $(SEEDS)

sim-timed: bin/sim ## the fault campaign with time and a network: TIMEDSEEDS=n seeds of whole nodes
	@bin/sim --adversary timed --seeds $(TIMEDSEEDS)

sim-smoke: bin/sim ## a slice of both campaigns, as in CI
	@bin/sim --seeds 100000 --time 75s
	@bin/sim --adversary timed --seeds 140 --time 150s

mutants: ## switch off each rule of the protocol in the simulator: all must be caught
	@$(GO) run ./chaos/mutants

explore: ## every interleaving of small worlds, some minutes for each
	@EXPLORE_WORLD=all scripts/check.sh explore $(GO) test ./allocator/ledger -run TestExploreLong -count=1 -v -timeout 0

figures: ## reaction, use and healing over 22 cities, simulated with whole nodes
	@$(GO) run ./chaos/figures

scale: ## bytes and reaction at 22 nodes x 1000 budgets and up to 1000 nodes: half an hour
	@$(GO) run ./chaos/scale

evaluation: build ## the evaluation's tables in docs/evaluation.md, written anew
	@scripts/evaluation.sh

evaluation-check: build ## the evaluation's tables are what the command prints
	@scripts/evaluation.sh --check

changes: build ## everything about a running cluster is changed under load: a minute
	@$(BIN) demo --changes

bin/testbed: $(shell git ls-files '*.go' '*.yaml' go.mod go.sum)
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ ./testbed/cmd

testbed: bin/testbed ## real processes over an emulated WAN, as root: every scenario, or SCENARIO=name; a report
	@bin/testbed run $(SCENARIO) --out $(REPORTS)/testbed

testbed-ci: bin/testbed ## the four scenarios that CI runs
	@bin/testbed run --ci --out $(REPORTS)/testbed-ci

testbed-check: bin/testbed ## what this machine lacks for the testbed
	@bin/testbed check

contention: bin/testbed ## the eight contention scenarios on real processes beside the simulator
	@bin/testbed run --group contention --out $(REPORTS)/contention

docker: build ## five PoPs in containers: up, cut, healed, killed, judged
	@scripts/docker-smoke.sh

$(GOLANGCI): internal/tools/go.mod
	@$(GO) build -modfile=internal/tools/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: $(GOLANGCI) ## gofmt, vet, import direction, clocks in pure packages
	@$(GOLANGCI) run ./... && echo "lint: ok"

fmt: ## format the tree
	@gofmt -w $$(git ls-files '*.go') && echo "fmt: ok"

ci: setup build lint test race bench-peers-smoke baseline golden fuzz-smoke sim-smoke mutants evaluation-check demo-short demo-changes testbed-ci docker ## what CI runs
	@scripts/check.sh bench-once $(GO) test -run '^$$' -bench . -benchtime 1x ./allocator/... ./enforce/... ./gossip/wire/... ./internal/core ./internal/node
	@echo "ci: ok"

demo-short: build ## the demo at a third of its length, plain output
	@scripts/demo.sh $(BIN) --short

demo-changes: build
	@scripts/demo.sh $(BIN) --changes

clean: ## remove what was built
	@rm -rf bin && echo "clean: ok"
