package events

import "strings"

// RunNames says how the runs of a schedule are named.
type RunNames uint8

// The rules.
const (
	NamesByOrigin RunNames = iota // NAME/tick:MS, NAME/run:... and NAME/fill:MS
	NamesByUUID                   // NAME/UUID; Ties say what made the run
	runNamesEnd
)

// The name parts of runs by NamesByOrigin begin with these; no other task has such a name, whether the schedule exists
// or not.
const (
	TickPrefix = "tick:" // the run of a tick
	HandPrefix = "run:"  // a run that somebody asked for
	FillPrefix = "fill:" // the run of a tick in a backfill
)

// RunOrigin says what made a run of a schedule.
type RunOrigin uint8

// The origins. Zero stands for a task that is no run of a schedule.
const (
	RunOfTick RunOrigin = 1 + iota // a tick
	RunByHand                      // somebody asked for it
	RunOfFill                      // a tick in a backfill
	runOriginEnd
)

// OriginOf returns what made the run that an id names by its prefix; 0 = it has no such prefix.
func OriginOf(id TaskID) RunOrigin {
	_, name, _ := strings.Cut(string(id), "/")
	switch {
	case strings.HasPrefix(name, TickPrefix):
		return RunOfTick
	case strings.HasPrefix(name, HandPrefix):
		return RunByHand
	case strings.HasPrefix(name, FillPrefix):
		return RunOfFill
	}
	return 0
}
