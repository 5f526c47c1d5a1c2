package imports

const (
	etcdServer = "go.etcd.io/etcd/server/v3/..."
	cronParser = "github.com/robfig/cron/v3"
	yamlParser = "go.yaml.in/yaml/v4"
)

// Rules is the direction of the project: adapters know the contract and their
// client, the engine knows the contract, and only programs and tests know both.
var Rules = []Rule{
	{Packages: "registry"},
	{Packages: "strategy"},
	{Packages: "registry/conformance", May: []string{"registry", "registry/memory", "internal/stall", "github.com/anishathalye/porcupine", "pgregory.net/rapid"}},
	{Packages: "registry/latch", May: []string{"registry", "github.com/google/uuid"}},
	{Packages: "registry/polled", May: adapter()},
	{Packages: "registry/polled/polledtest", May: []string{"registry", "registry/polled", "registry/conformance"}},
	{Packages: "registry/polled/polledtest/ram", May: []string{"registry", "registry/polled"}},
	{Packages: "registry/retry", May: []string{"registry", "registry/internal/tool", "github.com/cenkalti/backoff/v5"}, Never: services()},
	{Packages: "registry/internal/...", May: adapter("github.com/go-zookeeper/zk")},

	{Packages: "registry/memory", May: adapter()},
	{Packages: "registry/etcd", May: adapter("go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/api/v3/...", "google.golang.org/grpc/...", "go.uber.org/zap", "golang.org/x/sync/semaphore"),
		Never: []string{etcdServer}},
	{Packages: "registry/etcd/embedded", Anything: true, Never: engine()},
	{Packages: "registry/zookeeper", May: adapter("registry/zookeeper/internal/link", "github.com/go-zookeeper/zk", "golang.org/x/sync/errgroup"), Never: []string{etcdServer}},
	{Packages: "registry/postgres", May: adapter("registry/polled", "github.com/jackc/pgx/v5/..."), Never: []string{etcdServer}},
	{Packages: "registry/zookeeper/internal/...", May: adapter("github.com/go-zookeeper/zk"), Never: []string{etcdServer}},

	{Packages: "internal/field"},
	{Packages: "internal/secret", May: []string{"internal/field"}},
	{Packages: "internal/failpoint", Never: services()},
	{Packages: "internal/layout", May: []string{"registry", "internal/field", yamlParser}, Never: services()},
	{Packages: "internal/layout/ledger"},
	{Packages: "internal/layout/pages", May: []string{"registry", "internal/layout/ledger"}, Never: services()},
	{Packages: "core/event"},
	{Packages: "core/request"},
	{Packages: "core/internal/schedule", May: []string{"internal/field", cronParser}, Never: services()},
	// The rooms of the engine, in their order: each may import what stands above it here.
	{Packages: "core/internal/timer", Never: services()},
	{Packages: "core/internal/workqueue", Never: services()},
	{Packages: "core/internal/lazymap", Never: services()},
	{Packages: "core/internal/sortedmap", Never: services()},
	{Packages: "core/internal/places", May: []string{"core/internal/lazymap"}, Never: services()},
	{Packages: "core/internal/barrier", May: []string{"core/internal/lazymap", "internal/failpoint", "internal/layout"}, Never: services()},
	{Packages: "core/internal/misfire", Never: services()},
	{Packages: "core/internal/dispatch", May: []string{"core/event"}, Never: services()},
	{Packages: "core/internal/settings", May: []string{"strategy", "internal/field", "internal/layout", "core/event", "core/internal/misfire", "core/internal/schedule"}, Never: services()},
	{Packages: "core/internal/settle", May: []string{"registry"}, Never: services()},
	{Packages: "core/internal/items", May: room("core/event", "core/internal/lazymap", "core/internal/misfire"), Never: services()},
	{Packages: "core/internal/sharding", May: room("core/event", "internal/failpoint"), Never: services()},
	{Packages: "core/internal/execution", May: room("internal/failpoint", "core/internal/timer", "core/internal/workqueue", "core/internal/lazymap", "core/internal/settle"), Never: services()},
	{Packages: "core/internal/session", May: []string{"registry", "core/internal/workqueue", "core/internal/settle"}, Never: services()},
	{Packages: "core/internal/leading", May: room("core/event", "core/request", "internal/failpoint", "core/internal/workqueue", "core/internal/settle",
		"core/internal/lazymap", "core/internal/sharding"), Never: services()},
	{Packages: "core/internal/ownership", May: room("core/internal/settle"), Never: services()},
	{Packages: "core/internal/firing", May: room("core/event", "core/internal/dispatch", "core/request", "core/internal/timer", "core/internal/execution", "internal/failpoint",
		"core/internal/barrier", "core/internal/items", "core/internal/lazymap", "core/internal/workqueue", "core/internal/places"), Never: services()},
	{Packages: "core/internal/membership", May: room("strategy", "internal/field", "core/event", "core/internal/dispatch", "core/internal/timer", "core/internal/execution",
		"internal/failpoint", "core/internal/barrier", "core/internal/firing", "core/internal/items", "core/internal/workqueue", "core/internal/leading",
		"core/internal/lazymap", "core/internal/sortedmap", "core/internal/misfire", "core/internal/ownership", "core/internal/places", "core/internal/session", "core/internal/settings", "core/internal/settle"), Never: services()},
	{Packages: "core/simulation"}, // all of it is tests
	{Packages: "core", May: room("strategy", "internal/failpoint", "internal/field", "core/event", "core/internal/..."), Never: append(services(), "errorhandler/...", "job/...", "github.com/wneessen/...")},
	{Packages: "core/offset", May: []string{"registry", "core", "core/internal/ownership", "core/internal/settle", "internal/layout"}, Never: services()},
	{Packages: "job/link", May: []string{"core", "github.com/cenkalti/backoff/v5"}, Never: services()},
	{Packages: "job", May: []string{"core", "core/offset", "internal/field", "internal/secret", "job/link"}, Never: services()},
	{Packages: "errorhandler", May: []string{"core", "core/request", "internal/field", "internal/secret", "job/link", "golang.org/x/time/rate"}, Never: services()},
	{Packages: "errorhandler/chat", May: []string{"errorhandler"}, Never: services()},
	{Packages: "errorhandler/mail", May: []string{"errorhandler", "github.com/wneessen/go-mail"}, Never: services()},
	{Packages: "tracing", May: []string{"core", "core/event", "github.com/google/uuid"}, Never: services()},
	{Packages: "admin", May: room("core", "core/event", "core/request", "internal/field", "golang.org/x/sync/errgroup"), Never: services()},
	// It tests jobs on the registry in memory.
	{Packages: "coretest", May: []string{"core", "core/event", "job/link", "registry/memory"}, Never: []string{"go.etcd.io/...", "github.com/go-zookeeper/..."}},
	{Packages: "config", May: []string{"registry", "registry/retry", "core", "errorhandler", "job", "job/link", "internal/field", "internal/layout", yamlParser}, Never: services()},

	{Packages: "internal/imports"},
	{Packages: "internal/ports"},
	{Packages: "internal/stall"},
	{Packages: "internal/history"},
	{Packages: "internal/history/nodes", May: room("internal/history"), Never: services()},
	{Packages: "internal/chaos", Anything: true, Never: []string{"cmd/...", "examples/..."}},
	{Packages: "internal/testbed/...", Anything: true, Never: []string{"core/...", "cmd/...", "examples/..."}},
	{Packages: "tools/reference", May: []string{"config"}, Never: services()},
	{Packages: "tools/..."},
	{Packages: "cmd/...", Anything: true, Never: []string{"examples/...", "internal/testbed/...", "registry/conformance"}},
	// Of the test bed, an example may only start a ZooKeeper (zkserver).
	{Packages: "examples/...", Anything: true, Never: []string{"cmd/...", "internal/testbed", "internal/testbed/[^z]*", "registry/conformance"}},
}

// adapter is what every adapter may import, and its client.
func adapter(client ...string) []string {
	return append([]string{"registry", "registry/latch", "registry/internal/..."}, client...)
}

// room is what the rooms of the engine share, and what one of them needs besides.
func room(more ...string) []string {
	return append([]string{"registry", "internal/layout", "internal/layout/ledger", "internal/layout/pages"}, more...)
}

// engine is what nothing below the programs may reach.
func engine() []string {
	return []string{"core/...", "job/...", "internal/...", "cmd/...", "examples/..."}
}

// services are the adapters, their clients and the suite: the library reaches none.
func services() []string {
	return []string{
		"registry/memory/...", "registry/etcd/...", "registry/zookeeper/...", "registry/postgres/...", "registry/polled/...", "registry/conformance",
		"go.etcd.io/...", "github.com/go-zookeeper/...", "github.com/jackc/...", "google.golang.org/grpc/...",
		"internal/testbed/...",
	}
}
