package testbed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	resolveTime = 5 * time.Minute
	compileTime = time.Minute
)

// JavaClasses returns the class path of Java sources and of the jars that a pom.xml names,
// which stand in a folder of the user's cache by this name from the first call on. Without
// Java or Maven the test is skipped, or fails where ZooKeeper is required; what is tested is
// said then. A test that changes the pom.xml changes the name.
func JavaClasses(t *testing.T, what, name, pom string, args []string, sources ...string) string {
	t.Helper()
	for _, tool := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			text := fmt.Sprintf("\n!!! %s was NOT tested: %v.\n!!! Install Debian's packages default-jdk-headless and maven.", what, err)
			if os.Getenv(RequiredEnv) == "1" {
				t.Fatal(text)
			}
			t.Skip(text)
		}
	}
	dir, err := resolveJars(t.Context(), name, pom, args)
	require.NoError(t, err)
	classes := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), compileTime)
	defer cancel()
	jars := filepath.Join(dir, "*")
	javac := append([]string{"-Xlint:all,-processing", "-Werror", "-proc:none", "-cp", jars, "-d", classes}, sources...)
	out, err := exec.CommandContext(ctx, "javac", javac...).CombinedOutput()
	require.NoError(t, err, string(out))
	return classes + string(os.PathListSeparator) + jars
}

// resolveJars fills a folder beside the cached one and then renames it: that is whole or
// absent.
func resolveJars(ctx context.Context, name, pom string, args []string) (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "elasticron", name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "resolving-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	jars := filepath.Join(work, "jars")
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	mvn := append([]string{"-B", "-q", "-f", pom, "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=" + jars}, args...)
	if out, err := exec.CommandContext(ctx, "mvn", mvn...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("mvn cannot resolve %s: %w: %s", name, err, out)
	}
	if err := os.Rename(jars, dir); err != nil {
		if _, other := os.Stat(dir); other != nil {
			return "", err
		}
	}
	return dir, nil
}
