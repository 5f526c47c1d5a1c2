package main

import (
	"context"
	"errors"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	s, err := parseFlags([]string{"-rounds", "6", "-workers=2", "-zookeeper"})
	require.NoError(t, err)
	require.Equal(t, settings{rounds: 6, workers: 2, items: 8, zookeeper: true}, s)
	s, err = parseFlags([]string{"-registry", "zookeeper://127.0.0.1:2181/demo"})
	require.NoError(t, err)
	require.Equal(t, "zookeeper://127.0.0.1:2181/demo", s.registry)
	_, err = parseFlags([]string{"-help"})
	require.ErrorIs(t, err, flag.ErrHelp)
}

func TestWrongFlagsAreOneLine(t *testing.T) {
	const keep = "-keep keeps the embedded etcd's folder; it means nothing with -registry and -zookeeper"
	for _, c := range []struct {
		want string
		args []string
	}{
		{"flag provided but not defined: -round; see -help", []string{"-round", "1"}},
		{`invalid value "x" for flag -rounds: parse error; see -help`, []string{"-rounds", "x"}},
		{`unknown argument "etcd"; see -help`, []string{"etcd"}},
		{"-rounds 0: give at least 1", []string{"-rounds", "0"}},
		{"-workers 1: give at least 2, since one is killed", []string{"-workers", "1"}},
		{"-items 1001: give 1 to 1000", []string{"-items", "1001"}},
		{"-zookeeper starts a registry and -registry names one that runs; leave one", []string{"-zookeeper", "-registry", "etcd://h/a"}},
		{keep, []string{"-keep", "-zookeeper"}},
		{keep, []string{"-keep", "-registry", "etcd://h/a"}},
		{"-registry memory: lives in one process, and the workers are several; leave -registry out to share an embedded etcd", []string{"-registry", "memory://a/b"}},
	} {
		_, err := parseFlags(c.args)
		require.EqualError(t, err, "quickstart: "+c.want)
		require.Equal(t, exitUsage, statusOf(t.Context(), err))
	}
}

func TestExitStatus(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, 0, statusOf(t.Context(), nil))
	require.Equal(t, 0, statusOf(interrupted, nil))
	require.Equal(t, exitFailed, statusOf(t.Context(), errors.New("a difference")))
	require.Equal(t, exitInterrupted, statusOf(interrupted, errors.New("cut off")))
	require.Equal(t, exitUsage, statusOf(interrupted, usagef("wrong")))
}
