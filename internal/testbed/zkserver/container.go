package zkserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/internal/ports"
)

// containers are run by a Docker engine of this machine. Each guard is the first
// process of its container: the container ends with it.
type containers struct {
	options Options
	image   string

	names   []string
	ports   *ports.Claim
	network *network // between members; nil for one that is alone
}

const (
	engineTime = 20 * time.Second
	pullTime   = 2 * time.Minute

	clientPort = 2181 // inside, all members have the same
	followers  = 2888
	elections  = 3888
)

// engineImages remembers what was found, by the image that was wanted: neither the
// engine nor the network is asked again by every test.
var engineImages struct {
	mu    sync.Mutex
	found map[string]foundImage
}

type foundImage struct {
	image string
	err   error
}

// findEngine is the way "container".
func findEngine(ctx context.Context, o Options) (host, error) {
	if err := needs("docker"); err != nil {
		return nil, err
	}
	e := &engineImages
	e.mu.Lock()
	defer e.mu.Unlock()
	wanted := os.Getenv(EnvImage)
	f, known := e.found[wanted]
	if !known {
		f.image, f.err = findImage(ctx, wanted)
		if e.found == nil {
			e.found = map[string]foundImage{}
		}
		if ctx.Err() == nil {
			e.found[wanted] = f
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	return &containers{options: o, image: f.image}, nil
}

func findImage(ctx context.Context, wanted string) (string, error) {
	if _, err := docker(ctx, engineTime, "info", "--format", "{{.ServerVersion}}"); err != nil {
		return "", fmt.Errorf("no Docker engine answers: %w", err)
	}
	local := []string{wanted}
	if wanted == "" {
		wanted, local = OfficialImage, []string{OfficialImage, DebianImage}
	}
	for _, image := range local {
		if _, err := docker(ctx, engineTime, "image", "inspect", image); err == nil {
			return image, nil
		}
	}
	if _, err := docker(ctx, pullTime, "pull", "--quiet", wanted); err != nil {
		return "", fmt.Errorf("the image %s is not here and cannot be pulled (.ci/zookeeper-image builds one): %w", wanted, err)
	}
	return wanted, nil
}

// docker runs the client and returns what it prints.
func docker(ctx context.Context, limit time.Duration, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", arguments...) //nolint:gosec // of this package's own making
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("docker %s: %w: %s", arguments[0], err, lastLines(text))
	}
	return text, nil
}

func (c *containers) name(version string) string {
	return fmt.Sprintf("container %s (%s)", c.image, version)
}

func (c *containers) places(n int) ([]place, error) {
	_ = c.ports.Close() // of an attempt before
	claim, err := ports.Take(n)
	if err != nil {
		return nil, err
	}
	c.ports = claim
	c.names = nil
	if n > 1 && c.network == nil {
		if c.network, err = newNetwork(); err != nil {
			return nil, err
		}
	}
	places := make([]place, n)
	for i := range places {
		c.names = append(c.names, uniqueName())
		places[i] = place{addr: claim.Addr(i), listen: "0.0.0.0", clientPort: clientPort}
		for k := 0; k < n && c.network != nil; k++ {
			places[i].members = append(places[i].members, fmt.Sprint(c.network.address(k), ":", followers, ":", elections))
		}
	}
	return places, nil
}

// ownerLabel tells people and tests whose containers and networks these are.
func ownerLabel() string { return fmt.Sprint("elasticron.owner=", os.Getpid()) }

func uniqueName() string { return fmt.Sprintf("elasticron-zookeeper-%08x", rand.Uint32()) }

func (c *containers) launch(ctx context.Context, i int, at place, env []string) (*member, error) {
	const folder = "/elasticron"
	arguments := []string{
		"run", "--rm", "--interactive", "--name", c.names[i], "--tmpfs", folder, "--label", ownerLabel(),
		"--publish", fmt.Sprint(at.addr, ":", at.clientPort), "--entrypoint", "sh",
	}
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		arguments = append(arguments, "--env", name)
	}
	arguments = append(arguments, c.image, "-c", guardScript, "sh", fmt.Sprint(folder, "/member", i))
	cmd := exec.Command("docker", arguments...) //nolint:gosec // as above
	cmd.Env = append(os.Environ(), env...)
	m, err := launch(ctx, cmd, at.addr, c.options.Log)
	if err != nil || c.network == nil {
		return m, err
	}
	if err := c.network.connect(ctx, i, c.names[i]); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (c *containers) partition(ctx context.Context, i int) (heal func() error, err error) {
	if c.network == nil {
		return nil, errAlone
	}
	if _, err := docker(ctx, engineTime, "network", "disconnect", c.network.name, c.names[i]); err != nil {
		return nil, err
	}
	return func() error { return c.network.connect(context.Background(), i, c.names[i]) }, nil
}

func (c *containers) close() error {
	err := c.ports.Close()
	if c.network != nil {
		err = errors.Join(err, c.network.close())
	}
	return err
}

// A network joins the members of one cluster and nobody else. Clients come another
// way, so that it can be cut.
type network struct {
	name  string
	first netip.Addr
	sweep *member // removes the network when this process ends
}

// networkScript waits for the end of standard input, as guards do, and then removes
// the network with whatever is still in it.
const networkScript = `trap '' PIPE
echo done ready 0
while read -r _; do :; done
for try in 1 2 3 4 5 6 7 8 9 10; do
	docker network inspect "$1" >/dev/null 2>&1 || exit 0
	docker network inspect -f '{{range .Containers}}{{println .Name}}{{end}}' "$1" 2>/dev/null |
		while read -r name; do [ -z "$name" ] || docker rm -f "$name" >/dev/null 2>&1; done
	docker network rm "$1" >/dev/null 2>&1 || sleep 0.5
done
exit 1`

// newNetwork makes a network with addresses of its own choice: the engine gives
// members fixed addresses only in a range that it was told, so it is asked for a
// free range first.
func newNetwork() (*network, error) {
	ctx, cancel := context.WithTimeout(context.Background(), engineTime)
	defer cancel()
	n := &network{name: uniqueName()}
	var err error
	sweep := exec.Command("sh", "-c", networkScript, "sh", n.name) //nolint:gosec // as above
	if n.sweep, err = launch(ctx, sweep, n.name, nil); err != nil {
		return nil, err
	}
	for range tries { // another process may be given the range in between
		var subnet string
		if subnet, err = n.create(ctx); err != nil {
			continue
		}
		if _, err = docker(ctx, engineTime, "network", "rm", n.name); err != nil {
			break
		}
		if _, err = n.create(ctx, "--subnet", subnet); err != nil {
			continue
		}
		var prefix netip.Prefix
		if prefix, err = netip.ParsePrefix(subnet); err == nil {
			n.first = prefix.Masked().Addr()
			return n, nil
		}
	}
	return nil, errors.Join(err, n.close())
}

// create returns the network's range.
func (n *network) create(ctx context.Context, more ...string) (string, error) {
	arguments := append([]string{"network", "create", "--internal", "--label", ownerLabel()}, more...)
	if _, err := docker(ctx, engineTime, append(arguments, n.name)...); err != nil {
		return "", err
	}
	return docker(ctx, engineTime, "network", "inspect", "--format", "{{(index .IPAM.Config 0).Subnet}}", n.name)
}

// address is that of member i; the first ones are the engine's.
func (n *network) address(i int) string {
	a := n.first
	for range i + 2 { // the network itself, its gateway
		a = a.Next()
	}
	return a.String()
}

func (n *network) connect(ctx context.Context, i int, container string) error {
	_, err := docker(ctx, engineTime, "network", "connect", "--ip", n.address(i), n.name, container)
	return err
}

func (n *network) close() error {
	if err := n.sweep.close(); err != nil {
		return err
	}
	if code := n.sweep.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("zkserver: the network %s cannot be removed", n.name)
	}
	return nil
}
