package projection_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// Each word, and since when, of a task that was created at the start and to which something happens each second.
func TestSubstatus_SaysWhatATaskWaitsForAndSinceWhen(t *testing.T) {
	const id = "x"
	soon, later := start.Add(2*time.Second), start.Add(time.Hour)
	failure := events.Error{Code: "x"}
	run := func(j *journal) {
		j.add(id, j.created())
		j.add(id, j.started(id))
		j.seal(time.Second)
	}
	ended := func(j *journal, next events.Millis) {
		run(j)
		j.add(id, &events.Succeeded{Run: 1, Next: next})
	}
	suspended := func(j *journal) {
		c := j.created()
		c.NotBefore = soon
		j.add(id, c)
		j.seal(time.Second)
		j.add(id, &events.Suspended{})
		j.seal(time.Second)
		j.add(id, &events.Suspended{})
		j.seal(2 * time.Second)
	}
	for name, c := range map[string]struct {
		happens func(j *journal)
		word    string
		since   time.Duration // after the start
	}{
		"created":               {func(j *journal) { j.add(id, j.created()) }, "ready", 0},
		"created for later":     {func(j *journal) { c := j.created(); c.NotBefore = later; j.add(id, c) }, "scheduled", 0},
		"created for long ago":  {func(j *journal) { c := j.created(); c.NotBefore = 1; j.add(id, c) }, "ready", 0},
		"due since":             {func(j *journal) { c := j.created(); c.NotBefore = soon; j.add(id, c); j.seal(5 * time.Second) }, "ready", 2 * time.Second},
		"joined":                {func(j *journal) { scheduledFor(j, id, later); j.add(id, &events.Rescheduled{At: later - 1}) }, "scheduled", time.Second},
		"runs":                  {run, "running", 0},
		"runs, to be cancelled": {func(j *journal) { run(j); j.add(id, &events.CancelRequested{}) }, "running", 0},
		"runs, suspended":       {func(j *journal) { run(j); j.add(id, &events.Suspended{}) }, "running", 0},
		"snoozed":               {func(j *journal) { run(j); j.add(id, &events.Snoozed{Until: later}) }, "snoozed", time.Second},
		"snoozed, due":          {func(j *journal) { run(j); j.add(id, &events.Snoozed{Until: soon}); j.seal(5 * time.Second) }, "ready", 2 * time.Second},
		"snoozed, run now": {func(j *journal) {
			run(j)
			j.add(id, &events.Snoozed{Until: later})
			j.seal(time.Second)
			j.add(id, &events.Rescheduled{At: j.now})
		}, "ready", 2 * time.Second},
		"lost": {func(j *journal) { run(j); j.add(id, &events.Lost{Until: later}) }, "lost", time.Second},
		"lost, rescheduled": {func(j *journal) {
			run(j)
			j.add(id, &events.Lost{Until: later})
			j.seal(time.Second)
			j.add(id, &events.Rescheduled{At: later + 1})
		}, "lost", 2 * time.Second},
		"released":               {func(j *journal) { run(j); j.add(id, &events.Released{Until: later}) }, "released", time.Second},
		"released, due":          {func(j *journal) { run(j); j.add(id, &events.Released{Until: j.now}) }, "ready", time.Second},
		"failed, to be retried":  {func(j *journal) { run(j); j.add(id, &events.Failed{Error: failure, Next: later}) }, "retry", time.Second},
		"failed, to be repeated": {func(j *journal) { run(j); j.add(id, &events.Failed{Error: failure, Next: later, Run: 1}) }, "scheduled", time.Second},
		"failed":                 {func(j *journal) { run(j); j.add(id, &events.Failed{Error: failure, Run: 1}) }, "final", time.Second},
		"failed, to run again": {func(j *journal) {
			run(j)
			j.add(id, &events.Failed{Error: failure, Run: 1})
			j.seal(time.Second)
			j.add(id, &events.Rescheduled{At: later})
		}, "scheduled", 2 * time.Second},
		"succeeded":               {func(j *journal) { ended(j, 0) }, "final", time.Second},
		"succeeded, repeated":     {func(j *journal) { ended(j, later) }, "scheduled", time.Second},
		"no repetition after all": {func(j *journal) { ended(j, later); j.seal(time.Second); j.add(id, &events.Rescheduled{}) }, "final", 2 * time.Second},
		"succeeded, suspended":    {func(j *journal) { ended(j, 0); j.add(id, &events.Suspended{}) }, "final", time.Second},
		"cancelled": {func(j *journal) {
			run(j)
			j.add(id, &events.Failed{Error: events.Error{Code: events.CodeCancelled}, Run: 1})
		}, "cancelled", time.Second},
		"suspended": {suspended, "suspended", time.Second},
		"suspended, lost": {func(j *journal) {
			run(j)
			j.add(id, &events.Suspended{})
			j.seal(time.Second)
			j.add(id, &events.Lost{Until: later})
		}, "suspended", time.Second},
		"resumed in time": {func(j *journal) {
			scheduledFor(j, id, later)
			j.add(id, &events.Suspended{})
			j.add(id, &events.Resumed{})
		}, "scheduled", 0},
		"resumed late": {func(j *journal) { suspended(j); j.add(id, &events.Resumed{}); j.seal(time.Second) }, "ready", 4 * time.Second},
		"resumed twice": {func(j *journal) {
			suspended(j)
			j.add(id, &events.Resumed{})
			j.seal(time.Second)
			j.add(id, &events.Resumed{})
		}, "ready", 4 * time.Second},
		"started again": {func(j *journal) {
			run(j)
			j.add(id, &events.Lost{Until: j.now})
			j.seal(time.Second)
			j.add(id, j.started(id))
		}, "running", 2 * time.Second},
	} {
		j := newJournal(t)
		c.happens(j)
		word, since := j.state.Task(id).Substatus(j.now)
		if word.String() != c.word || since != start.Add(c.since) {
			t.Errorf("%s: %s since %d ms after the start, want %s since %d", name, word, since-start, c.word, c.since.Milliseconds())
		}
		if changed := j.state.Task(id).Changed(); changed < j.state.Task(id).CreatedAt || changed > j.now {
			t.Errorf("%s: changed %d ms after the start, at %d", name, changed-start, j.now-start)
		}
	}
}

// scheduledFor creates a task for later, and waits a second.
func scheduledFor(j *journal, id events.TaskID, later events.Millis) {
	c := j.created()
	c.NotBefore = later
	j.add(id, c)
	j.seal(time.Second)
}

func TestSubstatus_NeverContradictsTheTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(t)
		for range rapid.IntRange(1, 20).Draw(t, "entries") {
			for range rapid.IntRange(1, 6).Draw(t, "events") {
				step(t, j)
				for task := range j.state.Tasks() {
					checkSubstatus(t, task, j.now)
				}
			}
			j.seal(time.Duration(rapid.IntRange(0, 4000).Draw(t, "pause")) * time.Millisecond)
		}
	})
}

func checkSubstatus(t tb, got *projection.Task, now events.Millis) {
	t.Helper()
	s, since := got.Substatus(now)
	status, waits := got.Status, !got.OnNode() && !got.Final()
	want := map[string]bool{
		"running":   got.OnNode(),
		"final":     got.Final() && (got.Error == nil || got.Error.Code != events.CodeCancelled),
		"cancelled": got.Final() && got.Error != nil && got.Error.Code == events.CodeCancelled,
		"suspended": waits && got.Suspended,
		"ready":     waits && !got.Suspended && got.Due <= now,
		"snoozed":   waits && !got.Suspended && got.Due > now && status == task.Running,
		"lost":      waits && !got.Suspended && got.Due > now && status == task.Running,
		"released":  waits && !got.Suspended && got.Due > now && status == task.Running,
		"retry":     waits && !got.Suspended && got.Due > now && status == task.Failure && !got.RunEnded,
		"scheduled": waits && !got.Suspended && got.Due > now && status != task.Running && (status != task.Failure || got.RunEnded),
	}
	if !want[s.String()] {
		t.Fatalf("%s of %+v at %d", s, *got, now)
	}
	if since < got.CreatedAt || since > now {
		t.Fatalf("%s since %d, of %+v at %d", s, since, *got, now)
	}
}
