// Package tools has no code of its own: this is the test of its scripts.
package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A machine is what the scripts find: programs, files, and a user.
type machine struct {
	t         *testing.T
	bin, root string
}

// bare has nothing but what a shell script lives on.
func bare(t *testing.T, user string) machine {
	t.Helper()
	m := machine{t: t, bin: t.TempDir(), root: t.TempDir()}
	m.real("mktemp", "rm", "tail", "mkdir", "touch")
	m.program("id", "echo "+user)
	return m
}

// real puts programs of this machine where programs are looked for.
func (m machine) real(names ...string) {
	m.t.Helper()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			m.t.Skip(err)
		}
		require.NoError(m.t, os.Symlink(path, filepath.Join(m.bin, name)))
	}
}

// program puts a script where programs are looked for.
func (m machine) program(name, script string) {
	m.t.Helper()
	sh, err := exec.LookPath("sh")
	require.NoError(m.t, err)
	require.NoError(m.t, os.WriteFile(filepath.Join(m.bin, name), []byte("#!"+sh+"\n"+script+"\n"), 0o700))
}

// all has everything that root's installation cannot bring, too.
func (m machine) all() {
	m.t.Helper()
	for _, name := range []string{"go", "make", "git", "gcc", "javac", "mvn", "etcd"} {
		m.program(name, "exit 0")
	}
	for _, file := range []string{"/usr/share/java/zookeeper.jar", "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/postgresql/15/bin/postgres", "/usr/sbin/pgbouncer"} {
		require.NoError(m.t, os.MkdirAll(filepath.Dir(m.root+file), 0o700))
		require.NoError(m.t, os.WriteFile(m.root+file, nil, 0o600))
	}
}

func (m machine) setup(environment ...string) (said string, ok bool) {
	m.t.Helper()
	cmd := m.bash("setup")
	cmd.Env = append(cmd.Env, environment...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.Equal(m.t, 1, cmd.ProcessState.ExitCode(), string(out))
	}
	return string(out), err == nil
}

func (m machine) bash(arguments ...string) *exec.Cmd {
	m.t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		m.t.Skip(err)
	}
	cmd := exec.Command(bash, arguments...)
	cmd.Env = []string{"PATH=" + m.bin, "ELASTICRON_SETUP_ROOT=" + m.root, "TMPDIR=" + m.root}
	return cmd
}

const nobody, root = "65534", "0"

func TestWhoMayNotInstallGetsOneMessage(t *testing.T) {
	for user, environment := range map[string]string{nobody: "", root: "ELASTICRON_SETUP=look"} {
		m := bare(t, user)
		m.program("apt-get", "echo must not be called")
		said, ok := m.setup(environment)
		require.False(t, ok)
		require.NotContains(t, said, "must not be called")
		for _, name := range []string{"go ", "make ", "git ", "gcc ", "javac ", "mvn ", "zookeeper.jar ", "libfaketime.so.1 ", "etcd ", "postgres ", "pgbouncer ", "docker ", "dockerd "} {
			require.Contains(t, said, "\n  "+name)
		}
		require.Contains(t, said, "https://go.dev/dl")
		require.Contains(t, said, "\nsetup: on Debian, as root: apt-get install --no-install-recommends "+
			"make git gcc libc6-dev default-jdk-headless maven libzookeeper-java faketime etcd-server postgresql pgbouncer\n")
		require.Contains(t, said, "missing here, and not needed (")
	}
}

func TestRootOnDebianGetsWhatIsMissing(t *testing.T) {
	m := bare(t, root)
	m.all()
	require.NoError(t, os.RemoveAll(filepath.Join(m.root, "/usr/share")))
	// It installs the one file, and the engine's programs, which it has been asked for.
	m.program("apt-get", `echo "$*" >>"$ELASTICRON_SETUP_ROOT/calls"
case $1 in install)
	mkdir -p "$ELASTICRON_SETUP_ROOT/usr/share/java" && touch "$ELASTICRON_SETUP_ROOT/usr/share/java/zookeeper.jar" ;;
esac`)
	said, ok := m.setup()
	require.True(t, ok, said)
	calls, err := os.ReadFile(filepath.Join(m.root, "calls"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(calls)), "\n")
	require.Len(t, lines, 2)
	require.True(t, strings.HasPrefix(lines[0], "update "), lines[0])
	require.Regexp(t, `^install .* libzookeeper-java (docker.io ){2}iptables debootstrap$`, lines[1])
	require.Contains(t, said, "installed now from Debian's packages")
	require.Contains(t, said, "\n  zookeeper.jar ", "it says so before it does so")

	require.NoError(t, os.Remove(filepath.Join(m.root, "calls")))
	_, ok = m.setup("ELASTICRON_ZOOKEEPER_WAY=process")
	require.True(t, ok)
	require.NoFileExists(t, filepath.Join(m.root, "calls"), "nothing is missing")
}

func TestWhatCannotBeInstalledIsStillMissing(t *testing.T) {
	m := bare(t, root)
	m.all()
	require.NoError(t, os.Remove(filepath.Join(m.bin, "gcc")))
	m.program("apt-get", "echo 'E: no route to the mirror'; exit 100")
	said, ok := m.setup()
	require.False(t, ok)
	require.Contains(t, said, "E: no route to the mirror")
	require.Regexp(t, `setup: missing here \(.*\n  gcc +gcc libc6-dev +the race detector\n`, said)

	m.program("gcc", "exit 0")
	require.NoError(t, os.Remove(filepath.Join(m.bin, "go")))
	m.program("apt-get", "echo must not be called")
	said, ok = m.setup("ELASTICRON_ZOOKEEPER_WAY=process")
	require.False(t, ok)
	require.Regexp(t, `^setup: missing here \(.*\n  go .*\nsetup: go test .*\n$`, said, "no package has Go")
}

func TestContainersAreDemandedByName(t *testing.T) {
	m := bare(t, nobody)
	m.all()
	said, ok := m.setup()
	require.True(t, ok, said)
	require.Contains(t, said, "\n  docker ")
	said, ok = m.setup("ELASTICRON_ZOOKEEPER_WAY=container")
	require.False(t, ok)
	require.NotContains(t, said, "not needed")
	m.program("docker", "exit 0") // an engine answers, and has the image
	said, ok = m.setup("ELASTICRON_ZOOKEEPER_WAY=container")
	require.True(t, ok)
	require.Empty(t, said)
	said, ok = m.setup("ELASTICRON_ZOOKEEPER=127.0.0.1:2181")
	require.True(t, ok)
	require.Empty(t, said)
}
