package secret

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/field"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	t.Setenv("SECRET_TEST", "hunter2")
	t.Setenv("SECRET_TEST_EMPTY", "")
	for _, c := range []struct {
		props     map[string]string
		want, err string
		absent    bool
	}{
		{want: ""},
		{props: map[string]string{"aEnv": "SECRET_TEST"}, want: "hunter2"},
		{props: map[string]string{"aFile": write("lines", "hunter2\r\n\n")}, want: "hunter2"},
		{props: map[string]string{"a": "hunter2"}, err: "Props.a: is a secret, which all who read the registry would see; " +
			"put it in a file that aFile names, or in an environment variable that aEnv names"},
		{props: map[string]string{"aEnv": "SECRET_TEST", "aFile": "x"}, err: "Props.aFile: is given, and aEnv too; leave one"},
		{props: map[string]string{"aEnv": "SECRET_TEST_EMPTY"}, err: "Props.aEnv: names what is empty or not set; put the secret there", absent: true},
		{props: map[string]string{"aFile": write("empty", "\n")}, err: "Props.aFile: names what is empty or not set; put the secret there", absent: true},
		{props: map[string]string{"aFile": filepath.Join(dir, "none")}, err: "Props.aFile: cannot be read: open " + filepath.Join(dir, "none") + ": no such file or directory", absent: true},
	} {
		got, err := Read(c.props, "a")
		require.Equal(t, c.want, got)
		require.Equal(t, c.props["aEnv"] != "" || c.props["aFile"] != "", Given(c.props, "a"))
		if c.err == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, c.err)
		require.ErrorIs(t, err, field.ErrWrong)
		require.Equal(t, c.absent, isAbsent(err), err)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
