package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elasticron/elasticron/registry"
)

// explain turns the failure to open into one line.
func explain(ctx context.Context, cfg Config, err error) error {
	if errors.Is(err, registry.ErrDenied) {
		return err // as the request that failed has told it
	}
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("etcd: open: %w: %w", registry.ErrUnavailable, ctx.Err())
	}
	return fmt.Errorf("etcd: open: %w: no answer within %v: %s",
		registry.ErrUnavailable, cfg.DialTimeout, diagnose(ctx, cfg))
}

// diagnose asks every endpoint by itself.
func diagnose(ctx context.Context, cfg Config) string {
	reasons := make([]string, len(cfg.Endpoints))
	var wg sync.WaitGroup
	for i, endpoint := range cfg.Endpoints {
		wg.Go(func() { reasons[i] = endpoint + ": " + ask(ctx, cfg, endpoint) })
	}
	wg.Wait()
	return strings.Join(reasons, "; ")
}

func ask(ctx context.Context, cfg Config, endpoint string) string {
	single := cfg
	single.Endpoints, single.DialOptions = []string{endpoint}, nil
	client, err := clientv3.New(clientConfig(single))
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	status, err := pb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "no connection or no answer"
	case err != nil:
		return plain(rpctypes.ErrorDesc(err)) + puzzle(cfg, rpctypes.ErrorDesc(err))
	case status.Leader == 0:
		return "the member answers, but has no leader"
	}
	return "the member answers, but did not serve the request in time"
}

// plain cuts gRPC's wrapping off the reason for a failed connection.
func plain(reason string) string {
	if _, inner, ok := strings.Cut(reason, `desc = "transport: `); ok {
		reason = strings.TrimSuffix(inner, `"`)
	}
	return strings.TrimPrefix(reason, "Error while dialing: ")
}

// puzzle says what the commonest puzzles among the reasons mean. A server that wants a certificate hangs up once the
// client takes the connection to be made, so that the reason may be no more than a broken pipe.
func puzzle(cfg Config, reason string) string {
	said := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(reason, p) })
	}
	hungUp := said("error reading server preface", "remote error: tls", "broken pipe", "connection reset")
	switch {
	case said("handshake failed: EOF", "first record does not look like a TLS handshake"):
		return " (does the server speak TLS?)"
	case hungUp && cfg.TLS == nil:
		return " (does the server want TLS?)"
	case hungUp && len(cfg.TLS.Certificates) == 0:
		return " (does the server want a client certificate? give cert and key)"
	case hungUp:
		return " (does the server trust the authority of the client certificate?)"
	}
	return ""
}
