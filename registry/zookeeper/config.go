package zookeeper

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/settings"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

const defaultPort = "2181"

func init() { settings.Register(urls, Open) }

// defaultLimits leave room for what the wire adds: a server as installed closes a connection on which a request of a
// mebibyte arrives, and everything that is under way on it fails too.
var defaultLimits = registry.Limits{MaxOps: 500, MaxBytes: 768 << 10, MaxValue: 256 << 10}

// perOp is what the wire adds to an operation's path and value at most, an ACL
// with one entry included; perCommit what it adds to all.
const perOp, perCommit = 64, 64

// Config says how to reach ZooKeeper and how its sessions live. The zero value
// lacks Servers and Namespace, which have no default.
type Config struct {
	// Servers are the client addresses of the ensemble, as host:port. The port is
	// 2181 when missing. Names are looked up again at every connection.
	Servers []string

	// Namespace is what Registry.Namespace returns, for example "shop" or
	// "team/shop". It is not put before any path. "elasticron" is reserved.
	Namespace string

	// Chroot is the node below which the whole tree of the registry stands, for example "/apps/eu"; empty for
	// ZooKeeper's own root. Open makes it when it is missing. No path of the registry shows it.
	Chroot string

	// SessionTimeout is how long a session outlives its last heartbeat, 6 s when zero. A server grants between 2 and 20
	// of its ticks unless it is told otherwise, whatever is asked for. 500 ms to 10 min may be asked for.
	SessionTimeout time.Duration

	// Username and Password log in with the scheme "digest". Every node that is created then belongs to that user
	// alone, as ElasticJob and Curator do it (all permissions, scheme "auth"); without a login, to the world.
	Username string
	Password string
	// PasswordFile, instead of Password, is read at Open; a line break at its end is dropped.
	PasswordFile string

	// TLS, when set, secures every connection. It is cloned.
	TLS *tls.Config
	// CAFile, CertFile and KeyFile are PEM files, read at Open: the authority that signed the servers (the system's
	// when empty) and the certificate shown to them. Any of them switches TLS on.
	CAFile   string
	CertFile string
	KeyFile  string

	// DialTimeout bounds Open and one attempt to connect, 5 s when zero.
	DialTimeout time.Duration

	// Limits of a commit; a zero field is 500 operations, 768 KiB in all, 256 KiB in a value. They must fit a request
	// of a million bytes, with 64 bytes and the length of Chroot more for each operation.
	Limits registry.Limits
}

// common is what settings reads, checks and completes.
func common(c *Config) settings.Common {
	return settings.Common{
		Adapter: "zookeeper", Example: "zookeeper://host:2181/shop", Address: settings.HostPort("server", defaultPort),
		Hosts: &c.Servers, Namespace: &c.Namespace, SessionTimeout: &c.SessionTimeout, DialTimeout: &c.DialTimeout,
		Username: &c.Username, Password: &c.Password, PasswordFile: &c.PasswordFile,
		TLS: &c.TLS, CAFile: &c.CAFile, CertFile: &c.CertFile, KeyFile: &c.KeyFile,
	}
}

// urls are zookeeper://host:port,host:port/namespace?setting=value.
var urls = settings.URLs[Config]{
	Common: common,
	Own: settings.Table[Config]{
		"chroot": func(c *Config, v string) error { return settings.Text(&c.Chroot, strings.TrimRight(v, "/")) },
	},
}

// complete fills in defaults, reads files, and reports what is wrong in one line.
func (c Config) complete() (Config, error) {
	if c.Chroot == "/" {
		c.Chroot = ""
	}
	if err := cmp.Or(c.check(), common(&c).Complete()); err != nil {
		return c, fmt.Errorf("zookeeper: %w: %w", registry.ErrInvalid, err)
	}
	c.Limits = settings.FillLimits(c.Limits, defaultLimits)
	return c, nil
}

func (c Config) check() error {
	switch {
	case len(c.Servers) == 0:
		return errors.New("no servers; give the client addresses of the ensemble, for example 127.0.0.1:2181")
	case strings.Contains(c.Username, ":"):
		return fmt.Errorf("username %q has a colon, which ends a name in ZooKeeper's digests", c.Username)
	}
	return cmp.Or(c.checkChroot(), settings.Limits(c.Limits), c.checkSize())
}

func (c Config) checkChroot() error {
	if c.Chroot == "" {
		return nil
	}
	if err := registry.ValidatePath(c.Chroot); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	if tree("").reserves(c.Chroot) {
		return fmt.Errorf("chroot %s belongs to ZooKeeper itself; choose another node", c.Chroot)
	}
	return nil
}

// checkSize makes sure that whatever Limits allow can be sent.
func (c Config) checkSize() error {
	c.Limits = settings.FillLimits(c.Limits, defaultLimits)
	worst := perCommit + c.Limits.MaxBytes + c.Limits.MaxOps*(perOp+len(c.Chroot))
	if worst < link.MaxRequest {
		return nil
	}
	return fmt.Errorf("limits %+v, with a chroot of %d bytes, may need requests of %d bytes, and less than %d fit; lower a limit or shorten the chroot",
		c.Limits, len(c.Chroot), worst, link.MaxRequest)
}

// digest is what is shown to a server.
func (c Config) digest() string {
	if c.Username == "" {
		return ""
	}
	return c.Username + ":" + c.Password
}
