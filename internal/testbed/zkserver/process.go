package zkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/elasticron/elasticron/internal/ports"
)

// processes run as children of the guards, with a class path of jars that are here.
type processes struct {
	options   Options
	label     string // "process Debian"
	classPath string

	ports *ports.Claim
	mesh  mesh

	mu        sync.Mutex
	temporary string
}

// Where Debian's packages libzookeeper-java and libslf4j-java put their jars; the
// first names what else it needs in its manifest.
const (
	debianServer = "/usr/share/java/zookeeper.jar"
	debianLog    = "/usr/share/java/slf4j-simple.jar"
)

// findPackage is the way "process".
func findPackage(o Options) (host, error) {
	if err := needs("java", "sh"); err != nil {
		return nil, err
	}
	if _, err := os.Stat(debianServer); err != nil {
		return nil, fmt.Errorf("no server of Debian's package zookeeper (or libzookeeper-java): %w", err)
	}
	return &processes{options: o, label: "process Debian", classPath: debianServer + ":" + debianLog}, nil
}

// needs looks for programs.
func needs(programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("no %s: %w", p, err)
		}
	}
	return nil
}

func (p *processes) name(version string) string { return p.label + " " + version }

func (p *processes) places(n int) ([]place, error) {
	const each, loopback = 3, "127.0.0.1"
	if err := errors.Join(p.ports.Close(), p.mesh.close()); err != nil { // of an attempt before
		return nil, err
	}
	claim, err := ports.Take(each * n)
	if err != nil {
		return nil, err
	}
	p.ports = claim
	listen := make([][2]string, n)
	for i := range listen {
		listen[i] = [2]string{claim.Addr(each*i + 1), claim.Addr(each*i + 2)}
	}
	if p.mesh, err = newMesh(listen); err != nil {
		return nil, err
	}
	places := make([]place, n)
	for i := range places {
		places[i] = place{addr: claim.Addr(each * i), listen: loopback, clientPort: claim.Number(each * i)}
		for k, at := range listen {
			if i != k {
				at = [2]string{p.mesh[i][k][0].addr(), p.mesh[i][k][1].addr()}
			}
			places[i].members = append(places[i].members, at[0]+strings.TrimPrefix(at[1], loopback))
		}
	}
	return places, nil
}

func (p *processes) launch(ctx context.Context, i int, at place, env []string) (*member, error) {
	base := p.options.Dir
	if base == "" {
		dir, err := p.temporaryDir()
		if err != nil {
			return nil, err
		}
		base = dir
	}
	cmd := exec.Command("sh", "-c", guardScript, "sh", filepath.Join(base, fmt.Sprint("member", i))) //nolint:gosec // of this package's own making
	cmd.Env = append(os.Environ(), env...)
	cmd.Env = append(cmd.Env, "ELASTICRON_CP="+p.classPath)
	return launch(ctx, cmd, at.addr, p.options.Log)
}

// inMemory is a folder that costs no disk.
const inMemory = "/dev/shm"

// temporaryDir is the folder of all members. The last guard removes it.
func (p *processes) temporaryDir() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.temporary != "" {
		return p.temporary, nil
	}
	const pattern = "elasticron-zookeeper-"
	dir, err := os.MkdirTemp(inMemory, pattern)
	if err != nil {
		dir, err = os.MkdirTemp("", pattern)
	}
	p.temporary = dir
	return dir, err
}

func (p *processes) partition(_ context.Context, i int) (func() error, error) {
	if len(p.mesh) == 1 {
		return nil, errAlone
	}
	heal := p.mesh.part(i)
	return func() error { heal(); return nil }, nil
}

func (p *processes) close() error {
	err := errors.Join(p.ports.Close(), p.mesh.close())
	p.mesh = nil
	if p.temporary != "" {
		err = errors.Join(err, os.RemoveAll(p.temporary))
	}
	return err
}

// taken marks errors that other ports may cure.
func taken(err error) error {
	if err == nil {
		return nil
	}
	for _, sign := range []string{"bindexception", "address already in use", "port is already allocated"} {
		if strings.Contains(strings.ToLower(err.Error()), sign) {
			return errors.Join(errPortTaken, err)
		}
	}
	return err
}
