package collections

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"taskledger/schedule"
)

// Question names the question to a node of which Needs it has not. Question and answer are lists of Needs in JSON.
const Question = "collections"

// Kind says what a Need is about.
type Kind string

// The kinds. A node lacks those that it does not know.
const (
	NeedProgram  Kind = "program"       // of driver exec, as the operator of the node allowed it
	NeedVariable Kind = "variable"      // which tasks may set for programs
	NeedDriver   Kind = "driver"        // in Go, without GoPrefix
	NeedZone     Kind = "timezone"      // of which the node has data
	NeedRoot     Kind = "sync-root"     // that driver fetch writes to
	NeedFiles    Kind = "checksum-root" // that driver fetch reads paths from
)

// Need is a thing that a node has, or has not.
type Need struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"` // "" for a directory
}

// String names it for people, with the flag of serve that gives it.
func (n Need) String() string {
	switch n.Kind {
	case NeedProgram:
		return fmt.Sprintf("program %q (--exec-allow)", n.Name)
	case NeedVariable:
		return fmt.Sprintf("variable %q (--exec-env)", n.Name)
	case NeedDriver:
		return fmt.Sprintf("driver %q", GoPrefix+n.Name)
	case NeedZone:
		return fmt.Sprintf("time zone %q", n.Name)
	case NeedRoot:
		return "directory to fetch to (--sync-root)"
	}
	return "directory to fetch from (--checksum-root)"
}

// Field returns the key of a collection that needs it.
func (n Need) Field() string {
	switch n.Kind {
	case NeedVariable:
		return "env"
	case NeedRoot:
		return "to"
	case NeedFiles:
		return "path"
	}
	return string(n.Kind)
}

// Needs returns what a node must have to run the collection, and to decide its ticks.
func (c *Collection) Needs() []Need {
	var all []Need
	d := &c.Driver
	switch own, inGo := strings.CutPrefix(d.Driver, GoPrefix); {
	case inGo:
		all = append(all, Need{NeedDriver, own})
	case d.Driver == Exec:
		all = append(all, Need{NeedProgram, d.Program})
		for _, name := range slices.Sorted(maps.Keys(d.Env)) {
			all = append(all, Need{NeedVariable, name})
		}
	case d.Driver == Fetch:
		all = append(all, Need{Kind: NeedRoot})
		if d.Path != "" {
			all = append(all, Need{Kind: NeedFiles})
		}
	}
	if c.Runs.Cron != "" && c.Runs.Timezone != schedule.DefaultZone {
		all = append(all, Need{NeedZone, c.Runs.Timezone})
	}
	return all
}

// Compare orders needs by kind and name.
func (n Need) Compare(other Need) int {
	return cmp.Or(cmp.Compare(n.Kind, other.Kind), cmp.Compare(n.Name, other.Name))
}

// ReadNeeds reads a question or its answer.
func ReadNeeds(text []byte) (all []Need, err error) {
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("needs of collections: %w", err)
	}
	return all, nil
}
