# Everything that a change must pass is `make check test`; .ci/run calls the same.
GO ?= go
BENCHTIME ?= 1x
LINT = $(GO) tool -modfile=tools/lint.mod golangci-lint

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /	/' | expand -t 14

.PHONY: test
test: build ## every test under -race (etcd is embedded), the suite's case counts, the quickstart
	$(GO) test -race -timeout 15m $$($(GO) list ./... | grep -v '/registry/memory$$')
	$(MAKE) memory conformance quickstart

# The race detector of Go 1.26 itself crashes now and then (about once in forty
# runs) where a time.AfterFunc starts goroutines inside a synctest bubble, as the
# expiries of registry/memory do: a segmentation fault in the runtime, or a failed
# CHECK of its own. Only a run that ended in such a crash is repeated, once.
CRASH = ^ThreadSanitizer: CHECK failed|^SIGSEGV: segmentation violation

.PHONY: memory
memory: ## the memory adapter's tests under -race
	@$(GO) test -race -timeout 10m ./registry/memory >memory.log 2>&1; status=$$?; \
	if [ $$status -ne 0 ] && grep -qE '$(CRASH)' memory.log; then \
		echo "the race detector crashed; once more:"; grep -E '$(CRASH)' memory.log; \
		$(GO) test -race -timeout 10m ./registry/memory >memory.log 2>&1; status=$$?; \
	fi; tail -n 200 memory.log; exit $$status

.PHONY: build
build: ## everything compiles
	$(GO) build ./...

.PHONY: conformance
conformance: ## the suite on each adapter, with its case counts
	@$(GO) test -count=1 -timeout 10m -v -run '^TestConformance' ./registry/memory ./registry/etcd >conformance.log 2>&1; \
	status=$$?; grep -E 'conformance: [0-9]+ cases|^(ok|FAIL|panic:)|--- FAIL' conformance.log; \
	[ $$status -eq 0 ] || tail -n 200 conformance.log; exit $$status

.PHONY: quickstart
quickstart: ## the quickstart once, with few rounds
	$(GO) run ./examples/quickstart -rounds 6

.PHONY: short
short: ## the tests that take seconds
	$(GO) test -short ./registry ./registry/memory ./registry/internal/... ./strategy ./internal/layout ./core/...

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
	$(GO) test -coverpkg=./registry/...,./strategy/...,./core/...,./internal/layout/... -coverprofile=cover.out ./...
	$(GO) tool cover -func=cover.out | tail -n 1

.PHONY: clean
clean: ## what make made
	rm -rf bin cover.out *.log
