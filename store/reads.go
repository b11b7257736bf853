package store

import (
	"cmp"
	"fmt"

	"taskledger/events"
)

// Reads holds the highest number of each stored form that a program reads, or that a program must read to know all
// that is stored. Every program reads the zero value. A section of snapshots comes with the kinds of events that
// fill it.
type Reads struct {
	Kind     events.Kind `json:"kind"`     // of events
	Entry    uint64      `json:"entry"`    // version of entries
	Snapshot uint64      `json:"snapshot"` // version of snapshots
	Rules    uint64      `json:"rules"`    // of the fold
}

// lowest holds the numbers that every program reads.
var lowest = Reads{Kind: events.KindDeleted, Entry: 4, Snapshot: 3, Rules: 1}

// Lacks says what a program that reads r cannot read of what need tells of; "" = it can read everything.
func (r Reads) Lacks(need Reads) string {
	switch r = r.With(Reads{}); {
	case r.Kind < need.Kind:
		return fmt.Sprintf("events of kind %s", need.Kind)
	case r.Entry < need.Entry:
		return fmt.Sprintf("entries of version %d", need.Entry)
	case r.Snapshot < need.Snapshot:
		return fmt.Sprintf("snapshots of version %d", need.Snapshot)
	case r.Rules < need.Rules:
		return fmt.Sprintf("what is folded by rules %d", need.Rules)
	}
	return ""
}

// With returns the higher numbers of r and other, and of what every program reads.
func (r Reads) With(other Reads) Reads {
	return Reads{max(r.Kind, other.Kind, lowest.Kind), max(r.Entry, other.Entry, lowest.Entry),
		max(r.Snapshot, other.Snapshot, lowest.Snapshot), max(r.Rules, other.Rules, lowest.Rules)}
}

// UpTo returns the numbers that are needed for events up to a kind.
func (r Reads) UpTo(kind events.Kind) Reads {
	r.Kind = kind
	return r
}

// maxShownName bounds the part of a node's name that Outdated shows: the text is cut where it is recorded.
const maxShownName = 32

// Outdated names a node that is present and cannot read what need tells of, the first by its id; "" = there is
// none. Nothing that needs it may be written while there is one: also not where Written says that it is, since that
// is said first, and then looked who is there.
func (m *Membership) Outdated(need Reads) (problem string) {
	first := ""
	for id, n := range m.Nodes {
		lacks := n.Reads.Lacks(need)
		if lacks == "" || first != "" && first < id {
			continue
		}
		first = id
		name := cmp.Or(n.Name, id) // the key of a node may be unreadable
		problem = fmt.Sprintf("node %s (%s) cannot read %s yet: upgrade it first",
			name[:min(len(name), maxShownName)], n.Version, lacks)
	}
	return problem
}
