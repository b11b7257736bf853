package schedule_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// full sets every field to a value of its own, which is not its default.
func full() schedule.Definition {
	return schedule.Definition{
		Cron:           "0 30 3 ? * MON-FRI",
		Timezone:       "Europe/Berlin",
		Behavior:       "purge-table",
		Params:         []byte(`{"table":"orders"}`),
		Overlap:        schedule.Replace,
		Misfire:        schedule.All,
		Grace:          2 * time.Hour,
		Jitter:         time.Minute,
		Start:          time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		End:            time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC),
		Priority:       7,
		Timeout:        time.Hour,
		Attempts:       3,
		Keep:           30,
		PauseOnFailure: true,
	}
}

func TestDefinition_IsReadAsWritten(t *testing.T) {
	none := schedule.Definition{Cron: "@daily", Behavior: "b", Grace: -1, Keep: -1}
	for _, d := range []schedule.Definition{full(), {Cron: "@daily", Behavior: "b"}, none} {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var got schedule.Definition
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, d) {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
}

func TestDefinition_RefusesWhatNobodyKnows(t *testing.T) {
	for text, want := range map[string]string{
		`{"cron":"@daily","behavior":"b","crom":1}`:     "crom",
		`{"cron":"@daily","behavior":"b","grace":"2x"}`: "want a text such as 90s",
	} {
		var d schedule.Definition
		if err := json.Unmarshal([]byte(text), &d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A plan holds all that its definition says, and gives it back.
func TestPlan_GivesItsDefinitionBack(t *testing.T) {
	d := full()
	d.UUIDs = true
	p, err := d.Plan(events.Policy{Every: time.Hour, Priority: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil || p.Policy.Every != 0 {
		t.Errorf("plan %+v: %v", p, err)
	}
	if got := schedule.Of(&p, events.JSON(d.Params)); !reflect.DeepEqual(got, d) {
		t.Errorf("definition %+v, want %+v", got, d)
	}
	plain := schedule.Definition{Cron: "@daily", Behavior: "b"}
	if p, err = plain.Plan(events.Policy{Priority: 3, MaxAttempts: 4}); err != nil {
		t.Fatal(err)
	}
	got := schedule.Of(&p, nil)
	if got.Timezone != "UTC" || got.Overlap != schedule.Forbid || got.Misfire != schedule.Once || got.Grace != time.Hour ||
		got.Keep != 100 || got.Priority != 3 || got.Attempts != 4 {
		t.Errorf("defaults %+v", got)
	}
}

// Without cron a definition has no ticks, and refuses what is about ticks alone.
func TestPlan_WithoutCronHasNoTicks(t *testing.T) {
	d := schedule.Definition{Behavior: "b", Timezone: "Europe/Berlin", Grace: time.Minute, Overlap: schedule.Allow, Keep: 3}
	p, err := d.Plan(events.Policy{Priority: 3})
	if err != nil || p.Check() != nil {
		t.Fatalf("%+v: %v, %v", p, err, p.Check())
	}
	d.Misfire, d.Priority, d.Attempts = schedule.Once, 3, p.Policy.MaxAttempts
	if got := schedule.Of(&p, nil); !reflect.DeepEqual(got, d) {
		t.Errorf("definition %+v, want %+v", got, d)
	}
	ticks, err := schedule.TicksOf(&p)
	if all, more := ticks.Between(1, events.MaxTick, 1); err != nil || len(all) != 0 || more || ticks.Prev(events.MaxTick) != 0 {
		t.Errorf("ticks %v, more %t, %v", all, more, err)
	}
	text, err := json.Marshal(d)
	var got schedule.Definition
	if err != nil || strings.Contains(string(text), "cron") || json.Unmarshal(text, &got) != nil || !reflect.DeepEqual(got, d) {
		t.Errorf("%s is read as %+v, %v", text, got, err)
	}
	for field, change := range map[string]func(*schedule.Definition){
		"misfire":          func(d *schedule.Definition) { d.Misfire = schedule.All },
		"jitter":           func(d *schedule.Definition) { d.Jitter = time.Second },
		"start":            func(d *schedule.Definition) { d.Start = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) },
		"end":              func(d *schedule.Definition) { d.End = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) },
		"pause_on_failure": func(d *schedule.Definition) { d.PauseOnFailure = true },
		"timezone":         func(d *schedule.Definition) { d.Timezone = "Atlantis/Poseidonis" },
	} {
		bad := d
		change(&bad)
		_, err := bad.Plan(events.Policy{})
		if invalid, is := errors.AsType[*store.InvalidError](err); !is || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestPlan_NamesTheFieldThatIsWrong(t *testing.T) {
	for field, change := range map[string]func(*schedule.Definition){
		"cron":     func(d *schedule.Definition) { d.Cron = "0 0 0 30 2 ?" },
		"timezone": func(d *schedule.Definition) { d.Timezone = "Atlantis/Poseidonis" },
		"behavior": func(d *schedule.Definition) { d.Behavior = "No Name" },
		"overlap":  func(d *schedule.Definition) { d.Overlap = "forbit" },
		"misfire":  func(d *schedule.Definition) { d.Misfire = "twice" },
		"grace":    func(d *schedule.Definition) { d.Grace = 11 * 365 * 24 * time.Hour },
		"jitter":   func(d *schedule.Definition) { d.Jitter = -1 },
		"start":    func(d *schedule.Definition) { d.Start = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) },
		"end":      func(d *schedule.Definition) { d.End = d.Start.Add(-time.Hour) },
		"priority": func(d *schedule.Definition) { d.Priority = events.MaxPriority + 1 },
		"attempts": func(d *schedule.Definition) { d.Attempts = -1 },
		"timeout":  func(d *schedule.Definition) { d.Timeout = -time.Second },
		"keep":     func(d *schedule.Definition) { d.Keep = events.MaxKeptRuns + 1 },
		"params":   func(d *schedule.Definition) { d.Params = []byte("{") },
	} {
		d := full()
		change(&d)
		_, err := d.Plan(events.Policy{})
		invalid, is := errors.AsType[*store.InvalidError](err)
		limit, isLimit := errors.AsType[*task.LimitError](err)
		if !(is && invalid.Field == field || isLimit && limit.Field == field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	d := full()
	d.Cron, d.Params = "30 3 * * 1-5", nil
	if _, err := d.Plan(events.Policy{}); err == nil || !strings.Contains(err.Error(), "MON-FRI") {
		t.Errorf("five fields: %v, want the six that were meant", err)
	}
	d.Params = []byte(`"` + strings.Repeat("p", events.MaxScheduleParamBytes) + `"`)
	d.Cron = "@daily"
	if limit, is := errors.AsType[*task.LimitError](errOf(d.Plan(events.Policy{}))); !is || limit.Field != "params" {
		t.Errorf("long parameters: %v", errOf(d.Plan(events.Policy{})))
	}
}

func errOf(_ events.SchedulePlan, err error) error { return err }

func TestTicks_LieBetweenStartAndEnd(t *testing.T) {
	p := events.SchedulePlan{
		Cron:  "0 0 3 * * ?",
		Zone:  "Europe/Berlin",
		Start: events.MillisOf(time.Date(2027, 3, 10, 2, 0, 0, 0, time.UTC)), // itself a tick
		End:   events.MillisOf(time.Date(2027, 3, 12, 2, 0, 0, 0, time.UTC)),
	}
	ticks, err := schedule.TicksOf(&p)
	if err != nil {
		t.Fatal(err)
	}
	all, more := ticks.Between(1, events.MaxTick, 10)
	if len(all) != 3 || more || all[0] != p.Start || all[2] != p.End {
		t.Errorf("ticks %v, more %t", all, more)
	}
	if some, more := ticks.Between(1, events.MaxTick, 2); len(some) != 2 || !more {
		t.Errorf("ticks %v, more %t", some, more)
	}
	if ticks.Next(p.End) != 0 || ticks.Prev(p.Start) != 0 || ticks.Prev(events.MaxTick) != p.End || ticks.Next(0) != p.Start {
		t.Error("ticks before start, or after end")
	}
	if ticks.Offset(p.Start) != 3600 || !ticks.Fixed() {
		t.Errorf("offset %d, fixed %t", ticks.Offset(p.Start), ticks.Fixed())
	}
}
