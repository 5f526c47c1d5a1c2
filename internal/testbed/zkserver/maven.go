package zkserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// DefaultVersion is what the way "maven" runs.
const DefaultVersion = "3.9.3"

const resolveTime = 5 * time.Minute

// project names the server and what it needs at run time without saying so. Its
// loggers are replaced by one that prints to standard error.
const project = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>elasticron</groupId>
  <artifactId>zookeeper</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.zookeeper</groupId>
      <artifactId>zookeeper</artifactId>
      <version>%s</version>
      <exclusions>
        <exclusion><groupId>ch.qos.logback</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.slf4j</groupId><artifactId>slf4j-log4j12</artifactId></exclusion>
      </exclusions>
    </dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
    <dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version></dependency>
    <dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version></dependency>
  </dependencies>
</project>
`

// resolve is the way "maven". Jars that were resolved once are used again, even
// without Maven.
func resolve(ctx context.Context, o Options) (host, error) {
	if err := needs("java", "sh"); err != nil {
		return nil, err
	}
	version := o.Version
	if version == "" {
		version = DefaultVersion
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "elasticron", "zookeeper-"+version)
	if _, err := os.Stat(dir); err != nil {
		if err := download(ctx, version, dir); err != nil {
			return nil, err
		}
	}
	return &processes{options: o, label: wayMaven, classPath: filepath.Join(dir, "*")}, nil
}

// download fills a folder beside dir and then renames it: dir is whole or absent.
func download(ctx context.Context, version, dir string) error {
	if err := needs("mvn"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "resolving-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	pom := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(pom, fmt.Appendf(nil, project, version), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	jars := filepath.Join(work, "jars")
	cmd := exec.CommandContext(ctx, "mvn", "-B", "-q", "-f", pom, //nolint:gosec // of this package's own making
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+jars)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("mvn cannot resolve ZooKeeper %s: %w: %s", version, err, lastLines(string(out)))
	}
	if err := os.Rename(jars, dir); err != nil {
		if _, other := os.Stat(dir); other == nil {
			return nil // another process was faster
		}
		return err
	}
	return nil
}

// lastLines cuts what a program has printed to what a person reads.
func lastLines(out string) string {
	const most = 3
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], " | ")
}
