package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

// The file alone runs a command and a request for every item, on etcd.
func TestFromFile(t *testing.T) {
	srv, err := embedded.Start(t.Context(), embedded.Config{})
	require.NoError(t, err)
	defer srv.Close()
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case asked <- r.Method + " " + string(body) + " " + r.Header.Get("Shardingcontext"):
		default:
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	t.Setenv("REGISTRY", "etcd://"+srv.Endpoint()+"/fromfile")
	t.Setenv("EXPORT_CRON", "* * * * * ?")
	t.Setenv("EXPORT_DIR", dir)
	t.Setenv("REFRESH_CRON", "* * * * * ?")
	t.Setenv("REFRESH_URL", server.URL+"/refresh")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, "jobs.yaml") }()
	items := map[bool]bool{}
	for len(items) < 2 {
		got := <-asked
		require.True(t, strings.HasPrefix(got, `POST {"full": false} {"jobName":"refresh"`), got)
		items[strings.Contains(got, `"shardingItem":0`)] = true
	}
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "export.log"))
		return strings.Contains(string(text), "item 0 of 3 (north)\n") &&
			strings.Contains(string(text), "item 1 of 3 (east)\n") && strings.Contains(string(text), "item 2 of 3 (south)\n")
	}, 30*time.Second, 20*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}
