package etcd

import (
	"bytes"
	"cmp"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/elasticron/elasticron/registry"
)

// A plan is a commit as one etcd transaction: if all compares hold then the writes, else the reads that show which
// operation fails first, at the very revision at which the compares were made. A first attempt goes without the reads,
// which are a third of a request and a twentieth of the time that a small one takes.
//
// Operations see each other, but etcd compares before it writes: what earlier operations of the same commit make or
// remove is worked out here.
type plan struct {
	ops         []registry.Op
	compares    []*pb.Compare
	writes      []*pb.RequestOp
	reads       []*pb.RequestOp
	facts       []facts // of each op
	impossible  bool    // cannot be applied whatever the state; only the reason is open
	onlyReason  error   // the only reason for which it can be refused; nil: the reads tell
	unexplained bool    // there are no reads: a refusal says nothing

	parents  map[string]int // indexes of their reads, by path
	made     map[string]registry.OpKind
	madeIn   map[string]bool
	gone     map[string]bool
	goneFrom map[string][]string // parent to the keys of its deleted children
}

// facts says what decides one op.
type facts struct {
	node, parent, children int   // indexes of reads; -1: nothing to read
	gone                   int   // of its children: those that earlier operations delete
	never                  error // why it cannot be applied, whatever the state
}

// newPlan makes the plan of ops, whose values it copies. explained: a refusal comes with its reason.
func newPlan(ops []registry.Op, lease int64, explained bool) *plan {
	p := &plan{
		ops: ops, facts: make([]facts, len(ops)), unexplained: !explained,
		compares: make([]*pb.Compare, 0, len(ops)+2), writes: make([]*pb.RequestOp, 0, len(ops)+1),
	}
	if len(ops) > 1 && slices.ContainsFunc(ops, changesTree) { // else no later one is concerned
		p.parents, p.made, p.madeIn = map[string]int{}, map[string]registry.OpKind{}, map[string]bool{}
		p.gone, p.goneFrom = map[string]bool{}, map[string][]string{}
	}
	for i, op := range ops {
		key := nodeKey(op.Path) // once: the request is not changed any more
		p.facts[i] = facts{node: p.read(key, true), parent: -1, children: -1}
		switch op.Kind {
		case registry.OpCheck:
			p.compareVersion(key, op.Version)
		case registry.OpCreate, registry.OpCreateEphemeral:
			p.create(i, key, lease)
		case registry.OpSet:
			p.compareVersion(key, op.Version)
			p.put(&pb.PutRequest{Key: key, Value: bytes.Clone(op.Value), IgnoreLease: true})
		case registry.OpDelete:
			p.delete(i, key)
		}
	}
	if p.onlyReason = soleReason(ops); p.onlyReason != nil {
		p.reads = nil
	}
	if len(p.writes) == 0 {
		// Transactions without any operation are answered by the member that is asked, from the state that it has,
		// however old. A linearizable read makes it wait for the newest.
		p.writes = append(p.writes, readOp(&pb.RangeRequest{Key: nodeKey(ops[0].Path), CountOnly: true}))
	}
	return p
}

func changesTree(op registry.Op) bool {
	return op.Kind != registry.OpCheck && op.Kind != registry.OpSet
}

// soleReason is why a commit with a single compare can be refused, if there is but one
// reason: then nothing needs to be read.
func soleReason(ops []registry.Op) error {
	if op := ops[0]; len(ops) == 1 {
		switch op.Kind {
		case registry.OpCheck, registry.OpSet:
			if op.Version == registry.AnyVersion {
				return registry.ErrNotFound
			}
		case registry.OpCreate, registry.OpCreateEphemeral:
			if parentOf(op.Path) == "/" {
				return registry.ErrExists
			}
		case registry.OpDelete: // the node may be missing, or have children
		}
	}
	return nil
}

func (p *plan) create(i int, key []byte, lease int64) {
	op := p.ops[i]
	parent := parentOf(op.Path)
	kind, made := p.made[parent]
	switch {
	case parent == "/":
	case made && kind == registry.OpCreateEphemeral:
		p.refuse(i, registry.ErrEphemeralParent)
	case made:
	case p.gone[parent]:
		p.refuse(i, registry.ErrNoParent)
	default:
		p.facts[i].parent = p.compareParent(parent)
	}
	p.compares = append(p.compares, versionIs(key, 0))
	if p.made != nil {
		p.made[op.Path], p.madeIn[parent] = op.Kind, true
	}
	put := &pb.PutRequest{Key: key, Value: bytes.Clone(op.Value)}
	if op.Kind == registry.OpCreateEphemeral {
		put.Lease = lease
	}
	p.put(put)
}

func (p *plan) delete(i int, key []byte) {
	op := p.ops[i]
	p.compareVersion(key, op.Version)
	p.compareEmpty(op.Path)
	if p.facts[i].gone = len(p.goneFrom[op.Path]); !p.unexplained {
		p.facts[i].children = p.readChildren(op.Path)
	}
	if p.madeIn[op.Path] {
		p.refuse(i, registry.ErrNotEmpty)
	}
	if p.gone != nil {
		parent := parentOf(op.Path)
		p.gone[op.Path], p.goneFrom[parent] = true, append(p.goneFrom[parent], string(key))
	}
	p.writes = append(p.writes, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: key},
	}})
}

// refuse says that operation i cannot be applied.
func (p *plan) refuse(i int, why error) { p.impossible, p.facts[i].never = true, why }

func (p *plan) put(r *pb.PutRequest) {
	p.writes = append(p.writes, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}})
}

func (p *plan) compareVersion(key []byte, v registry.Version) {
	if v == registry.AnyVersion {
		p.compares = append(p.compares, exists(key))
		return
	}
	p.compares = append(p.compares, versionIs(key, int64(v)+1))
}

// compareParent requires a persistent node, once for each parent, and returns the index of its read.
func (p *plan) compareParent(path string) int {
	if read, done := p.parents[path]; done {
		return read
	}
	key := nodeKey(path)
	p.compares = append(p.compares, exists(key), &pb.Compare{
		Key: key, Target: pb.Compare_LEASE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_Lease{Lease: 0},
	})
	read := p.read(key, false) // all of it: etcd 3.7 leaves the lease out with the value
	if p.parents != nil {
		p.parents[path] = read
	}
	return read
}

// compareEmpty requires that path has no children but those that earlier
// operations delete: the ranges between them are empty.
func (p *plan) compareEmpty(path string) {
	from, to := childRange(path)
	deleted := slices.Clone(p.goneFrom[path])
	slices.Sort(deleted)
	for _, key := range deleted {
		p.compares = append(p.compares, empty(from, []byte(key)))
		from = []byte(key + "\x00")
	}
	p.compares = append(p.compares, empty(from, to))
}

// readChildren reads one child more than the commit itself deletes: enough to see whether there is another.
func (p *plan) readChildren(path string) int {
	from, to := childRange(path)
	return p.add(&pb.RangeRequest{
		Key: from, RangeEnd: to, KeysOnly: true, Limit: int64(len(p.goneFrom[path]) + 1),
	})
}

// read reads a node, and returns the index of that, -1 when there are none.
func (p *plan) read(key []byte, keysOnly bool) int {
	if p.unexplained {
		return -1
	}
	return p.add(&pb.RangeRequest{Key: key, KeysOnly: keysOnly})
}

func (p *plan) add(r *pb.RangeRequest) int {
	p.reads = append(p.reads, readOp(r))
	return len(p.reads) - 1
}

func (p *plan) request() *pb.TxnRequest {
	if p.impossible {
		return &pb.TxnRequest{Success: p.reads}
	}
	return &pb.TxnRequest{Compare: p.compares, Success: p.writes, Failure: p.reads}
}

// failure names the first operation that the state shown by the reads refuses, or nil.
func (p *plan) failure(answers []*pb.ResponseOp) *registry.CommitError {
	if p.onlyReason != nil {
		return commitError(0, p.ops[0], p.onlyReason)
	}
	kvs := func(i int) []*mvccpb.KeyValue { return answers[i].GetResponseRange().GetKvs() }
	for i, op := range p.ops {
		var err error
		switch f := p.facts[i]; op.Kind {
		case registry.OpCheck, registry.OpSet:
			err = versionProblem(kvs(f.node), op.Version)
		case registry.OpCreate, registry.OpCreateEphemeral:
			if err = f.never; err == nil && f.parent >= 0 {
				err = parentProblem(kvs(f.parent))
			}
			if err == nil && len(kvs(f.node)) > 0 {
				err = registry.ErrExists
			}
		case registry.OpDelete:
			if err = cmp.Or(versionProblem(kvs(f.node), op.Version), f.never); err == nil && len(kvs(f.children)) > f.gone {
				// Those that are gone by now are there: no operation before has failed.
				err = registry.ErrNotEmpty
			}
		}
		if err != nil {
			return commitError(i, op, err)
		}
	}
	return nil
}

func commitError(i int, op registry.Op, err error) *registry.CommitError {
	op.Value = bytes.Clone(op.Value)
	return &registry.CommitError{Index: i, Op: op, Err: err}
}

func versionProblem(kvs []*mvccpb.KeyValue, want registry.Version) error {
	switch {
	case len(kvs) == 0:
		return registry.ErrNotFound
	case want != registry.AnyVersion && kvs[0].Version != int64(want)+1:
		return registry.ErrVersion
	}
	return nil
}

func parentProblem(kvs []*mvccpb.KeyValue) error {
	switch {
	case len(kvs) == 0:
		return registry.ErrNoParent
	case kvs[0].Lease != 0:
		return registry.ErrEphemeralParent
	}
	return nil
}

func exists(key []byte) *pb.Compare {
	there := versionIs(key, 0)
	there.Result = pb.Compare_GREATER
	return there
}

func versionIs(key []byte, v int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_VERSION, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_Version{Version: v},
	}
}

// empty holds when no key is in the range: every key there has been created.
func empty(from, to []byte) *pb.Compare {
	return &pb.Compare{
		Key: from, RangeEnd: to, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: 0},
	}
}

func readOp(r *pb.RangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}
