package layout

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/field"
)

func TestInstanceID(t *testing.T) {
	id, err := NewInstanceID("10.0.0.5", "web-1")
	require.NoError(t, err)
	require.Regexp(t, `^10\.0\.0\.5@-@web-1-[a-z2-7]{10}$`, id.String())
	require.Equal(t, "web-1", id.Stable())
	require.False(t, id.IsJava())
	back, err := ParseInstanceID(id.String())
	require.NoError(t, err)
	require.Equal(t, id, back)

	next, err := NewInstanceID("10.0.0.5", "web-1")
	require.NoError(t, err)
	require.NotEqual(t, id, next, "a life is never used twice")
	require.Equal(t, id.Stable(), next.Stable())
}

func TestParseInstanceID(t *testing.T) {
	for s, want := range map[string]struct {
		id     InstanceID
		java   bool
		stable string
	}{
		"10.0.0.5@-@4711":       {InstanceID{"10.0.0.5", "4711", ""}, true, "10.0.0.5@-@4711"},
		"10.0.0.5@-@web-abc":    {InstanceID{"10.0.0.5", "web", "abc"}, false, "web"},
		"10.0.0.5@-@a-b-c":      {InstanceID{"10.0.0.5", "a-b", "c"}, false, "a-b"},
		"10.0.0.5@-@47x":        {InstanceID{"10.0.0.5", "47x", ""}, false, "10.0.0.5@-@47x"},
		"10.0.0.5@-@web-":       {InstanceID{"10.0.0.5", "web-", ""}, false, "10.0.0.5@-@web-"},
		"10.0.0.5@-@-web":       {InstanceID{"10.0.0.5", "-web", ""}, false, "10.0.0.5@-@-web"},
		"10.0.0.5@-@web-a.b":    {InstanceID{"10.0.0.5", "web-a.b", ""}, false, "10.0.0.5@-@web-a.b"},
		"255.255.255.255@-@1-2": {InstanceID{"255.255.255.255", "1", "2"}, false, "1"},
	} {
		id, err := ParseInstanceID(s)
		require.NoError(t, err, s)
		require.Equal(t, want.id, id)
		require.Equal(t, s, id.String())
		require.Equal(t, want.java, id.IsJava(), s)
		require.Equal(t, want.stable, id.Stable())
	}
	for _, s := range []string{"", "x", "@-@1", "10.0.0.5@-@", "10.0.0@-@1", "::1@-@1", "host@-@1", "010.0.0.5@-@1", "10.0.0.5@-@a@-@b", "10.0.0.5@-@a/b", "10.0.0.5:80@-@1"} {
		id, err := ParseInstanceID(s)
		var wrong *field.Error
		require.ErrorAs(t, err, &wrong, s)
		require.Zero(t, id)
	}
}

func TestInstanceIDRefuses(t *testing.T) {
	for name, c := range map[string]struct{ ip, name, field, says string }{
		"IPv6":      {"fe80::1", "n", "ip", "IPv4"},
		"mapped":    {"::ffff:10.0.0.5", "n", "ip", "IPv4"},
		"host name": {"localhost", "n", "ip", "IPv4"},
		"no ip":     {"", "n", "ip", "IPv4"},
		"no name":   {"10.0.0.5", "", "name", "is empty"},
		"slash":     {"10.0.0.5", "a/b", "name", "neither"},
		"at":        {"10.0.0.5", "a@-@b", "name", "neither"},
		"long":      {"10.0.0.5", strings.Repeat("n", 65), "name", "shorten"},
		"newline":   {"10.0.0.5", "a\nb", "name", "U+000A"},
		"not UTF-8": {"10.0.0.5", "a\xff", "name", "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewInstanceID(c.ip, c.name)
			var wrong *field.Error
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, c.field, wrong.Field)
			require.Contains(t, err.Error(), c.says)
		})
	}
	for _, life := range []string{"", "a-b", "a b", "é"} {
		require.ErrorContains(t, InstanceID{"10.0.0.5", "n", life}.Validate(), "NewLife")
	}
}

func TestNewLifeDoesNotRepeat(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		life := NewLife()
		require.Regexp(t, `^[a-z2-7]{10}$`, life)
		require.False(t, seen[life])
		seen[life] = true
	}
}

func TestMarshalInstance(t *testing.T) {
	text, err := MarshalInstance(InstanceID{"10.0.0.5", "web-1", "k3"})
	require.NoError(t, err)
	require.Equal(t, "jobInstanceId: 10.0.0.5@-@web-1-k3\nserverIp: 10.0.0.5\n", string(text))

	text, err = MarshalInstance(InstanceID{"10.0.0.5", "a: b #", "k3"})
	require.NoError(t, err)
	require.Equal(t, "jobInstanceId: '10.0.0.5@-@a: b #-k3'\nserverIp: 10.0.0.5\n", string(text))
	in, err := UnmarshalInstance(text)
	require.NoError(t, err)
	require.Equal(t, Instance{JobInstanceID: "10.0.0.5@-@a: b #-k3", ServerIP: "10.0.0.5"}, in)

	_, err = MarshalInstance(InstanceID{"10.0.0.5", "4711", ""})
	require.Error(t, err)
}

func TestUnmarshalInstance(t *testing.T) {
	both := Instance{JobInstanceID: "10.0.0.5@-@4711", ServerIP: "10.0.0.5"}
	for text, want := range map[string]Instance{
		"":        {},
		" \n":     {},
		"TRIGGER": {Trigger: true},
		"jobInstanceId: 10.0.0.5@-@4711\nserverIp: 10.0.0.5\n":                        both,
		"jobInstanceId: 10.0.0.5@-@4711\nlabels: {a: b}\nserverIp: 10.0.0.5\n":        both,
		`{"jobInstanceId":"10.0.0.5@-@4711","serverIp":"10.0.0.5","x":[1]}`:           both,
		"!!org.apache.Some\njobInstanceId: 10.0.0.5@-@4711\nserverIp: !!str 10.0.0.5": both,
		"jobInstanceId: 10.0.0.5@-@4711\n":                                            {JobInstanceID: "10.0.0.5@-@4711"},
		"jobInstanceId: a\nserverIp: ~\n":                                             {JobInstanceID: "a"},
	} {
		in, err := UnmarshalInstance([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, in, text)
	}
	for _, text := range []string{"x", "[1]", "{", "a: b: c", "jobInstanceId: [1]", "\xff"} {
		in, err := UnmarshalInstance([]byte(text))
		var wrong *field.Error
		require.ErrorAs(t, err, &wrong, text)
		require.Zero(t, in)
	}
}

func TestServer(t *testing.T) {
	for status, want := range map[string]bool{
		"ENABLED": true, "DISABLED": false, "": true, " ENABLED\n": true, //nolint:gocritic // the space is what is tested
	} {
		enabled, err := ServerEnabled(status)
		require.NoError(t, err)
		require.Equal(t, want, enabled, status)
	}
	for _, status := range []string{"enabled", "off", strings.Repeat("x", 1<<20)} {
		enabled, err := ServerEnabled(status)
		require.ErrorContains(t, err, "want ENABLED or DISABLED")
		require.Less(t, len(err.Error()), 100)
		require.False(t, enabled)
	}
	for _, want := range []bool{true, false} {
		enabled, err := ServerEnabled(ServerStatus(want))
		require.NoError(t, err)
		require.Equal(t, want, enabled)
	}
}
