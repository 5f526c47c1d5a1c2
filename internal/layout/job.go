package layout

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/registry"
)

// OwnNamespace is the root of Elasticron's own state. No job may live in it.
const OwnNamespace = "elasticron"

const (
	// maxJobName is the length of one segment.
	maxJobName = 255
	// maxOwnRoot leaves room, in a path of 2048 bytes, for the longest path
	// below a root: a directory and one segment of 255 bytes.
	maxOwnRoot = 1700
)

// A Job knows the paths of one job. Its methods do no I/O and are safe for
// concurrent use. It is small: pass it by value. The zero value is of no use;
// New makes one.
type Job struct {
	own  string // /elasticron/{namespace}/{name}, which all other paths begin with, or with a part of
	name int    // where the name begins in it
}

// New returns the layout of a job. The namespace has one or more segments
// ("shop", "team/shop") and is not "elasticron" nor below it. The job's name is
// one segment of at most 255 bytes, without space at its ends, and holds no "@-@". Both are of the
// characters that registry.ValidatePath allows. The error is a *field.Error that
// names "namespace" or "jobName".
//
// A namespace must not be the path of another job: nothing here can see that.
func New(namespace, job string) (Job, error) {
	if err := ValidateNamespace(namespace); err != nil {
		return Job{}, err
	}
	if err := validateJobName(job); err != nil {
		return Job{}, err
	}
	if strings.TrimSpace(job) != job {
		return Job{}, field.Errorf("jobName", "is %q; remove the space at its ends", job)
	}
	own := "/" + OwnNamespace + "/" + namespace + "/" + job
	if len(own) > maxOwnRoot {
		return Job{}, field.Errorf("namespace", "is too long: with the job's name it has %d bytes, at most %d fit", len(own), maxOwnRoot)
	}
	return Job{own: own, name: len(own) - len(job)}, nil
}

// ValidateNamespace reports, as a *field.Error, why jobs cannot live in a
// namespace.
// ValidateName reports why a stable name cannot be one, as a *field.Error.
func ValidateNamespace(namespace string) error {
	var problem string
	switch {
	case namespace == "":
		problem = `is empty; give the registry's URL a path, for example "/shop"`
	case strings.HasPrefix(namespace, "/") || strings.HasSuffix(namespace, "/"):
		problem = fmt.Sprintf(`is %q; leave out the "/" at its ends`, namespace)
	case namespace == OwnNamespace || strings.HasPrefix(namespace, OwnNamespace+"/"):
		problem = `must not be "elasticron" nor below it, where Elasticron keeps its own state; choose another`
	default:
		if err := registry.ValidatePath("/" + namespace); err != nil {
			return field.Errorf("namespace", "cannot be a path: %w", err)
		}
		return nil
	}
	return &field.Error{Field: "namespace", Problem: problem}
}

func validateJobName(job string) error {
	var problem string
	switch {
	case job == "":
		problem = "is empty; give the job a name"
	case strings.Contains(job, "/"):
		problem = fmt.Sprintf(`is %q; a job's name is one segment of a path: use "-" or "." instead of "/"`, job)
	case len(job) > maxJobName:
		problem = fmt.Sprintf("has %d bytes, at most %d fit; shorten it", len(job), maxJobName)
	case strings.Contains(job, idSeparator) || strings.HasSuffix(job, "@-"):
		problem = fmt.Sprintf(`is %q; it must not hold "@-@" nor end with "@-", which separate the parts of a task id`, job)
	default:
		if err := registry.ValidatePath("/" + job); err != nil {
			return field.Errorf("jobName", "cannot be a segment of a path: %w", err)
		}
		return nil
	}
	return &field.Error{Field: "jobName", Problem: problem}
}

// Namespace is the namespace that New was given.
func (j Job) Namespace() string { return j.NamespaceRoot()[1:] }

// Name is the job's name.
func (j Job) Name() string { return j.own[j.name:] }

// NamespaceRoot is the directory of all jobs of the namespace. Every child of it
// is a job: nothing else may be put there.
func (j Job) NamespaceRoot() string { return j.own[len("/"+OwnNamespace) : j.name-1] }

// Root is the job's own directory. Its value is the Java class or type of the job, or
// empty: a Java member refuses to start when it finds any text there but its own class
// name, and one of 3.0.0 to 3.0.2 also when it finds none.
func (j Job) Root() string { return j.own[len("/"+OwnNamespace):] }

// Config holds the configuration: MarshalConfig, UnmarshalConfig.
func (j Job) Config() string { return j.Root() + "/config" }

// Servers is the directory of servers, one child for each address.
func (j Job) Servers() string { return j.Root() + "/servers" }

// Server says whether the instances at an IPv4 address may have items:
// ServerStatus, ServerEnabled.
func (j Job) Server(ip string) string { return j.Root() + "/servers/" + ip }

// Instances is the directory of live instances, one ephemeral child for each id.
func (j Job) Instances() string { return j.Root() + "/instances" }

// Instance is ephemeral: MarshalInstance, UnmarshalInstance.
func (j Job) Instance(id string) string { return j.Root() + "/instances/" + id }

// LeaderRoot is the directory of everything that members agree on.
func (j Job) LeaderRoot() string { return j.Root() + "/leader" }

// LeaderElection is the directory of the leader's node and its latch.
func (j Job) LeaderElection() string { return j.Root() + "/leader/election" }

// Leader is ephemeral and holds the leader's instance id.
func (j Job) Leader() string { return j.Root() + "/leader/election/instance" }

// ElectionOrder is where an instance stands in the order in which those that may lead are elected, the lowest first. Each
// job has its own, so that nobody leads all.
func (j Job) ElectionOrder(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(j.Name()))
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}

// ElectionLatch is the latch under which Leader is created.
func (j Job) ElectionLatch() string { return j.Root() + "/leader/election/latch" }

// ShardingState is the directory of Necessary and Processing.
func (j Job) ShardingState() string { return j.Root() + "/leader/sharding" }

// Necessary is persistent; it exists while items must be assigned anew. Only the
// leader creates it.
func (j Job) Necessary() string { return j.Root() + "/leader/sharding/necessary" }

// Processing is ephemeral; it exists while the leader assigns.
func (j Job) Processing() string { return j.Root() + "/leader/sharding/processing" }

// FailoverRoot is the directory of the failover queue and its latch.
func (j Job) FailoverRoot() string { return j.Root() + "/leader/failover" }

// FailoverItems is the failover queue, one child for each orphaned item.
func (j Job) FailoverItems() string { return j.Root() + "/leader/failover/items" }

// FailoverItem is persistent; item waits for a taker.
func (j Job) FailoverItem(item int) string {
	return j.Root() + "/leader/failover/items/" + strconv.Itoa(item)
}

// FailoverLatch is the latch under which an orphan is taken.
func (j Job) FailoverLatch() string { return j.Root() + "/leader/failover/latch" }

// Sharding is the directory of items, one child for each.
func (j Job) Sharding() string { return j.Root() + "/sharding" }

// Item is the directory of one item.
func (j Job) Item(item int) string { return j.ofItem(item, "") }

// ofItem is the path of a node of one item.
func (j Job) ofItem(item int, node string) string {
	return j.Root() + "/sharding/" + strconv.Itoa(item) + node
}

// ItemInstance holds the id of the instance that item is assigned to.
func (j Job) ItemInstance(item int) string { return j.ofItem(item, "/instance") }

// Running exists while item runs and holds the id of who runs it. Elasticron's is
// ephemeral. ElasticJob's, from 3.0.2 on, is persistent where the configuration has
// failover: what of it a dead instance has left is run again by whoever comes next.
func (j Job) Running(item int) string { return j.ofItem(item, "/running") }

// Misfire exists when a fire of item was missed.
func (j Job) Misfire(item int) string { return j.ofItem(item, "/misfire") }

// Disabled exists when item must not be run. People create it.
func (j Job) Disabled(item int) string { return j.ofItem(item, "/disabled") }

// Failover is ephemeral and holds the id of the instance that took item.
func (j Job) Failover(item int) string { return j.ofItem(item, "/failover") }

// Failovering is Failover's persistent twin, for when the taker crashes too.
func (j Job) Failovering(item int) string { return j.ofItem(item, "/failovering") }

// GuaranteeRoot is the directory of the once-only listeners' nodes.
func (j Job) GuaranteeRoot() string { return j.Root() + "/guarantee" }

// GuaranteeStarted is the directory of items that have started.
func (j Job) GuaranteeStarted() string { return j.Root() + "/guarantee/started" }

// GuaranteeStartedItem says that item has started.
func (j Job) GuaranteeStartedItem(item int) string {
	return j.Root() + "/guarantee/started/" + strconv.Itoa(item)
}

// GuaranteeStartedLatch is the latch of who acts for all when all have started.
func (j Job) GuaranteeStartedLatch() string { return j.Root() + "/guarantee/started-latch" }

// GuaranteeCompleted is the directory of items that have ended.
func (j Job) GuaranteeCompleted() string { return j.Root() + "/guarantee/completed" }

// GuaranteeCompletedItem says that item has ended.
func (j Job) GuaranteeCompletedItem(item int) string {
	return j.Root() + "/guarantee/completed/" + strconv.Itoa(item)
}

// GuaranteeCompletedLatch is the latch of who acts for all when all have ended.
func (j Job) GuaranteeCompletedLatch() string { return j.Root() + "/guarantee/completed-latch" }

// Trigger is the directory of requests to run now.
func (j Job) Trigger() string { return j.Root() + "/trigger" }

// TriggerInstance asks one instance to run its items now. It deletes the node
// first, then runs.
func (j Job) TriggerInstance(id string) string { return j.Root() + "/trigger/" + id }

// SystemTime is written by Java members to learn the service's clock.
func (j Job) SystemTime() string { return j.Root() + "/systemTime/current" }

// NextInstanceIP is ephemeral and holds the address of the server whose turn it
// is, for a job of one item with the strategy SINGLE_SHARDING_BALANCE.
func (j Job) NextInstanceIP() string { return j.Root() + "/next-job-instance-ip" }

// OwnRoot is the directory of Elasticron's own state of the job. It stands
// beside the namespace, where Java members do not look. Its value is empty, or the
// Tombstone of a job that was removed.
func (j Job) OwnRoot() string { return j.own }

// Lives is the directory of lives.
func (j Job) Lives() string { return j.own + "/lives" }

// Life is ephemeral; it exists as long as the life of an instance.
func (j Job) Life(id string) string { return j.own + "/lives/" + id }

// Ledgers is the directory of ledgers.
func (j Job) Ledgers() string { return j.own + "/ledgers" }

// Ledger is persistent: the items of one instance and their last fires.
func (j Job) Ledger(id string) string { return j.own + "/ledgers/" + id }

// Notices is the directory of notices.
func (j Job) Notices() string { return j.own + "/notices" }

// Notice is ephemeral; the leader sets it when it writes the instance's ledger, so
// that nobody has to watch a node that each fire changes.
func (j Job) Notice(id string) string { return j.own + "/notices/" + id }

// RoundsDir is the directory of Rounds.
func (j Job) RoundsDir() string { return j.own + "/rounds" }

// Rounds is ephemeral; the instance sets it with the ends of items that are leaving, and
// where somebody listens to rounds whenever it is further with them (ledger.Rounds).
// Its directory is made when it is needed first.
func (j Job) Rounds(id string) string { return j.own + "/rounds/" + id }

// Clocks is the directory of clocks. It is made when it is needed first.
func (j Job) Clocks() string { return j.own + "/clocks" }

// Clock is ephemeral; by it an instance asks the leader what its clock says, where the
// configuration has maxTimeDiffSeconds (MarshalClock, UnmarshalClock).
func (j Job) Clock(id string) string { return j.own + "/clocks/" + id }

// Offsets is the directory of offsets. It is made when it is needed first.
func (j Job) Offsets() string { return j.own + "/offsets" }

// Offset is persistent: how far the data of item are processed (MarshalOffset,
// UnmarshalOffset).
func (j Job) Offset(item int) string { return j.own + "/offsets/" + strconv.Itoa(item) }

// OldOffset is where ElasticJob 1 kept the offset of item, as text. It is only read.
func (j Job) OldOffset(item int) string { return j.Root() + "/offset/" + strconv.Itoa(item) }

// InForce is the directory of what the leader has put in force: Base, Schedule.
// InForce is the directory of what the leader has put in force: Base, Schedule, Claim.
func (j Job) InForce() string { return j.own + "/inforce" }

// Base is persistent: the epoch and where it starts (MarshalBase, UnmarshalBase).
func (j Job) Base() string { return j.own + "/inforce/base" }

// Schedule is persistent: the schedule by which all members fire, and since when
// (MarshalSchedule, UnmarshalSchedule).
func (j Job) Schedule() string { return j.own + "/inforce/schedule" }

// Claim is persistent: which rounds listeners were called for (MarshalClaim, UnmarshalClaim).
// It is made when somebody listens.
func (j Job) Claim() string { return j.own + "/inforce/claim" }

// Paused is persistent; an operator makes it, and as long as it stands the instances of
// this stable name (InstanceID.Stable) begin nothing and own nothing. It stands in
// InForce, which every member watches anyway. PausedName reads its name.
func (j Job) Paused(name string) string { return j.own + "/inforce/" + pausedPrefix + name }

// pausedPrefix begins the nodes' names. Only those, requests and runs have an "@".
const pausedPrefix = "paused@"

// PausedName returns the stable name in the name of a node of Job.Paused.
func PausedName(node string) (name string, ok bool) {
	name, ok = strings.CutPrefix(node, pausedPrefix)
	return name, ok && ValidateName(name) == nil
}

// Term is ephemeral; every commit of the leader sets it at the version it knows.
func (j Job) Term() string { return j.own + "/term" }

// Scaffold returns the persistent nodes that a new job needs, without its
// configuration, parents first. Create those that are missing, with empty
// values.
func (j Job) Scaffold() []string {
	paths := lineage(j.Root())
	paths = append(paths,
		j.Servers(), j.Instances(),
		j.LeaderRoot(), j.LeaderElection(), j.ShardingState(), j.FailoverRoot(), j.FailoverItems(),
		j.Sharding(), j.Trigger())
	paths = append(paths, lineage(j.own)...)
	return append(paths, j.Lives(), j.Ledgers(), j.Notices(), j.InForce())
}

// lineage returns the paths from the top to path itself.
func lineage(path string) []string {
	var paths []string
	for i := 1; i < len(path); {
		next := strings.IndexByte(path[i:], '/')
		if next < 0 {
			break
		}
		paths = append(paths, path[:i+next])
		i += next + 1
	}
	return append(paths, path)
}

// ParseItem reads the name of an item's node. It is false for anything but a
// decimal number without sign or leading zeros.
func ParseItem(name string) (item int, ok bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != name {
		return 0, false
	}
	return int(n), true
}
