package collections

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"taskledger/events"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// timingKeys lists the keys that a schedule.Form has, with their names there.
var timingKeys = map[string]string{
	"schedule":         "cron",
	"timezone":         "timezone",
	"priority":         "priority",
	"timeout":          "timeout",
	"attempts":         "attempts",
	"keep":             "keep",
	"overlap":          "overlap",
	"misfire":          "misfire",
	"grace":            "grace",
	"jitter":           "jitter",
	"start":            "start",
	"end":              "end",
	"pause_on_failure": "pause_on_failure",
}

// anyCron stands in where there is no schedule, for a definition to be judged by its other fields.
const anyCron = "@daily"

// timing returns the definition that a level gives, with every default filled in. Whatever package schedule refuses is
// a problem: a field that was refused is left out, to find the next one.
func timing(f *findings, l level, at *place, params json.RawMessage) schedule.Definition {
	l = maps.Clone(l)
	for {
		var form schedule.Form
		_ = json.Unmarshal(l.object(timingKeys), &form) // each key was unmarshalled alone
		d := form.Definition()
		d.Behavior, d.Params = Behavior, params
		if d.Priority == 0 {
			d.Priority = DefaultPriority
		}
		without := d.Cron == ""
		if without {
			d.Cron = anyCron
		}
		plan, err := d.Plan(events.Policy{})
		if err == nil {
			d = schedule.Of(&plan, nil)
			if without {
				d.Cron = ""
			}
			return d
		}
		key, text := refused(err)
		f.problem(l.place(key, at), "%s", text)
		if !l.has(key) {
			return d
		}
		delete(l, key)
	}
}

// refused returns the key that an error of Plan names, and what it says.
func refused(err error) (key, text string) {
	if invalid, is := errors.AsType[*store.InvalidError](err); is {
		key = invalid.Field
	} else if limit, is := errors.AsType[*task.LimitError](err); is {
		key = limit.Field
	}
	text = strings.TrimPrefix(err.Error(), key+": ")
	if key == "cron" {
		key = "schedule"
	}
	return key, text
}
