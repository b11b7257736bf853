package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/projection"
)

// pauseCommand keeps tasks of a behavior from starting, or lets them start again.
type pauseCommand struct {
	Behavior string
	Paused   bool
}

func (*pauseCommand) op() uint64 { return opPause }

func (*pauseCommand) size() int { return commandBytes + maxSettingsBytes }

// settings is what the parameters of the task cluster/settings hold.
type settings struct {
	Paused []string `json:"paused"` // behaviors, sorted
}

// maxSettingsBytes bounds the settings as JSON text: each change of them is recorded as a whole.
const maxSettingsBytes = 32 << 10

// settingsBehavior is the behavior of cluster/settings. No node runs it, and the task is suspended.
const settingsBehavior = "cluster"

func (c *pauseCommand) decide(d *decider) answer {
	if d.storeFull { // what needs an entry would wait for room, and hold up all behind it
		return d.noSpace()
	}
	if err := events.ValidateBehavior(c.Behavior); err != nil {
		return refused(answerInvalid, "%v", err)
	}
	t := d.state.Task(events.Settings)
	now, err := readSettings(t)
	if err != nil {
		return refused(answerState, "%v", err)
	}
	at, found := slices.BinarySearch(now.Paused, c.Behavior)
	switch {
	case found == c.Paused:
		return answer{}
	case c.Paused:
		now.Paused = slices.Insert(now.Paused, at, c.Behavior)
	default:
		now.Paused = slices.Delete(now.Paused, at, at+1)
	}
	text, err := json.Marshal(now)
	if err != nil || len(text) > maxSettingsBytes {
		return refused(answerInvalid, "settings of %d bytes exceed the limit of %d", len(text), maxSettingsBytes)
	}
	if t != nil {
		d.emit(t.ID, t, "", &events.Merged{Params: events.JSON(text)})
		return answer{}
	}
	policy, err := events.Policy{}.Complete()
	if err != nil {
		return refused(answerInvalid, "%v", err)
	}
	t = d.emit(events.Settings, nil, "", &events.Created{Behavior: settingsBehavior, Policy: policy, NotBefore: d.now, Params: events.JSON(text)})
	d.emit(events.Settings, t, "", &events.Suspended{})
	return answer{}
}

// readSettings returns the settings that the task holds; none for no task.
func readSettings(t *projection.Task) (settings, error) {
	if t == nil {
		return settings{}, nil
	}
	return decodeSettings(t.Params)
}

func decodeSettings(params events.Payload) (s settings, err error) {
	text, err := params.JSON()
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return settings{}, fmt.Errorf("settings of the cluster cannot be read: %w", err)
	}
	return s, nil
}

// pauses reports whether the settings keep a behavior from starting.
func (s *settings) pauses(behavior string) bool {
	_, found := slices.BinarySearch(s.Paused, behavior)
	return found
}
