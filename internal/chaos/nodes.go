package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/internal/history"
)

// readLedger reads a ledger's node.
func readLedger(id string, value []byte) (history.Ledger, error) {
	var doc struct {
		Epoch  int `json:"epoch"`
		Total  int `json:"total"`
		Groups []struct {
			Items   string    `json:"items"`
			Through time.Time `json:"through"`
			Run     time.Time `json:"run"`
			Leaving bool      `json:"leaving"`
		} `json:"groups"`
	}
	l := history.Ledger{Instance: id}
	if err := json.Unmarshal(value, &doc); err != nil {
		return l, err
	}
	l.Epoch, l.Total = doc.Epoch, doc.Total
	for _, g := range doc.Groups {
		for part := range strings.SplitSeq(g.Items, ",") {
			from, to, isRange := strings.Cut(part, "-")
			if !isRange {
				to = from
			}
			a, errA := strconv.Atoi(from)
			b, errB := strconv.Atoi(to)
			if errA != nil || errB != nil {
				return l, fmt.Errorf("items %q", g.Items)
			}
			for n := a; n <= b; n++ {
				l.Items = append(l.Items, history.Holding{Item: n, Through: g.Through, Run: g.Run, Leaving: g.Leaving})
			}
		}
	}
	return l, nil
}

// readTerm is the id of who leads by the term's node.
func readTerm(value []byte) string {
	leader, _, _ := strings.Cut(string(value), " ")
	return leader
}

// readSchedule and readBase read the nodes of what is in force.
func readSchedule(value []byte) (*history.Schedule, error) {
	s := &history.Schedule{}
	return s, json.Unmarshal(value, s)
}

func readBase(value []byte) (*history.Base, error) {
	b := &history.Base{}
	return b, json.Unmarshal(value, b)
}
