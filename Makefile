# make test   everything, with embedded etcd: the test command of README.md
# make check  format, vet, linter, modules, import directions
# make bench  benchmarks, once each unless BENCHTIME says otherwise
GO        ?= go
BENCHTIME ?= 1x
LINT       = $(GO) tool -modfile=tools/lint.mod golangci-lint

.PHONY: test check lint bench build quickstart conformance

test: build
	$(GO) test -race -timeout 30m ./...
	$(MAKE) conformance quickstart

# The case counts of the suite, for each adapter.
conformance:
	$(GO) test -count=1 -timeout 20m -v -run '^TestConformance' ./registry/memory ./registry/etcd | grep -E 'conformance: |^(ok|FAIL|---)'

quickstart:
	$(GO) run ./examples/quickstart -rounds 6

build:
	$(GO) build ./...

check: build
	@test -z "$$(gofmt -l .)" || { echo "gofmt -w these files:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) mod verify
	$(GO) test ./internal/imports
	$(LINT) run

lint:
	$(LINT) run

bench:
	$(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) ./...
