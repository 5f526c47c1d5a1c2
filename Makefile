# Everything that a change must pass is `make check test`; .ci/run calls the same.
GO ?= go
TESTFLAGS ?=
LINT = $(GO) tool -modfile=tools/lint.mod golangci-lint

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /	/' | expand -t 14

.PHONY: test
test: ## every test under -race (etcd is embedded), then the quickstart once
	$(GO) test -race -timeout 15m $(TESTFLAGS) ./...
	$(GO) run ./examples/quickstart -rounds 8

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
bench: ## all benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: cover
cover: ## coverage of each function, over the tests of all packages
	$(GO) test -coverpkg=./registry/...,./strategy/...,./core/...,./internal/layout/... -coverprofile=cover.out ./...
	$(GO) tool cover -func=cover.out | tail -n 1

.PHONY: clean
clean: ## what make made
	rm -rf bin cover.out
