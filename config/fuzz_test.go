package config

import (
	"errors"
	"strings"
	"testing"
)

// Whatever the bytes: no panic, and either a configuration that can be used or
// problems of one line each.
func FuzzParse(f *testing.F) {
	f.Add([]byte(every))
	f.Add([]byte(oneJob + "shardingTotalCount: 1\n"))
	f.Add([]byte("registry: {url: &a ${X:-$$}, tls: {ca: *a}}\njobs: [!t {<<: x}]\n"))
	f.Add([]byte("registry:\n\turl: etcd://jo:pw@h/s?password=x\n---\n"))
	f.Add([]byte("jobs:\n  a: {maxTimeDiffSeconds: 1, reconcileIntervalMinutes: [], shardingItemParameters: {0: a}}\n"))
	f.Add([]byte(application))
	f.Add([]byte("elasticjob.regCenter: {server-lists: a, namespace: b, digest: '${X}'}\nelasticjob: {jobs: {\"[a.b]\": {cron: '@daily', props: {a: {b: c}, a.b: d}}}}\n"))
	f.Add([]byte("reg-center: {}\njobs.a.cron: '#{x} ${y:${z}} $'\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f.yaml", data)
		if err == nil {
			if _, err := c.Registry.URL(); err != nil {
				t.Fatalf("accepted, but: %v", err)
			}
			for _, j := range c.Jobs {
				if err := j.Validate(); err != nil {
					t.Fatalf("accepted, but: %v", err)
				}
			}
			_ = c.String()
			return
		}
		all, ok := errors.AsType[*Error](err)
		if !ok || len(all.Problems) == 0 {
			t.Fatalf("%T: %v", err, err)
		}
		line := 0
		for _, p := range all.Problems {
			if p.Line < line || strings.ContainsAny(p.Error(), "\n\r") || p.Problem == "" {
				t.Fatalf("%q", p.Error())
			}
			line = p.Line
		}
	})
}
