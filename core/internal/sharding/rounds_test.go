package sharding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

func TestRoundsOfTheOwners(t *testing.T) {
	at := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	with := func(epoch int, items ...int) *ledger.Ledger {
		l := ledger.New(epoch, 2)
		for _, n := range items {
			l.Set(n, ledger.Item{Through: at})
		}
		return l
	}
	base := func(assigned bool) *layout.Base { return &layout.Base{Epoch: 2, To: 2, Assigned: assigned} }
	for name, c := range map[string]struct {
		base    *layout.Base
		members []Member
		known   bool
	}{
		"all stand":                     {base(true), []Member{{ID: "a", Ledger: with(2, 0)}, {ID: "b", Ledger: with(2, 1)}}, true},
		"one owns nothing":              {base(true), []Member{{ID: "a", Ledger: with(2, 0, 1)}, {ID: "b", Ledger: with(2)}}, true},
		"the strategy leaves one out":   {base(true), []Member{{ID: "a", Ledger: with(2, 0)}}, true},
		"before the first epoch":        {nil, []Member{{ID: "a", Ledger: with(0)}}, false},
		"not assigned yet":              {base(false), []Member{{ID: "a", Ledger: with(2, 0)}}, false},
		"nobody owns anything":          {base(true), []Member{{ID: "a", Ledger: with(2)}}, false},
		"the dead own something":        {base(true), []Member{{ID: "a", Ledger: with(2, 0)}, {ID: "b", State: Dead, Ledger: with(2, 1)}}, false},
		"the dead own nothing":          {base(true), []Member{{ID: "a", Ledger: with(2, 0, 1)}, {ID: "b", State: Dead, Ledger: with(2)}}, true},
		"a ledger is missing":           {base(true), []Member{{ID: "a", Ledger: with(2, 0)}, {ID: "b"}}, false},
		"one is missing, and not amiss": {base(true), []Member{{ID: "a", Ledger: with(2, 0, 1)}, {ID: "b"}}, true},
		"an epoch that ends":            {base(false), []Member{{ID: "a", Ledger: with(1, 0)}, {ID: "b", Ledger: with(1)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := View{Base: c.base, Members: c.members}
			owners, known := v.Rounds()
			require.Equal(t, c.known, known)
			if !known {
				return
			}
			for _, m := range c.members {
				is, owns := owners[m.ID]
				require.Equal(t, m.Ledger != nil && m.Ledger.Len() > 0, owns, m.ID)
				if owns {
					require.Equal(t, m.Ledger.Rounds(), is)
				}
			}
		})
	}
}
