package field_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/field"
)

func TestErrorIsOneLineThatSaysWhere(t *testing.T) {
	for want, e := range map[string]field.Error{
		"is empty":                              {Problem: "is empty"},
		"cron: is empty":                        {Field: "cron", Problem: "is empty"},
		`job "a": Cron: is empty`:               {Job: "a", Field: "Cron", Problem: "is empty"},
		`job "a b": line 3: cron: is empty`:     {Job: "a b", Line: 3, Field: "cron", Problem: "is empty"},
		"line 3: cron: is empty":                {Line: 3, Field: "cron", Problem: "is empty"},
		"f.yaml: is empty":                      {File: "f.yaml", Problem: "is empty"},
		"f.yaml:2: is empty":                    {File: "f.yaml", Line: 2, Problem: "is empty"},
		"f.yaml:2:7: jobs.a.cron: is empty":     {File: "f.yaml", Line: 2, Column: 7, Job: "a", Field: "jobs.a.cron", Problem: "is empty"},
		"/shop/a/config:4: failover: is a list": {File: "/shop/a/config", Line: 4, Job: "a", Field: "failover", Problem: "is a list"},
	} {
		require.EqualError(t, &e, want)
	}
}

func TestEveryErrorIsErrWrongAndItsCause(t *testing.T) {
	err := error(field.Errorf("cron", "cannot be read: %w", io.ErrUnexpectedEOF))
	require.EqualError(t, err, "cron: cannot be read: unexpected EOF")
	require.ErrorIs(t, err, field.ErrWrong)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotErrorIs(t, err, io.EOF)
	require.ErrorIs(t, fmt.Errorf("x: %w", err), field.ErrWrong)
	require.NoError(t, field.Errorf("cron", "is %d", 1).Err)
}

func TestAllAndAdapt(t *testing.T) {
	a, b := field.Errorf("a", "is 1: %w", field.Errorf("inner", "x")), field.Errorf("b", "is 2")
	require.Empty(t, field.All(nil))
	require.Empty(t, field.All(io.EOF))
	require.Equal(t, []*field.Error{a}, field.All(a))
	tree := fmt.Errorf("x: %w", errors.Join(io.EOF, fmt.Errorf("y: %w", a), errors.Join(b)))
	require.Equal(t, []*field.Error{a, b}, field.All(tree))

	mark := func(e *field.Error) { e.Job = "j" }
	require.NoError(t, field.Adapt(nil, mark))
	require.Equal(t, io.EOF, field.Adapt(io.EOF, mark))
	require.EqualError(t, field.Adapt(a, mark), `job "j": a: is 1: inner: x`)
	require.EqualError(t, field.Adapt(tree, mark), "job \"j\": a: is 1: inner: x\njob \"j\": b: is 2")
	require.Empty(t, a.Job, "the original stays as it is")
	require.Empty(t, cmp.Diff(b, field.All(field.Adapt(b, mark))[0], cmpopts.IgnoreFields(field.Error{}, "Job")))
}
