package registry

import "fmt"

// OpKind is what an Op does. The zero value is invalid.
type OpKind uint8

const (
	// OpCheck passes when the node exists at Version. It fails with ErrNotFound or ErrVersion (R50).
	OpCheck OpKind = iota + 1
	// OpCreate makes a persistent node. It fails with ErrExists, ErrNoParent or ErrEphemeralParent (R1, R2, R37).
	OpCreate
	// OpCreateEphemeral makes a node that vanishes with the committing session. It fails as OpCreate does.
	OpCreateEphemeral
	// OpSet replaces the value of a node at Version; an ephemeral node stays one (R48).
	// It fails with ErrNotFound or ErrVersion (R36, R38).
	OpSet
	// OpDelete removes a node at Version. It fails with ErrNotFound, ErrVersion or ErrNotEmpty (R3, R36, R38).
	OpDelete
)

func (k OpKind) String() string {
	switch k {
	case OpCheck:
		return "check"
	case OpCreate:
		return "create"
	case OpCreateEphemeral:
		return "create ephemeral"
	case OpSet:
		return "set"
	case OpDelete:
		return "delete"
	}
	return fmt.Sprintf("OpKind(%d)", uint8(k))
}

// An Op is one operation of a Commit. Its fields are exported for adapters; users build it with Check, Create,
// CreateEphemeral, Set and Delete. An adapter must not change Value and must not keep it after Commit has returned
// (R30). A Version beyond what the service can hold matches no node, which is ErrVersion; an adapter never truncates
// it (R51).
type Op struct {
	Kind    OpKind
	Path    string
	Value   []byte  // OpCreate, OpCreateEphemeral, OpSet
	Version Version // OpCheck, OpSet, OpDelete
}

// Check requires the node to exist at version v, or at all with AnyVersion.
func Check(path string, v Version) Op { return Op{Kind: OpCheck, Path: path, Version: v} }

// Create makes a persistent node.
func Create(path string, value []byte) Op { return Op{Kind: OpCreate, Path: path, Value: value} }

// CreateEphemeral makes a node that lives as long as the session that commits.
func CreateEphemeral(path string, value []byte) Op {
	return Op{Kind: OpCreateEphemeral, Path: path, Value: value}
}

// Set replaces the value of the node at version v.
func Set(path string, value []byte, v Version) Op {
	return Op{Kind: OpSet, Path: path, Value: value, Version: v}
}

// Delete removes the node at version v.
func Delete(path string, v Version) Op { return Op{Kind: OpDelete, Path: path, Version: v} }

// Limits says what one Commit may hold. Every adapter allows at least the portable limits (R52):
// 40 operations, 512 KiB over all paths and values, 256 KiB in one value.
type Limits struct {
	// MaxOps is the number of operations of whatever kind, each under a parent of its own.
	MaxOps int
	// MaxBytes is the sum of the lengths of all paths and values.
	MaxBytes int
	// MaxValue is the length of one value, in bytes.
	MaxValue int
}

// Portable limits hold on every service as it is installed.
// (etcd spends up to three of its 128 compares on a create.)
var portable = Limits{MaxOps: 40, MaxBytes: 512 << 10, MaxValue: 256 << 10}

// PortableLimits returns the limits that every adapter keeps.
func PortableLimits() Limits { return portable }

// Validate reports, before anything is sent, why ops cannot be one commit. The
// error wraps ErrInvalid (R39). Every adapter calls it first.
func (l Limits) Validate(ops []Op) error {
	if len(ops) == 0 {
		return fmt.Errorf("%w: commit has no operations", ErrInvalid)
	}
	if len(ops) > l.MaxOps {
		return fmt.Errorf("%w: commit has %d operations, at most %d fit", ErrInvalid, len(ops), l.MaxOps)
	}
	seen := make(map[string]struct{}, len(ops))
	bytes := 0
	for i, op := range ops {
		if err := l.validateOp(op); err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
		if _, dup := seen[op.Path]; dup {
			return fmt.Errorf("%w: operation %d: path %q occurs twice in one commit", ErrInvalid, i, op.Path)
		}
		seen[op.Path] = struct{}{}
		bytes += len(op.Path) + len(op.Value)
	}
	if bytes > l.MaxBytes {
		return fmt.Errorf("%w: commit has %d bytes, at most %d fit", ErrInvalid, bytes, l.MaxBytes)
	}
	return nil
}

func (l Limits) validateOp(op Op) error {
	if op.Kind < OpCheck || op.Kind > OpDelete {
		return fmt.Errorf("%w: unknown kind %d", ErrInvalid, op.Kind)
	}
	if op.Path == "/" {
		return fmt.Errorf("%w: the root cannot be part of a commit", ErrInvalid)
	}
	if err := ValidatePath(op.Path); err != nil {
		return err
	}
	if op.Version < AnyVersion {
		return fmt.Errorf("%w: version %d of %q: use 0 or more, or AnyVersion", ErrInvalid, op.Version, op.Path)
	}
	if len(op.Value) > l.MaxValue {
		return fmt.Errorf("%w: value of %q has %d bytes, at most %d fit", ErrInvalid, op.Path, len(op.Value), l.MaxValue)
	}
	return nil
}
