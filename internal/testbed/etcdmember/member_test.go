package etcdmember_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/elasticron/elasticron/internal/ports"
	"github.com/elasticron/elasticron/internal/testbed/etcdmember"
)

const (
	// asMember makes this test binary the program.
	asMember = "ELASTICRON_TEST_AS_MEMBER"
	// asParent makes it start a member, which it is told as JSON, and wait to be killed.
	asParent = "ELASTICRON_TEST_AS_PARENT"
)

func TestMain(m *testing.M) {
	switch told := os.Getenv(asParent); {
	case told != "":
		if err := parent(told); err != nil {
			panic(err)
		}
	case os.Getenv(asMember) != "":
		if err := etcdmember.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:forbidigo // as main does
		}
	default:
		goleak.VerifyTestMain(m)
	}
}

func parent(told string) error {
	var m etcdmember.Member
	if err := errors.Join(json.Unmarshal([]byte(told), &m), os.Unsetenv(asParent)); err != nil {
		return err
	}
	p, err := etcdmember.Spawn(context.Background(), os.Args[0], m)
	if err != nil {
		return err
	}
	fmt.Println(p.Endpoint()) //nolint:forbidigo // the test reads this
	select {}
}

func member(t *testing.T) etcdmember.Member {
	t.Setenv(asMember, "1")
	claim, err := ports.Take(1)
	require.NoError(t, err)
	t.Cleanup(func() { _ = claim.Close() })
	peers := []string{claim.Addr(0)}
	return etcdmember.Cluster(t.TempDir(), peers, peers)[0]
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func client(t *testing.T, p *etcdmember.Process) *clientv3.Client {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{p.Endpoint()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAProcessServesAndKeepsWhatItHas(t *testing.T) {
	m, ctx := member(t), within(t)
	p, err := etcdmember.Spawn(ctx, os.Args[0], m)
	require.NoError(t, err)
	c := client(t, p)
	_, err = c.Put(ctx, "key", "value")
	require.NoError(t, err)
	ops := make([]clientv3.Op, 129)
	for i := range ops {
		ops[i] = clientv3.OpGet(fmt.Sprint(i))
	}
	_, err = c.Txn(ctx).Then(ops...).Commit()
	require.ErrorContains(t, err, "too many operations", "etcd's own limit is 128")
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())

	m.OwnLimits = false
	p, err = etcdmember.Spawn(ctx, os.Args[0], m)
	require.NoError(t, err)
	defer p.Close()
	c = client(t, p)
	got, err := c.Get(ctx, "key")
	require.NoError(t, err)
	require.Equal(t, "value", string(got.Kvs[0].Value))
	_, err = c.Txn(ctx).Then(ops...).Commit()
	require.NoError(t, err)
}

func TestWhatDoesNotStartSaysWhy(t *testing.T) {
	m, ctx := member(t), within(t)
	taken, err := net.Listen("tcp", m.Peer)
	require.NoError(t, err)
	defer taken.Close()
	_, err = etcdmember.Spawn(ctx, os.Args[0], m)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, m.Peer)

	short, cancel := context.WithCancel(ctx)
	cancel()
	_, err = etcdmember.Spawn(short, os.Args[0], m)
	require.ErrorIs(t, err, context.Canceled)
	_, err = etcdmember.Spawn(ctx, "/nowhere", m)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAKilledParentLeavesNoMember(t *testing.T) {
	told, err := json.Marshal(member(t))
	require.NoError(t, err)
	cmd := exec.CommandContext(within(t), os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"="+string(told))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	listens := func() bool {
		conn, err := net.Dial("tcp", strings.TrimSpace(line))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	require.True(t, listens(), "it does not run: the check is void")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return !listens() }, time.Minute, 10*time.Millisecond)
}
