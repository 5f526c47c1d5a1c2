package firing

import (
	"time"

	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/internal/layout"
)

// A kill is the fire of an item that somebody wants to end, or the run that was asked for.
type kill struct {
	item int
	due  time.Time
}

// SetKills says which runs are wanted to end: the context of each that is here, or comes here while
// it is among them, ends with a *request.KilledError as its cause.
func (f *Firing) SetKills(all []layout.Kill) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(all)+len(f.kills) == 0 {
		return
	}
	f.kills = make(map[kill]string, len(all))
	for _, k := range all {
		f.kills[kill{k.Item, k.Due.UTC()}] = k.By
	}
	for _, r := range f.runs {
		f.killWanted(r)
	}
}

// killWanted ends a run that is wanted to end. The caller holds mu.
func (f *Firing) killWanted(r *run) {
	if len(f.kills) == 0 {
		return
	}
	if by, wanted := f.kills[kill{r.Run.Item, r.Due.UTC()}]; wanted {
		r.cancel(&request.KilledError{By: by})
	}
}
