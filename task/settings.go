package task

import "taskledger/events"

// Settings holds what operators set for the whole cluster.
type Settings struct {
	Paused []Pause // by behavior
}

// Pause keeps the tasks of a behavior from starting.
type Pause struct {
	Behavior string        `json:"behavior"`
	Reason   string        `json:"reason,omitempty"`
	By       string        `json:"by,omitempty"` // the principal who asked
	Since    events.Millis `json:"since"`
}

// String says what is paused, by whom and why.
func (p Pause) String() string {
	text := "behavior " + p.Behavior + " is paused"
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
