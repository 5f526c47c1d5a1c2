package zookeeper_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// cutOffTimeout is long enough for servers that restart, and much shorter than the ten
// seconds for which a server of this bed believes in a quorum that it does not hear.
const cutOffTimeout = 4 * time.Second

func startThree(t *testing.T) *testbed.ZooKeeper {
	t.Helper()
	return testbed.StartZooKeeper(t, testbed.ZooKeeperOptions{Members: 3, Config: []string{"syncLimit=20"}})
}

// onlyAt lets a client know one member.
func onlyAt(member int) func(*zookeeper.Config) {
	return func(c *zookeeper.Config) {
		c.SessionTimeout = cutOffTimeout
		c.Servers = c.Servers[member : member+1]
	}
}

// without lets a client know the other members.
func without(member int) func(*zookeeper.Config) {
	return func(c *zookeeper.Config) {
		c.SessionTimeout = 5 * cutOffTimeout
		c.Servers = append(append([]string(nil), c.Servers[:member]...), c.Servers[member+1:]...)
	}
}

// A member that is cut off from the others goes on to answer its clients, while the
// others end their sessions. Whoever was given what such a client owned must not
// meet it: its session is over by then.
func TestDeadlineAtAMemberThatIsCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		leads bool
		part  func(t *testing.T, bed *testbed.ZooKeeper, member int)
	}{
		// The leader ends the session; the follower answers for ten seconds more.
		"Follower": {leads: false, part: func(*testing.T, *testbed.ZooKeeper, int) {}},
		// The others elect a leader at once, since they have just started; the old one
		// leads on for ten seconds.
		"Leader": {leads: true, part: restartOthers},
	} {
		t.Run(name, func(t *testing.T) {
			bed := startThree(t)
			member, err := bed.Servers().Leader(within(t, 20*time.Second))
			require.NoError(t, err)
			if !c.leads {
				member = (member + 1) % bed.Members()
			}
			s, _ := open(t, bed, onlyAt(member))
			other, _ := open(t, bed, without(member))
			commit(t, s, registry.CreateEphemeral("/owned", nil))
			f := follow(t, other)
			require.NoError(t, f.Watcher.Add("/owned", registry.Self))
			f.Until(20*time.Second, "the node", func() bool { return f.Nodes["/owned"].Exists() })

			heal, err := bed.Servers().Partition(member)
			require.NoError(t, err)
			defer func() { require.NoError(t, heal()) }()
			cut := time.Now()
			c.part(t, bed, member)
			f.Until(time.Minute, "its end", func() bool { return !f.Nodes["/owned"].Exists() })
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

// restartOthers kills all members but one, and returns when they serve again.
func restartOthers(t *testing.T, bed *testbed.ZooKeeper, member int) {
	var work sync.WaitGroup
	ctx := within(t, time.Minute)
	for i := range bed.Members() {
		if i != member {
			work.Go(func() {
				if err := bed.Servers().Restart(ctx, i); err != nil {
					t.Error(err)
				}
			})
		}
	}
	work.Wait()
}

// A short cut costs a client nothing, and one that knows other members leaves a
// member that is cut off for long.
func TestSessionOutlivesACut(t *testing.T) {
	bed := startThree(t)
	leader, err := bed.Servers().Leader(within(t, 20*time.Second))
	require.NoError(t, err)
	for _, tc := range []struct {
		name   string
		lasts  time.Duration
		change func(*zookeeper.Config)
	}{
		{"Short", cutOffTimeout / 4, onlyAt((leader + 1) % 3)},
		{"Long", 2 * cutOffTimeout, func(c *zookeeper.Config) { c.SessionTimeout = cutOffTimeout }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reg, client := connect(t, bed, tc.change)
			heal := client.Proxy(leader).Refuse() // the client is to begin at another
			s := session(t, reg)
			heal()
			commit(t, s, registry.CreateEphemeral("/owned", nil))
			begun, err := client.Busy(within(t, cutOffTimeout))
			require.NoError(t, err)
			for member := range bed.Members() {
				if client.Proxy(member) == begun {
					part(t, bed, member, s, tc.lasts)
				}
			}
			require.NoError(t, s.Err())
			nodes, err := s.Get(within(t, 20*time.Second), "/owned")
			require.NoError(t, err)
			require.True(t, nodes[0].Owned)
			later, err := client.Busy(within(t, cutOffTimeout))
			require.NoError(t, err)
			require.Equal(t, tc.lasts < cutOffTimeout, later == begun, "it leaves its member for a long cut alone")
		})
	}
}

// part cuts a member off for a while, or until the session ends.
func part(t *testing.T, bed *testbed.ZooKeeper, member int, s registry.Session, lasts time.Duration) {
	heal, err := bed.Servers().Partition(member)
	require.NoError(t, err)
	select {
	case <-s.Done():
	case <-time.After(lasts):
	}
	require.NoError(t, heal())
}
