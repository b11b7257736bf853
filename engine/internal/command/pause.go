package command

import (
	"encoding/json"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/projection"
)

// Pause keeps tasks of a behavior from starting, or lets them start again.
type Pause struct {
	Behavior string
	Paused   bool
}

var _ = register(opPause, func() Command { return new(Pause) })

func (*Pause) Op() uint64 { return opPause }

func (*Pause) Size() int { return commandBytes + maxSettingsBytes }

func (c *Pause) limits() error { return limitBehavior(c.Behavior) }

// Settings is what the parameters of the task cluster/settings hold.
type Settings struct {
	Paused []string `json:"paused"` // behaviors, sorted
}

// maxSettingsBytes bounds the settings as JSON text: each change of them is recorded as a whole.
const maxSettingsBytes = 32 << 10

// settingsBehavior is the behavior of cluster/settings. No node runs it, and the task is suspended.
const settingsBehavior = "cluster"

func (c *Pause) decide(d *Decider) Answer {
	if d.StoreFull { // what needs an entry would wait for room, and hold up all behind it
		return d.noSpace()
	}
	if err := events.ValidateBehavior(c.Behavior); err != nil {
		return Refused(AnswerInvalid, "%v", err)
	}
	t := d.State.Task(events.Settings)
	now, err := ReadSettings(t)
	if err != nil {
		return Refused(AnswerState, "%v", err)
	}
	at, found := slices.BinarySearch(now.Paused, c.Behavior)
	switch {
	case found == c.Paused:
		return Answer{}
	case c.Paused:
		now.Paused = slices.Insert(now.Paused, at, c.Behavior)
	default:
		now.Paused = slices.Delete(now.Paused, at, at+1)
	}
	text, err := json.Marshal(now)
	if err != nil || len(text) > maxSettingsBytes {
		return Refused(AnswerInvalid, "settings of %d bytes exceed the limit of %d", len(text), maxSettingsBytes)
	}
	if t != nil {
		d.emit(t.ID, t, "", &events.Merged{Params: events.JSON(text)})
		return Answer{}
	}
	policy, err := events.Policy{}.Complete()
	if err != nil {
		return Refused(AnswerInvalid, "%v", err)
	}
	t = d.emit(events.Settings, nil, "", &events.Created{Behavior: settingsBehavior, Policy: policy, NotBefore: d.Now, Params: events.JSON(text)})
	d.emit(events.Settings, t, "", &events.Suspended{})
	return Answer{}
}

// ReadSettings returns the settings that the task holds; none for no task.
func ReadSettings(t *projection.Task) (Settings, error) {
	if t == nil {
		return Settings{}, nil
	}
	return DecodeSettings(t.Params)
}

// DecodeSettings reads the parameters of cluster/settings.
func DecodeSettings(params events.Payload) (s Settings, err error) {
	text, err := params.JSON()
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return Settings{}, fmt.Errorf("settings of the cluster cannot be read: %w", err)
	}
	return s, nil
}

// Pauses reports whether the settings keep a behavior from starting.
func (s *Settings) Pauses(behavior string) bool {
	_, found := slices.BinarySearch(s.Paused, behavior)
	return found
}
