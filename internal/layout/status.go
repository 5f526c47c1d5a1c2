package layout

import (
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/registry"
)

const (
	serverEnabled  = "ENABLED"
	serverDisabled = "DISABLED"
	// triggerWord is how ElasticJob 2 asked an instance to run now.
	triggerWord = "TRIGGER"
)

// ServerStatus is the value of Job.Server.
func ServerStatus(enabled bool) string {
	if enabled {
		return serverEnabled
	}
	return serverDisabled
}

// ServerEnabled reads the value of Job.Server. An empty one is enabled, as
// ElasticJob 2 wrote it. Anything unknown is a *field.Error; take the server as
// disabled then, as Java does.
func ServerEnabled(status string) (bool, error) {
	switch trim(status) {
	case serverEnabled, "":
		return true, nil
	case serverDisabled:
		return false, nil
	}
	return false, &field.Error{Field: "servers", Problem: "holds " + clip(status) + ", want ENABLED or DISABLED"}
}

// RegisteredDisabled reports whether the node of a server says that it is disabled only since
// its job was when an instance registered it: an operator says so in a later version.
func RegisteredDisabled(n registry.Node) bool {
	on, err := ServerEnabled(string(n.Value))
	return n.Exists() && n.Version == 0 && err == nil && !on
}

// An Instance is the value of Job.Instance. The zero value is what ElasticJob 2
// wrote: nothing.
type Instance struct {
	// JobInstanceID is the name of the node again.
	JobInstanceID string
	// ServerIP is the name of the server's node.
	ServerIP string
	// Trigger: somebody replaced the value by the word TRIGGER, which asks the
	// instance to run its items now, and to write its own value again.
	Trigger bool
}

// MarshalInstance writes the value of an instance's node: both keys and nothing
// else. The error is a *field.Error when the id is not valid.
func MarshalInstance(id InstanceID) ([]byte, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	var w yamlWriter
	w.text("jobInstanceId", id.String())
	w.text("serverIp", id.IP)
	return w.done()
}

// Triggered is Instance.Trigger, without reading the rest.
func Triggered(value []byte) bool { return trim(string(value)) == triggerWord }

// UnmarshalInstance reads the value of any member's node: YAML, JSON, nothing, or
// the word TRIGGER. Other keys are ignored. The error is a *field.Error.
func UnmarshalInstance(value []byte) (Instance, error) {
	if trigger := Triggered(value); trigger || trim(string(value)) == "" {
		return Instance{Trigger: trigger}, nil
	}
	root, err := parseMapping(value)
	if err != nil {
		return Instance{}, &field.Error{Field: "instances", Problem: "holds a value that is not an instance's (" + err.Error() + "); let its owner write it again", Err: err}
	}
	var in Instance
	for i := 0; i+1 < len(root.Content); i += 2 {
		err = nil
		switch value := resolveAlias(root.Content[i+1]); root.Content[i].Value {
		case "jobInstanceId":
			in.JobInstanceID, err = readString("jobInstanceId", value)
		case "serverIp":
			in.ServerIP, err = readString("serverIp", value)
		}
		if err != nil {
			return Instance{}, err
		}
	}
	return in, nil
}
