package registry

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxPath    = 2048
	maxSegment = 255
)

// ValidatePath reports why path cannot address a node; the error wraps ErrInvalid (R53). A path starts with "/", is at
// most 2048 bytes long and does not end with "/" unless it is the root. A segment has 1 to 255 bytes of UTF-8, is not
// "." or "..", and holds no character that ZooKeeper refuses: U+0000–U+001F, U+007F–U+009F, U+D800–U+F8FF, U+FFF0 and
// above (it sees UTF-16, and refuses surrogates).
func ValidatePath(path string) error {
	if path == "/" {
		return nil
	}
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("%w: path %q does not start with /", ErrInvalid, path)
	}
	if len(path) > maxPath {
		return fmt.Errorf("%w: path of %d bytes, at most %d fit", ErrInvalid, len(path), maxPath)
	}
	for seg := range strings.SplitSeq(path[1:], "/") {
		if problem := segmentProblem(seg); problem != "" {
			return fmt.Errorf("%w: path %q has a segment %s", ErrInvalid, path, problem)
		}
	}
	return nil
}

func segmentProblem(seg string) string {
	switch {
	case seg == "":
		return "that is empty"
	case seg == "." || seg == "..":
		return fmt.Sprintf("%q", seg)
	case len(seg) > maxSegment:
		return fmt.Sprintf("of %d bytes, at most %d fit", len(seg), maxSegment)
	case !utf8.ValidString(seg):
		return "that is not UTF-8"
	}
	for _, r := range seg {
		if r < 0x20 || (r >= 0x7f && r <= 0x9f) || (r >= 0xd800 && r <= 0xf8ff) || r >= 0xfff0 {
			return fmt.Sprintf("with the character %U", r)
		}
	}
	return ""
}
