# Everything that a change must pass is `make check test`; .ci/run calls the same.
GO ?= go
BENCHTIME ?= 1x
LINT = $(GO) tool -modfile=tools/lint.mod golangci-lint

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /	/' | expand -t 14

# Runs a command beside one ZooKeeper that all its tests share; none is an error.
ZOOKEEPER = ELASTICRON_ZOOKEEPER_REQUIRED=1 $(GO) run ./internal/testbed/cmd/withzookeeper --
ADAPTERS = ./registry/etcd ./registry/zookeeper ./registry/polled/polledtest ./examples/adapter
BUBBLES = ./registry/memory ./registry/latch ./registry/polled ./core/simulation

.PHONY: test
test: build ## every test under -race, on real servers; the suite's case counts; both examples
	$(ZOOKEEPER) $(GO) test -race -timeout 20m $$($(GO) list ./... | grep -vE '/(registry/(memory|latch|etcd|zookeeper|polled|polled/polledtest)|examples/(adapter|quickstart|swap)|core/simulation)$$')
	$(MAKE) memory conformance defects quickstart swap

# The race detector of Go 1.26 itself crashes now and then (about once in forty
# runs of memory, once in ten of latch) where a time.AfterFunc starts goroutines
# inside a synctest bubble: a segmentation fault in the runtime, or a failed CHECK of
# its own. Only a run that ended in such a crash is repeated, at most twice.
CRASH = ^ThreadSanitizer: CHECK failed|^SIGSEGV: segmentation violation

.PHONY: memory
memory: ## the tests in synctest bubbles under -race: the memory adapter, the latch, the kit for polled stores
	@for package in $(BUBBLES); do for try in 1 2 3; do \
		$(GO) test -race -count=1 -timeout 10m -v $$package >memory.log 2>&1; status=$$?; \
		[ $$status -ne 0 ] && grep -qE '$(CRASH)' memory.log || break; \
		echo "the race detector crashed; once more:"; grep -E '$(CRASH)' memory.log; \
	done; grep -E '$(CASES)' memory.log; [ $$status -eq 0 ] || { tail -n 200 memory.log; exit $$status; }; done

CASES = conformance: [0-9]+ cases|served by|^(ok|FAIL|panic:)|--- FAIL

.PHONY: conformance
conformance: ## the other adapters' tests under -race: the suite's case counts, and which server they ran against
	@$(ZOOKEEPER) $(GO) test -race -count=1 -timeout 20m -v $(ADAPTERS) >conformance.log 2>&1; \
	status=$$?; grep -E '$(CASES)' conformance.log; \
	[ $$status -eq 0 ] || { grep -E '(rule|saw|contract): |Error: |^panic:' conformance.log | head -n 100; tail -n 200 conformance.log; }; exit $$status

.PHONY: defects
defects: ## what the bare ZooKeeper client gets wrong, without the race detector, which it offends
	$(ZOOKEEPER) $(GO) test -count=1 -timeout 5m -run 'TestDefectNewDataComesBeforeItsEvent' ./registry/zookeeper/internal/link

FIRST ?= 1
SEEDS ?= 1000

.PHONY: simulation
simulation: ## clusters in fake time, a seed each: FIRST=1 SEEDS=1000; then every failpoint and every mutant
	$(GO) test -count=1 -timeout 1h -run 'TestSimulation|TestSeedsReproduce' ./core/simulation -first $(FIRST) -seeds $(SEEDS)
	$(GO) test -count=1 -timeout 1h -tags failpoint -run 'TestFailpoints|TestMutants' ./core/simulation

DURATION ?= 2m
REGISTRY ?= etcd
SEED ?= 0
SERVERS ?= 1,3

.PHONY: chaos
chaos: ## worker processes under faults: DURATION=10m SEED=7 REGISTRY=etcd|zookeeper SERVERS=1,3
	$(GO) run ./internal/chaos -duration $(DURATION) -registry $(REGISTRY) -seed $(SEED) -servers $(SERVERS)

.PHONY: build
build: ## everything compiles
	$(GO) build ./...

.PHONY: quickstart
quickstart: ## the quickstart once on each registry, with few rounds, and its tests
	$(GO) run ./examples/quickstart -rounds 6
	$(GO) run ./examples/quickstart -rounds 6 -zookeeper
	$(ZOOKEEPER) $(GO) test -count=1 -timeout 10m ./examples/quickstart

.PHONY: swap
swap: ## one program and one file, on etcd and then on ZooKeeper
	$(ZOOKEEPER) $(GO) test -race -count=1 -timeout 10m -v -run . ./examples/swap

.PHONY: short
short: ## the tests that take seconds
	$(GO) test -short ./registry ./registry/memory ./registry/internal/... ./strategy ./internal/layout ./config ./core/...

.PHONY: check
check: format vet lint modules imports examples generated ## everything but the tests

.PHONY: format
format: ## gofmt has nothing to say
	@found=$$(gofmt -l .); if [ -n "$$found" ]; then echo "gofmt -w these files:"; echo "$$found"; exit 1; fi

.PHONY: vet
vet: ## go vet
	$(GO) vet ./...

.PHONY: lint
lint: ## golangci-lint, built from tools/lint.mod
	$(LINT) run ./...

.PHONY: modules
modules: ## go.mod is tidy and the modules are what go.sum says
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: imports
imports: ## the direction of imports (ARCHITECTURE.md, Layers)
	$(GO) test ./internal/imports

.PHONY: examples
examples: ## every example builds, on other systems too
	@mkdir -p bin
	$(GO) build -o bin/ ./examples/...
	GOOS=darwin $(GO) build -o /dev/null ./examples/quickstart
	GOOS=windows $(GO) build -o /dev/null ./examples/quickstart
	GOOS=darwin $(GO) build -o /dev/null ./examples/swap
	GOOS=windows $(GO) build -o /dev/null ./examples/swap

.PHONY: generated
generated: ## go generate changes nothing
	@before=$$(git status --porcelain; git diff | git hash-object --stdin); $(GO) generate ./...; \
	after=$$(git status --porcelain; git diff | git hash-object --stdin); \
	if [ "$$before" != "$$after" ]; then echo "go generate changed files: commit them"; git status --short; exit 1; fi

.PHONY: bench
bench: ## all benchmarks, once each unless BENCHTIME says otherwise
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

.PHONY: cover
cover: ## coverage of each function, over the tests of all packages
	$(GO) test -coverpkg=./registry/...,./strategy/...,./core/...,./config/...,./internal/layout/... -coverprofile=cover.out ./...
	$(GO) tool cover -func=cover.out | tail -n 1

.PHONY: clean
clean: ## what make made
	rm -rf bin cover.out *.log
