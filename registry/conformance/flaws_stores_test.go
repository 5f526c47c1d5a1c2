package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// leastBrokenStores is how many broken adapters are tried with broken stores at least.
const leastBrokenStores = 80

// A storeAsSession lets the flaws of sessions be those of a store.
type storeAsSession struct{ registry.StoreCloser }

func (storeAsSession) ID() string            { return "a store" }
func (storeAsSession) Deadline() time.Time   { return time.Time{} }
func (storeAsSession) Done() <-chan struct{} { return nil }
func (storeAsSession) Err() error            { return nil }

func (storeAsSession) Lock(context.Context, string, []byte) (registry.Lock, error) {
	panic("a store has no locks")
}

func (storeAsSession) TryLock(context.Context, string, []byte) (registry.Lock, error) {
	panic("a store has no locks")
}

// ofStores is a flaw of sessions that stores have, and sessions do not.
func ofStores(f flaw) flaw {
	return flaw{store: func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error) {
		st, err := r.Registry.OpenStore(ctx)
		if err != nil {
			return nil, err
		}
		return &flawed{Session: storeAsSession{st}, reg: r.Registry, flaw: &f, state: map[string]any{}}, nil
	}}
}

// isOfStores reports whether the flaw breaks nothing but what stores do too.
func (f flaw) isOfStores() bool {
	return f.lock == nil && f.close == nil && f.done == nil && f.deadline == nil && f.err == nil && f.id == nil && f.try == nil &&
		f.dropped == nil && f.namespace == nil && f.open == nil && f.opened == nil && f.store == nil && f.ends == nil
}

// An adapter may break in its stores alone what it keeps in its sessions: the same case catches it on a store.
func TestBrokenStoresAreCaught(t *testing.T) {
	t.Parallel()
	var broken []breakage
	names := Cases(1)
	for _, b := range breakages {
		onStore := "Stores/" + strings.ReplaceAll(b.caughtBy, "/", "")
		if b.flaw.isOfStores() && slices.Contains(names, onStore) {
			b.caughtBy, b.flaw = onStore, ofStores(b.flaw)
			broken = append(broken, b)
		}
	}
	require.GreaterOrEqual(t, len(broken), leastBrokenStores)
	requireCaught(t, broken)
}

// The same cases pass with sound stores, through the same harness.
func TestSoundStoresPass(t *testing.T) {
	t.Parallel()
	var cases []testCase
	for _, g := range suite() {
		for _, c := range g.cases {
			if c.store {
				cases = append(cases, c)
			}
		}
	}
	verdicts := tryAll(len(cases), func(i int) verdict {
		failed, text := execute(t, newFlawedHarness(ofStores(flaw{})), cases[i])
		return verdict{failed, text}
	})
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) { require.False(t, verdicts[i].failed, verdicts[i].text) })
	}
}
