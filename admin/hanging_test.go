package admin_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/registry"
)

// What somebody has made below a switch, or a server, goes with it.
func TestWhatHangsBelowASwitchGoesWithIt(t *testing.T) {
	for path, do := range map[string]func(b *bed, ctx context.Context) error{
		"/shop/hello/sharding/0/disabled": func(b *bed, ctx context.Context) error { return b.EnableItem(ctx, "hello", 0) },
		"/elasticron/shop/hello/inforce/paused@a": func(b *bed, ctx context.Context) error {
			return b.Resume(ctx, "hello", "a")
		},
		"/shop/hello/servers/10.0.0.9": func(b *bed, ctx context.Context) error {
			return b.RemoveServers(ctx, admin.Target{Job: "hello", IP: "10.0.0.9"})
		},
	} {
		t.Run(path[1:], func(t *testing.T) {
			onEach(t, func(b *bed) {
				b.put("/shop/hello/config", javaConfig("hello", 2))
				b.put(path+"/below/it", "")
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				b.store.before = atMost(100, cancel)
				require.NoError(b, do(b, ctx))
				require.False(b, b.get(path).Exists())
			})
		})
	}
}

// atMost ends what makes more commits.
func atMost(commits int, end func()) func([]registry.Op) {
	return func([]registry.Op) {
		if commits--; commits < 0 {
			end()
		}
	}
}

// A server that lacks a change shows it unchanged, and refuses what goes by that: it is asked again, and not all the time.
func TestWhatIsRefusedAgainAndAgainIsTriedEverMoreRarely(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.put("/shop/hello/config", javaConfig("hello", 2))
		was := b.get("/shop/hello/config")
		b.put("/shop/hello/config", javaConfig("hello", 3))
		b.store.show(was)
		time.AfterFunc(time.Minute, func() { b.store.show() })
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		b.store.before = atMost(100, cancel)
		require.NoError(b, b.DisableJob(ctx, "hello"))
		require.Contains(b, string(b.get(was.Path).Value), "disabled: true")
	})
}
