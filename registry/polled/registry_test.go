package polled_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
	"github.com/elasticron/elasticron/registry/polled/polledtest/ram"
)

// What is wrong is one line that names the field and the fix, and the store is
// closed.
func TestABadConfigIsRefused(t *testing.T) {
	good := polled.Config{Name: "ram", Namespace: "team/shop", SessionTimeout: 2 * time.Second}
	require.NoError(t, good.Validate())
	for says, spoil := range map[string]func(*polled.Config){
		"polled: invalid request: polled.Config.Name is empty: give the adapter's, as \"sqlite\"":                        func(c *polled.Config) { c.Name = "" },
		"ram: invalid request: polled.Config.Namespace: no namespace; name one, for example shop or team/shop":           func(c *polled.Config) { c.Namespace = "" },
		"ram: invalid request: polled.Config.Namespace: namespace \"elasticron/a\" is reserved":                          func(c *polled.Config) { c.Namespace = "elasticron/a" },
		"ram: invalid request: polled.Config.Namespace: namespace \"shop/\" cannot be a path":                            func(c *polled.Config) { c.Namespace = "shop/" },
		"ram: invalid request: polled.Config.SessionTimeout is -1s: want at least 100ms, or 0 for 10s":                   func(c *polled.Config) { c.SessionTimeout = -time.Second },
		"ram: invalid request: polled.Config.SessionTimeout is 10ms: want at least 100ms":                                func(c *polled.Config) { c.SessionTimeout = 10 * time.Millisecond },
		"ram: invalid request: polled.Config.Poll is 501ms: want at most a quarter of SessionTimeout, 500ms, or 0":       func(c *polled.Config) { c.Poll = 501 * time.Millisecond },
		"ram: invalid request: polled.Config.Poll is -1ns: want at most":                                                 func(c *polled.Config) { c.Poll = -1 },
		"ram: invalid request: polled.Config.MaxInFlight is -1: want at least 1, or 0 for 16":                            func(c *polled.Config) { c.MaxInFlight = -1 },
		"ram: invalid request: polled.Config.Limits is {MaxOps:41 MaxBytes:0 MaxValue:0}: want at least {MaxOps:40":      func(c *polled.Config) { c.Limits.MaxOps = 41 },
		"ram: invalid request: polled.Config.Limits is {MaxOps:39 MaxBytes:524288 MaxValue:262144}: want at least {MaxO": func(c *polled.Config) { c.Limits = registry.PortableLimits(); c.Limits.MaxOps-- },
	} {
		cfg := good
		spoil(&cfg)
		db := &ram.Database{}
		l := &line{Store: db.Store(), asked: map[string]int{}}
		_, err := polled.New(l, cfg)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "\n")
		require.ErrorIs(t, err, registry.ErrInvalid)
		require.Equal(t, 1, l.closed)
		require.Empty(t, l.counts())
	}
}

func TestLimitsAreTheStores(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		more := registry.Limits{MaxOps: 1000, MaxBytes: 1 << 20, MaxValue: 1 << 20}
		reg, err := polled.New(db.Store(), polled.Config{Name: "ram", Namespace: "team/shop", Limits: more})
		require.NoError(t, err)
		defer reg.Close()
		require.Equal(t, "team/shop", reg.Namespace())
		ses, err := reg.Open(t.Context())
		require.NoError(t, err)
		require.Equal(t, more, ses.Limits())
		commit(t, ses, registry.Create("/a", make([]byte, 1<<20-2)))
	})
}

func TestOpenWaitsForTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		reg, l := dial(t, db)
		l.disturb(refuse, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := reg.Open(ctx)
		require.ErrorIs(t, err, registry.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.InDelta(t, 8, l.counts()["begin"], 2, "the pauses grow")
		time.AfterFunc(time.Minute, func() { l.disturb(nil, nil) })
		start := time.Now()
		ses, err := reg.Open(t.Context())
		require.NoError(t, err)
		require.InDelta(t, time.Minute, time.Since(start), float64(time.Second/5))
		require.Positive(t, time.Until(ses.Deadline()))
	})
}

// An attempt to open whose answer comes too late makes no session that is about to end.
func TestOpenTriesAgainWhatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		reg, l := dial(t, db)
		l.disturb(nil, func(ctx context.Context, request string) error {
			l.disturb(nil, nil)
			return hang(ctx, request)
		})
		ses, err := reg.Open(t.Context())
		require.NoError(t, err)
		require.InDelta(t, timeout*9/10, time.Until(ses.Deadline()), float64(time.Millisecond))
		elapse(2 * timeout)
		all, err := db.Store().Sessions(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1, "the first attempt's session has expired")
		require.Equal(t, ses.ID(), all[0].ID)
	})
}

func TestOpenOfWhoIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		reg, l := dial(t, db)
		l.disturb(only("begin", func(context.Context, string) error { return registry.ErrDenied }), nil)
		_, err := reg.Open(soon(t))
		require.ErrorIs(t, err, registry.ErrDenied)
		require.Equal(t, 1, l.counts()["begin"])
	})
}

func TestACloseEndsWhatIsOpen(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		reg, l := dial(t, db)
		ses, err := reg.Open(t.Context())
		require.NoError(t, err)
		commit(t, ses, registry.CreateEphemeral("/e", nil))
		opening := make(chan error)
		l.disturb(only("begin", hang), nil)
		go func() {
			_, err := reg.Open(context.Background())
			opening <- err
		}()
		elapse(time.Second)
		require.NoError(t, reg.Close())
		require.ErrorIs(t, <-opening, registry.ErrClosed)
		require.True(t, isDone(ses))
		require.False(t, has(t, db, "/e"))
		_, err = reg.Open(t.Context())
		require.ErrorIs(t, err, registry.ErrClosed)
	})
}

func TestACloseDoesNotWaitForAStoreThatIsSilent(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		reg, l := dial(t, db)
		for range 3 {
			_, err := reg.Open(t.Context())
			require.NoError(t, err)
		}
		l.disturb(hang, nil)
		start := time.Now()
		require.NoError(t, reg.Close())
		require.LessOrEqual(t, time.Since(start), timeout/10)
	})
}

func TestTheErrorOfCloseIsTheStores(t *testing.T) {
	store := (&ram.Database{}).Store()
	reg, err := polled.New(store, polled.Config{Name: "ram", Namespace: "shop"})
	require.NoError(t, err)
	require.NoError(t, store.Close())
	first, second := reg.Close(), reg.Close()
	require.ErrorContains(t, first, "closed twice")
	require.ErrorIs(t, second, first)
}
