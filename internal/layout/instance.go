package layout

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"strings"

	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/registry"
)

const (
	// idSeparator stands between address and suffix. Java splits ids and task
	// ids at it.
	idSeparator = "@-@"
	maxName     = 64
	lifeLength  = 10
)

// An InstanceID names one life of one instance: {ip}@-@{name}-{life}. It is
// comparable. The zero value is no id.
type InstanceID struct {
	// IP is the IPv4 address, the name of the instance's server too.
	IP string
	// Name stays the same from one life to the next. Of a Java member it is the
	// process id.
	Name string
	// Life is unique to one registration (NewLife). It is empty when the id was
	// not made by Elasticron.
	Life string
}

// NewInstanceID returns an id with a new life. The error is a *field.Error that
// names "ip" or "name".
func NewInstanceID(ip, name string) (InstanceID, error) {
	id := InstanceID{IP: ip, Name: name, Life: NewLife()}
	return id, id.Validate()
}

// NewLife returns 10 random characters of a–z and 2–7.
func NewLife() string { return strings.ToLower(rand.Text()[:lifeLength]) }

// Validate reports why an instance cannot be registered under this id. The IP
// must be IPv4 in its usual form: Java members see no other. The name has 1 to 64
// bytes, is part of one path segment, and holds no "@". The life has only
// letters and digits.
func (id InstanceID) Validate() error {
	if err := validateIP(id.IP); err != nil {
		return err
	}
	if err := ValidateName(id.Name); err != nil {
		return err
	}
	if id.Life == "" || strings.ContainsFunc(id.Life, notAlphanumeric) {
		return field.Errorf("life", "is %q, want letters and digits; use NewLife", id.Life)
	}
	if err := registry.ValidatePath("/" + id.String()); err != nil {
		return field.Errorf("life", "makes the instance id unfit for a path: %w", err)
	}
	return nil
}

func validateIP(ip string) error {
	addr, err := netip.ParseAddr(ip)
	if err != nil || !addr.Is4() || addr.String() != ip {
		return field.Errorf("ip", "is %q, want an IPv4 address such as 10.0.0.5 (no host name, no IPv6, no port)", ip)
	}
	return nil
}

// ValidateName reports why a stable name cannot be one, as a *field.Error.
func ValidateName(name string) error {
	var problem string
	switch {
	case name == "":
		problem = "is empty; give the instance a name that stays the same over restarts"
	case len(name) > maxName:
		problem = fmt.Sprintf("has %d bytes, at most %d fit; shorten it", len(name), maxName)
	case strings.ContainsAny(name, "/@"):
		problem = fmt.Sprintf(`is %q; it must hold neither "/" nor "@"`, name)
	default:
		if err := registry.ValidatePath("/x" + name); err != nil {
			return field.Errorf("name", "cannot be part of a path: %w", err)
		}
		return nil
	}
	return &field.Error{Field: "name", Problem: problem}
}

func notAlphanumeric(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}

func notDigit(r rune) bool { return r < '0' || r > '9' }

// String is the name of the instance's nodes. ParseInstanceID reads it.
func (id InstanceID) String() string {
	if id.Life == "" {
		return id.IP + idSeparator + id.Name
	}
	return id.IP + idSeparator + id.Name + "-" + id.Life
}

// Stable is what stays the same when the instance starts again: its name. Of an
// id that has no life it is the whole id.
func (id InstanceID) Stable() string {
	if id.Life == "" {
		return id.String()
	}
	return id.Name
}

// IsJava reports whether the suffix is a bare number, a process id.
func (id InstanceID) IsJava() bool {
	return id.Life == "" && id.Name != "" && !strings.ContainsFunc(id.Name, notDigit)
}

// IsJava tells the instances of ElasticJob itself by the form of the id.
func IsJava(id string) bool {
	parsed, err := ParseInstanceID(id)
	return err == nil && parsed.IsJava()
}

// ParseInstanceID reads the id of any member. What follows the last "-" is the
// life, if there is one. The error is a *field.Error.
func ParseInstanceID(s string) (InstanceID, error) {
	ip, suffix, found := strings.Cut(s, idSeparator)
	if !found || suffix == "" || strings.Contains(suffix, idSeparator) || strings.Contains(suffix, "/") {
		return InstanceID{}, field.Errorf("instance id", "is %q, want {ip}@-@{name}", s)
	}
	if err := validateIP(ip); err != nil {
		return InstanceID{}, field.Errorf("instance id", "is %q: %w", s, err)
	}
	id := InstanceID{IP: ip, Name: suffix}
	if dash := strings.LastIndexByte(suffix, '-'); dash > 0 && dash < len(suffix)-1 && !strings.ContainsFunc(suffix[dash+1:], notAlphanumeric) {
		id.Name, id.Life = suffix[:dash], suffix[dash+1:]
	}
	return id, nil
}
