package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/offset"
)

// On every registry: an offset goes along with its item, and an owner whose session has ended, which does not
// know it yet, sets it no more.
func TestOffsets(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := everySecond
		cfg.Shards = 1
		begun, goOn, refused := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		first := true
		a := b.start("a", core.JobFunc(func(ctx context.Context, s core.Shard) error {
			if !first {
				return nil
			}
			first = false
			at, err := offset.Open(ctx, s, offset.Config{})
			if err == nil {
				err = at.Set(ctx, "1", offset.Counted{Success: 1})
			}
			if err != nil {
				refused <- err
				return err
			}
			close(begun)
			<-goOn
			late, cancel := context.WithTimeout(context.Background(), 10*time.Second) // it does not heed its context
			defer cancel()
			refused <- at.Set(late, "2", offset.Counted{Success: 1})
			return nil
		}), cfg)
		select {
		case <-begun:
		case err := <-refused:
			require.NoError(b, err)
		}
		stands := make(chan offset.Position, 1000)
		b.start("b", core.JobFunc(func(ctx context.Context, s core.Shard) error {
			at, err := offset.Open(ctx, s, offset.Config{})
			if err != nil {
				return err
			}
			stands <- at.Position()
			return at.Set(ctx, "10", offset.Counted{Success: 1})
		}), cfg)
		b.expire(a.State().Session)
		require.Equal(b, "1", (<-stands).Offset)
		close(goOn)
		require.Error(b, <-refused)
		p := <-stands
		require.Equal(b, "10", p.Offset)
		require.EqualValues(b, 2, p.Success)
	})
}
