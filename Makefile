# Everything that a change must pass is `make check test`; .ci/run calls the same.
export GO ?= go
export MAKE
# go vet has a step of its own; go test would look at every module anew, once with the race detector and once without.
# Nobody debugs what is built here: what debuggers read is an eighth of the compiler's work.
export GOFLAGS := $(strip $(GOFLAGS) -vet=off -gcflags=all=-dwarf=false)
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
BENCHTIME ?= 1x

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /	/' | expand -t 14

# step makes targets, says what is being made and since when, and how long it took;
# racetest is go test -race, repeated after crashes of the race detector's own.
STEP = bin/step
RACETEST = bin/racetest
bin/step bin/racetest: bin/%: go.mod $(wildcard tools/*/*.go)
	@command -v $(GO) >/dev/null || { tools/setup; exit 1; }
	@mkdir -p bin
	$(GO) build -o $@ ./tools/$*

# The etcd of the tests is a process of its own: under their race detector, both take twice as much CPU time.
# go build does nothing where nothing has changed.
MEMBER = bin/etcdmember
.PHONY: $(MEMBER)
$(MEMBER):
	@mkdir -p bin
	$(GO) build -o $@ ./internal/testbed/cmd/etcdmember

# The table of what took how long comes once, after the last goal.
GOALS = $(filter check test,$(MAKECMDGOALS))
FRESH = $(if $(filter $@,$(firstword $(GOALS))),-fresh)
TABLE = $(if $(filter $@,$(lastword $(GOALS))),-table)

# Runs a command beside one ZooKeeper that all its tests share; none is an error.
REQUIRED = ELASTICRON_ZOOKEEPER_REQUIRED=1 ELASTICRON_ETCD_REQUIRED=1 ELASTICRON_POSTGRES_REQUIRED=1 \
	ELASTICRON_ETCD_MEMBER=$(CURDIR)/$(MEMBER)
ZOOKEEPER = $(REQUIRED) $(GO) run ./internal/testbed/cmd/withzookeeper --
VERSIONS = ^TestConformanceOf
BUBBLES = ./registry/memory ./registry/latch ./registry/polled ./core/simulation

.PHONY: test
test: $(STEP) ## every test under -race, on real servers; the suite's case counts; both examples
	@$(STEP) $(FRESH) setup
	@# The others leave no time for what only computes.
	@tools/with-engine sh -c '$(STEP) build others && $(STEP) $(TABLE) -beside computing waiting conformance chaos strikes'

.PHONY: setup
setup: ## what the tests need: root on Debian gets it installed, others get a list of what is missing
	@tools/setup

.PHONY: image
image: ## an image of ZooKeeper for the Docker engine; its name in bin/image
	.ci/zookeeper-image >bin/image

.PHONY: others
others: $(RACETEST) $(MEMBER) ## the tests of the packages that no other target tests
	@# The tests of bench/ mostly wait, so they run at the same time, and the others three packages at a time.
	tools/side-by-side "$(MAKE) beside" \
		"$(ZOOKEEPER) $(RACETEST) -timeout 20m -p 3 -- $$($(GO) list ./... | grep -vE '/(registry/(memory|latch|etcd|zookeeper|postgres|polled|polled/polledtest)|examples/(adapter|quickstart|swap)|core/(simulation|internal/(sharding|schedule))|internal/layout/ledger)$$' | tr '\n' ' ')"

.PHONY: computing
computing: computed simulation ## what only computes: it gets the time that the others leave

COMPUTED = ./core/internal/sharding ./core/internal/schedule ./internal/layout/ledger
.PHONY: computed
computed: $(RACETEST) ## the maxima of sharding, and schedules and ledgers of all kinds
	@# They take six to ten times as long under the race detector, which has nothing to find there: it sees a part of them.
	$(GO) test -timeout 80m $(COMPUTED)
	$(RACETEST) -timeout 80m -short -- $(COMPUTED)

.PHONY: waiting
waiting: $(RACETEST) ## the tests in bubbles, both examples and the bare client's defects at the same time: they mostly wait
	tools/side-by-side "$(MAKE) memory" "$(MAKE) quickstart swap" "$(MAKE) defects"

.PHONY: beside
beside: $(RACETEST) ## the module that measures: its tests, every scenario at a hundredth of its size
	cd bench && ELASTICRON_ZOOKEEPER_REQUIRED=1 ../$(RACETEST) -timeout 10m -parallel 6 -- ./...

.PHONY: memory
memory: $(RACETEST) ## the tests in synctest bubbles: the memory adapter, the latch, the kit for polled stores, the simulation
	$(RACETEST) -log memory.log -count=1 -timeout 10m -v -- $(BUBBLES)

SUITE = -count=1 -timeout 20m -p 1 -v
.PHONY: conformance
conformance: $(RACETEST) $(MEMBER) ## the other adapters' tests: the suite's case counts, and which server they ran against
	@# SQLite in Go is ten times slower under the race detector. The suite on other versions of a server goes without it
	@# too: the adapters' code is the same, and runs under it on the newest version.
	@# One suite keeps more than a core busy, so only two run at a time. With five at a time sessions of two seconds were
	@# lost for the load alone, and all together took a minute or two less.
	tools/side-by-side "$(ZOOKEEPER) $(RACETEST) -log zookeeper.log $(SUITE) -skip '$(VERSIONS)' -- ./registry/zookeeper && \
		$(ZOOKEEPER) $(RACETEST) -log versions.log -plain $(SUITE) -run '$(VERSIONS)' -- ./registry/zookeeper ./registry/etcd" \
		"$(REQUIRED) $(RACETEST) -log conformance.log $(SUITE) -skip '$(VERSIONS)' -- \
			./registry/etcd ./registry/postgres ./registry/polled/polledtest && \
		$(GO) test -count=1 -timeout 20m ./examples/adapter"

.PHONY: defects
defects: ## what the bare ZooKeeper client gets wrong, without the race detector, which it offends
	$(ZOOKEEPER) $(GO) test -count=1 -timeout 5m -run 'TestDefectNewDataComesBeforeItsEvent' ./registry/zookeeper/internal/link

SEEDS = 2000
# A seed runs on one processor; so does each half of what has seeds.
HALF = $(shell expr $(SEEDS) / 2)
SEEDED = $(GO) test -C core/simulation -count=1 -timeout 80m
.PHONY: simulation
simulation: $(RACETEST) ## the engine under faults that a seed decides: SEEDS of them, 100 under -race, every failpoint, every mutant
	tools/side-by-side "$(SEEDED) -run 'TestSimulation|TestOffsets' -seeds $(HALF) && \
		$(SEEDED) -run TestSeedsReproduce && \
		$(SEEDED) -tags failpoint -run TestFailpoints" \
		"$(SEEDED) -run TestSimulation -first $$(($(HALF) + 1)) -seeds $$(($(SEEDS) - $(HALF))) && \
		$(SEEDED) -tags failpoint -run TestMutants -seeds $(SEEDS) && \
		$(RACETEST) -count=1 -timeout 80m -run TestSimulation -- ./core/simulation -seeds 100"

DURATION = 2m
REGISTRY = etcd,zookeeper
SEED =
SERVERS =
CHAOS = ./internal/chaos -registry $(REGISTRY) $(if $(SEED),-seed $(SEED))
.PHONY: chaos
chaos: $(STEP) ## processes and faults on real servers: DURATION on each REGISTRY, at the same time; SEED repeats a run, SERVERS=1,3
	tools/with-engine $(GO) run $(CHAOS) -duration $(DURATION) $(if $(SERVERS),-servers $(SERVERS))

.PHONY: strikes
strikes: $(STEP) ## a worker killed, paused and cut off at every failpoint of the engine, on each REGISTRY; SEED repeats a run
	tools/with-engine $(GO) run -tags failpoint $(CHAOS) -strikes -servers 1

# go build links each program too, which takes most of the time; a list of what is exported compiles, and links nothing.
COMPILE = $(GO) list -export

.PHONY: build
build: ## everything compiles
	$(COMPILE) ./... >/dev/null
	cd bench && $(COMPILE) ./... >/dev/null

.PHONY: quickstart
quickstart: ## the quickstart plays on each registry, with few rounds
	$(ZOOKEEPER) $(GO) test -count=1 -timeout 10m -v ./examples/quickstart

.PHONY: swap
swap: ## one program and one file, on etcd and then on ZooKeeper
	$(ZOOKEEPER) $(GO) test -race -count=1 -timeout 10m -v -run . ./examples/swap

.PHONY: short
short: ## the tests that take seconds
	$(GO) test -short ./registry ./registry/memory ./registry/internal/... ./strategy ./internal/field ./internal/layout ./config ./core/...

.PHONY: check
check: $(STEP) ## everything but the tests
	@$(STEP) $(FRESH) $(TABLE) format vet lint modules imports documents examples generated

.PHONY: format
format: ## gofmt has nothing to say
	@found=$$(gofmt -l .); if [ -n "$$found" ]; then echo "gofmt -w these files:"; echo "$$found"; exit 1; fi

.PHONY: vet
vet: ## go vet
	$(GO) vet ./...
	$(GO) vet -tags failpoint ./...
	cd bench && $(GO) vet ./...

.PHONY: lint
lint: ## golangci-lint, built from tools/lint.mod
	@mkdir -p bin
	$(GO) build -modfile=tools/lint.mod -o bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/golangci-lint run --allow-serial-runners ./...
	cd bench && ../bin/golangci-lint run --allow-serial-runners ./...

.PHONY: modules
modules: ## go.mod is tidy and the modules are what go.sum says
	$(GO) mod tidy -diff
	$(GO) mod verify
	cd bench && $(GO) mod tidy -diff

.PHONY: imports
imports: ## the direction of imports (ARCHITECTURE.md, Layers)
	$(GO) test ./internal/imports

.PHONY: documents
documents: ## lines within 120 columns, tests that documents name, adapters that keep their size
	$(GO) test ./tools

PLAIN = -gcflags='all=-N -l -dwarf=false'
.PHONY: examples
examples: ## every example compiles and the command builds, on other systems too
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/...
	$(COMPILE) ./examples/... >/dev/null
	@# Nobody runs them, so they are not optimized, which takes two thirds of the time.
	GOOS=darwin $(GO) build $(PLAIN) -o /dev/null -ldflags=-w ./cmd/elasticron
	GOOS=darwin $(COMPILE) $(PLAIN) ./examples/... >/dev/null
	GOOS=windows $(GO) build $(PLAIN) -o /dev/null -ldflags=-w ./cmd/elasticron
	GOOS=windows $(COMPILE) $(PLAIN) ./examples/... >/dev/null

.PHONY: generated
generated: ## go generate changes nothing
	@before=$$(git status --porcelain; git diff | git hash-object --stdin); $(GO) generate ./...; \
	after=$$(git status --porcelain; git diff | git hash-object --stdin); \
	if [ "$$before" != "$$after" ]; then echo "go generate changed files: commit them"; git status --short; exit 1; fi

.PHONY: bench
bench: ## all benchmarks, once each unless BENCHTIME says otherwise
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

BENCH = -scenario recorded,due-10000,items-5000
.PHONY: bench-core
bench-core: ## Elasticron beside its rivals on a real server; BENCH are bench's flags (docs/benchmarks.md)
	cd bench && $(GO) run . $(BENCH)

.PHONY: cover
cover: ## coverage of each function, over the tests of all packages
	$(GO) test -coverpkg=./registry/...,./strategy/...,./core/...,./config/...,./internal/field/...,./internal/layout/... -coverprofile=cover.out ./...
	$(GO) tool cover -func=cover.out | tail -n 1

.PHONY: clean
clean: ## what make made
	rm -rf bin cover.out *.log
