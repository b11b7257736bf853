package works

import (
	"encoding/json"

	"taskledger/events"
)

// HoldTask holds the parameters of the task of a hold.
type HoldTask struct {
	HoldOf    events.TaskID `json:"hold_of"`
	Hold      uint32        `json:"hold"`
	Partition int           `json:"partition,omitempty"` // its number in the run that began the hold, for people
	Stream    string        `json:"stream,omitempty"`    // id of the partition; "" = the full one
	Key       string        `json:"key,omitempty"`       // for people: what is no UTF-8 is replaced
}

// Params returns them as a task has them.
func (p HoldTask) Params() events.Payload {
	text, _ := json.Marshal(p) // texts and numbers alone: it never fails
	return events.JSON(text)
}

// TaskOfHold reads the parameters of a task, and reports whether they say that it processes a hold.
func TaskOfHold(params []byte, id events.TaskID) (p HoldTask, is bool) {
	if json.Unmarshal(params, &p) != nil || p.HoldOf == "" || events.HoldNumber(p.HoldOf, id) == 0 {
		return HoldTask{}, false
	}
	return p, true
}

// Params implements extension.Crew: those of the task of a hold say which one it is.
func (s *Works) Params(id events.TaskID) events.Payload {
	of, h := s.HoldOf(id)
	if h == nil {
		return nil
	}
	return HoldTask{
		HoldOf: of.ID,
		Hold:   h.Number,
	}.Params()
}
