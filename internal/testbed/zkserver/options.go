package zkserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// The environment that chooses.
const (
	// EnvAddress names servers that run already: host:port, comma separated.
	EnvAddress = "ELASTICRON_ZOOKEEPER"
	// EnvServed says what runs at EnvAddress, for people.
	EnvServed = "ELASTICRON_ZOOKEEPER_SERVED"
	// EnvWay forces a way: "address", "container", "process" or "maven".
	EnvWay = "ELASTICRON_ZOOKEEPER_WAY"
	// EnvImage names the image of the container.
	EnvImage = "ELASTICRON_ZOOKEEPER_IMAGE"
)

// The images that are tried without EnvImage.
const (
	OfficialImage = "zookeeper:3.9"
	DebianImage   = "elasticron/zookeeper:3.8-debian"
)

// Options of a cluster. The zero value is one server, by the first way that works.
type Options struct {
	// Members is the number of servers; 1 when zero.
	Members int
	// Tick is the server's tickTime: sessions last from two ticks on, and expire up
	// to one tick late. 500 ms when zero.
	Tick time.Duration
	// Dir is where the servers' folders are made, and removed again: a temporary
	// folder when empty, in memory where possible. A container has its own.
	Dir string
	// Way forces a way; EnvWay does, or the first that works serves, when empty.
	Way string
	// Version forces the way "maven" with this version of the server.
	Version string
	// Own wants servers that nobody shares, and thus can be disturbed.
	Own bool
	// Java are more options of the virtual machine, such as -Dzookeeper.x=y.
	Java []string
	// Config are more lines of zoo.cfg.
	Config []string
	// Log gets what the servers print; nil drops it.
	Log io.Writer
}

// ErrUnsupported is wrapped by what the way of a cluster cannot do.
var ErrUnsupported = errors.New("zkserver: not supported")

// ErrAbsent is wrapped by the reasons of ways whose programs are not here: nothing
// was started that then failed.
var ErrAbsent = errors.New("absent")

// UnavailableError says why no way works.
type UnavailableError struct {
	// Reasons are the ways that were tried, in order.
	Reasons []Reason
}

// A Reason is why one way does not work.
type Reason struct {
	Way string
	Err error
}

func (u *UnavailableError) Error() string {
	var b strings.Builder
	b.WriteString("zkserver: no way to run ZooKeeper works:")
	for _, r := range u.Reasons {
		fmt.Fprintf(&b, "\n  %s: %v", r.Way, r.Err)
	}
	return b.String()
}

// Absent reports whether this machine has nothing to run ZooKeeper with, and the
// environment names neither a way nor an address. If it is false, something is broken.
func (u *UnavailableError) Absent() bool {
	for _, r := range u.Reasons {
		if !errors.Is(r.Err, ErrAbsent) {
			return false
		}
	}
	return os.Getenv(EnvWay) == "" && os.Getenv(EnvAddress) == ""
}

// Unwrap lets errors.Is see the reasons.
func (u *UnavailableError) Unwrap() []error {
	errs := make([]error, len(u.Reasons))
	for i, r := range u.Reasons {
		errs[i] = r.Err
	}
	return errs
}

const (
	defaultTick = 500 * time.Millisecond
	minimumTick = 50 * time.Millisecond
)

func (o Options) withDefaults() (Options, error) {
	if o.Members == 0 {
		o.Members = 1
	}
	if o.Members < 0 || o.Members%2 == 0 {
		return o, fmt.Errorf("zkserver: Options.Members is %d: want 1, or an odd number that can outvote a loss", o.Members)
	}
	if o.Tick == 0 {
		o.Tick = defaultTick
	}
	if o.Tick < minimumTick {
		return o, fmt.Errorf("zkserver: Options.Tick is %v: want %v or more", o.Tick, minimumTick)
	}
	if o.Version != "" && o.Way == "" {
		o.Way = wayMaven
	}
	if o.Version != "" && o.Way != wayMaven {
		return o, fmt.Errorf("zkserver: Options.Version is %s: only the way %q can choose, not %q", o.Version, wayMaven, o.Way)
	}
	return o, nil
}
