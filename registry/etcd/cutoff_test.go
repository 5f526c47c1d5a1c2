package etcd_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

// A member that is cut off from the others does not know what they commit: it must not say that a check holds, nor that
// it does not.
func TestChecksAtAMemberThatIsCutOff(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{Members: 3})
	member, err := bed.Leader()
	require.NoError(t, err)
	member = (member + 1) % bed.Members()
	long := func(cfg *etcd.Config) { cfg.SessionTimeout = time.Minute }
	behind, _ := open(t, bed, long, func(cfg *etcd.Config) { cfg.Endpoints = cfg.Endpoints[member : member+1] })
	writer, _ := open(t, bed, long, func(cfg *etcd.Config) { cfg.Endpoints = slices.Delete(cfg.Endpoints, member, member+1) })
	commit(t, writer, registry.Create("/changed", nil))
	commit(t, behind, registry.Check("/changed", 0))

	heal, err := bed.Partition(member)
	require.NoError(t, err)
	defer heal()
	commit(t, writer, registry.Set("/changed", nil, 0), registry.Create("/created", nil))
	checks := map[string]registry.Op{
		"holds no more": registry.Check("/changed", 0), "holds now": registry.Check("/changed", 1),
		"exists now": registry.Check("/created", registry.AnyVersion),
	}
	answers := make(chan error, len(checks))
	for name, op := range checks { // at once: the member soon notices that it has no leader, and says so
		go func() {
			_, err := behind.Commit(within(t, 100*time.Millisecond), op)
			answers <- fmt.Errorf("%s: %w", name, err)
		}()
	}
	for range checks {
		require.ErrorIs(t, <-answers, registry.ErrUncertain)
	}
	heal()
	commit(t, behind, registry.Check("/changed", 1), registry.Check("/created", 0))
}

// A member that is cut off from the others may go on to answer its clients, while the
// others end their leases. Whoever was given what such a client owned must not meet
// it: its session is over by then.
func TestDeadlineAtAMemberThatIsCutOff(t *testing.T) {
	for name, c := range map[string]struct{ leads, restart bool }{
		"Follower":            {},
		"Leader":              {leads: true},
		"LeaderOthersRestart": {leads: true, restart: true}, // and elect sooner
	} {
		t.Run(name, func(t *testing.T) {
			bed := testbed.StartEtcd(t, testbed.Options{Members: 3})
			member, err := bed.Leader()
			require.NoError(t, err)
			if !c.leads {
				member = (member + 1) % bed.Members()
			}
			s, client := open(t, bed, func(cfg *etcd.Config) { cfg.Endpoints = cfg.Endpoints[member : member+1] })
			commit(t, s, registry.CreateEphemeral("/owned", nil))
			others := slices.Delete(bed.Client().Endpoints(), member, member+1)
			onlooker, err := clientv3.New(clientv3.Config{Endpoints: others, Logger: zap.NewNop()})
			require.NoError(t, err)
			defer onlooker.Close()
			ctx := within(t, time.Minute)
			_, err = client.Busy(ctx) // until a heartbeat
			require.NoError(t, err)
			ended := onlooker.Watch(ctx, "/elasticron/1/owned", clientv3.WithFilterPut(), clientv3.WithCreatedNotify())
			require.True(t, (<-ended).Created)

			heal, err := bed.Partition(member)
			require.NoError(t, err)
			defer heal()
			cut := time.Now()
			if c.restart {
				require.NoError(t, bed.RestartMembers((member+1)%3, (member+2)%3))
				t.Logf("the others serve after %v", time.Since(cut))
			}
			answer, more := <-ended
			require.True(t, more && len(answer.Events) == 1, "void: nobody saw the end: %v", answer.Err())
			gone, deadline := time.Now(), s.Deadline()
			t.Logf("after the cut: Deadline %v, gone %v", deadline.Sub(cut), gone.Sub(cut))
			require.False(t, deadline.After(gone), "Deadline is %v after others saw the end", deadline.Sub(gone))
			select {
			case <-s.Done():
			default:
				require.Fail(t, "Done is open though others saw the end")
			}
			require.ErrorIs(t, s.Err(), registry.ErrSessionLost)
		})
	}
}
