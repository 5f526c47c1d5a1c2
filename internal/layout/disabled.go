package layout

import (
	"maps"
	"strings"
	"unicode"
)

// PropDisabledReason says why a job is disabled, where it was switched off and not made so: by an operator's tool
// or by an error handler. A program whose configuration replaces this one leaves such a job disabled.
const PropDisabledReason = "elasticron.disabledReason"

// maxReason bounds why a job is disabled, in characters.
const maxReason = 500

// Disable switches the job off, and says why.
func (c *Config) Disable(why string) {
	c.Disabled = true
	c.Props = maps.Clone(c.Props)
	if c.Props == nil {
		c.Props = Props{}
	}
	c.Props[PropDisabledReason] = oneLine(why)
}

// Enable takes Disable back.
func (c *Config) Enable() {
	c.Disabled = false
	c.Props = maps.Clone(c.Props)
	delete(c.Props, PropDisabledReason)
}

// SwitchedOff is why the job was switched off, "" where it was not.
func (c *Config) SwitchedOff() string {
	if !c.Disabled {
		return ""
	}
	return c.Props[PropDisabledReason]
}

// DisabledReason says that the job is disabled in its configuration, and why where that is
// known; "" when it is not.
func (c *Config) DisabledReason() string {
	if !c.Disabled {
		return ""
	}
	said := "the job is disabled in its configuration"
	if why := c.SwitchedOff(); why != "" {
		said += ": " + why
	}
	return said
}

// oneLine keeps a text for people to one line that is not too long.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if cut := []rune(s); len(cut) > maxReason {
		return string(cut[:maxReason]) + "…"
	}
	return s
}
