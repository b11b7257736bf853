package collections

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"taskledger/events"
	"taskledger/schedule"
)

const (
	// Behavior names the behavior of all runs of collections.
	Behavior = "collection"
	// DefaultPriority is the base of the runs of ticks where a file names none.
	DefaultPriority = 200
	// AskedPriority is the base of a run that somebody asks for.
	AskedPriority = 300
)

// Collection says how a collection is kept up to date. Parse fills in every default.
type Collection struct {
	Source string
	Name   string
	Driver Driver
	// Runs says when it has its runs: a definition whose Behavior is Behavior, and without Params. Cron is empty for a
	// collection without a schedule.
	Runs schedule.Definition
}

// ID returns "SOURCE_NAME", 3 to 64 bytes of [A-Za-z0-9._:-]: the name of its schedule, and the affinity of its runs.
func (c *Collection) ID() string { return c.Source + "_" + c.Name }

// checkID returns an error for a source, or a source and the name of a collection, that spell no id.
func checkID(source, name string) error {
	if source == "" {
		return errors.New("empty")
	}
	if err := events.ValidateSchedule(source + "_" + name); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "schedule "))
	}
	return nil
}

// Params are the parameters of a run. Its id tells neither source nor collection, since both may contain "_".
type Params struct {
	Source     string `json:"source"`
	Collection string `json:"collection"`
	Driver
}

// Definition returns the schedule of the collection, with Params. Its runs are named by UUIDs. A collection without a
// schedule has one without ticks, which runs when somebody asks.
func (c *Collection) Definition() schedule.Definition {
	d := c.Runs
	d.UUIDs = true
	d.Params, _ = json.Marshal(Params{c.Source, c.Name, c.Driver}) // texts, and what is known to be JSON
	return d
}

// Of is the reverse of Definition. A definition whose runs are not named by UUIDs, as those that somebody has set by
// hand, is of no collection.
func Of(d schedule.Definition) (Collection, error) {
	if !d.UUIDs {
		return Collection{}, errors.New("runs of a collection are named by UUIDs, want UUIDs")
	}
	var p Params
	in := json.NewDecoder(bytes.NewReader(d.Params))
	in.DisallowUnknownFields()
	if err := in.Decode(&p); err != nil {
		return Collection{}, fmt.Errorf("parameters of a collection: %w", err)
	}
	d.Params, d.UUIDs = nil, false
	return Collection{p.Source, p.Collection, p.Driver, d}, nil
}

// Hash returns the hash of all that the collection says. It is equal for collections that Diff calls the same.
func (c *Collection) Hash() events.Hash {
	text, _ := json.Marshal(c.Definition())
	return sha256.Sum256(text)
}
