package command_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/command/commandtest"
	"taskledger/engine/internal/schedules"
	"taskledger/events"
)

// drawSchedules draws a command of schedules, nil for a number of another.
func drawSchedules(t *rapid.T, c command.Command) command.Command {
	number := func(name string) int64 { return rapid.Int64().Draw(t, name) }
	switch c.(type) {
	case *schedules.Set:
		return &schedules.Set{
			Name:   genText.Draw(t, "name"),
			Plan:   genPayload.Draw(t, "plan"),
			Params: genPayload.Draw(t, "params"),
			Next:   number("next"),
			Offset: number("offset"),
			Code:   genText.Draw(t, "code"),
			Seen:   rapid.Uint64().Draw(t, "seen"),
			Reason: genText.Draw(t, "reason"),
		}
	case *schedules.Steer:
		return &schedules.Steer{
			Name:   genText.Draw(t, "name"),
			Verb:   number("verb"),
			Reason: genText.Draw(t, "reason"),
			Seen:   rapid.Uint64().Draw(t, "seen"),
		}
	case *schedules.Run:
		return &schedules.Run{
			Name: genText.Draw(t, "name"),
			ID:   genText.Draw(t, "id"),
			Seen: rapid.Uint64().Draw(t, "seen"),

			Priority: number("priority"),
		}
	case *schedules.Backfill:
		return &schedules.Backfill{
			Name:  genText.Draw(t, "name"),
			From:  number("from"),
			To:    number("to"),
			Ticks: number("ticks"),
			Seen:  rapid.Uint64().Draw(t, "seen"),
		}
	case *schedules.Get:
		return &schedules.Get{Name: genText.Draw(t, "name"), Linear: rapid.Bool().Draw(t, "linear")}
	case *schedules.List:
		return &schedules.List{
			After:    genText.Draw(t, "after"),
			Limit:    number("limit"),
			Prefix:   genText.Draw(t, "prefix"),
			Behavior: genText.Draw(t, "behavior"),
			Paused:   rapid.Bool().Draw(t, "paused"),
		}
	}
	return nil
}

// longSchedule is the i-th name of a schedule of the largest size.
func longSchedule(i int) string { return fmt.Sprintf("%0*d", events.MaxScheduleBytes, i) }

// largeSet sets a schedule in the largest form.
func largeSet(i int, overlap events.Overlap, params int) *schedules.Set {
	plan := commandtest.Plan()
	plan.Overlap = overlap
	return &schedules.Set{
		Name:   longSchedule(i),
		Plan:   schedules.EncodePlan(&plan),
		Params: events.JSON([]byte(`"` + strings.Repeat("p", params) + `"`)),
		Next:   int64(command.MaxTime),
		Code:   strings.Repeat("c", events.MaxCodeBytes),
		Reason: strings.Repeat("r", events.MaxNameBytes),
	}
}

// scheduleBatches makes batches of the commands of schedules.
var scheduleBatches = map[string]func(l *journalDriver, i int) command.Command{
	"sets of schedules": func(_ *journalDriver, i int) command.Command {
		return largeSet(i, events.OverlapForbid, i%1000)
	},
	"pauses of schedules": func(l *journalDriver, i int) command.Command {
		l.decide(largeSet(i, events.OverlapForbid, 0))
		return &schedules.Steer{
			Name:   longSchedule(i),
			Verb:   int64(schedules.Pause),
			Reason: strings.Repeat("r", events.MaxNameBytes),
		}
	},
	"runs by hand": func(l *journalDriver, i int) command.Command {
		if i == 0 {
			l.decide(largeSet(0, events.OverlapAllow, events.MaxScheduleParamBytes-2))
		}
		id := longSchedule(0) + "/" + events.HandPrefix
		return &schedules.Run{Name: longSchedule(0), ID: id + fmt.Sprintf("%0*d", events.MaxIDBytes-len(id), i)}
	},
	"backfills": func(l *journalDriver, i int) command.Command {
		l.decide(largeSet(i, events.OverlapForbid, 0))
		return &schedules.Backfill{
			Name:  longSchedule(i),
			From:  1,
			To:    int64(l.now) - 1,
			Ticks: events.MaxBackfill,
		}
	},
}

// scheduleCases make the largest events of schedules.
var scheduleCases = map[string]func(l *journalDriver) command.Command{
	"first set of a schedule": func(*journalDriver) command.Command { return firstSet() },
	"change of a schedule": func(l *journalDriver) command.Command {
		l.decide(largeSet(0, events.OverlapForbid, 0))
		c := largeSet(0, events.OverlapForbid, events.MaxScheduleParamBytes-2)
		c.Code = ""
		return c
	},
	"pause of a schedule": func(l *journalDriver) command.Command {
		l.decide(firstSet())
		c := form[*schedules.Steer](0)
		c.Seen = 0
		return c
	},
	"first run by hand": func(l *journalDriver) command.Command {
		l.decide(firstSet())
		return firstRun()
	},
	"backfill": func(l *journalDriver) command.Command {
		l.decide(firstSet())
		c := form[*schedules.Backfill](0)
		c.From, c.To, c.Seen = int64(l.now)-1, int64(l.now)-1, 0
		return c
	},
}

// firstSet is the largest Set, of a schedule that is not there.
func firstSet() *schedules.Set {
	c := form[*schedules.Set](0)
	c.Seen = 0
	return c
}

// firstRun is the largest Run, whatever the version of the schedule.
func firstRun() *schedules.Run {
	c := form[*schedules.Run](0)
	c.Seen = 0
	return c
}

// A run of a schedule never repeats by itself, whatever its behavior asks for.
func TestComplete_ARunOfAScheduleDoesNotRepeat(t *testing.T) {
	for _, names := range []events.RunNames{events.NamesByOrigin, events.NamesByUUID} {
		l := newJournalDriver(t)
		plan, set := commandtest.Plan(), firstSet()
		plan.Names = names
		set.Plan = schedules.EncodePlan(&plan)
		l.decide(set)
		a, _ := l.decide(firstRun())
		id := events.TaskID(a.Data)
		l.start(id, "n-1")
		l.decide(&command.Complete{
			Task:    id,
			Started: l.state.Task(id).Started,
			Node:    "n-1",
			How:     command.Succeeded,
			Next:    command.AnyTime,
		})
		if got := l.state.Task(id); !got.Final() {
			t.Errorf("the run %s is to run again at %d", id, got.Due)
		}
	}
}
