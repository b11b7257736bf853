package cluster

import (
	"testing"

	"taskledger/events"
	"taskledger/projection"
)

// A task of a shard whose time a wrong clock has moved ahead by an hour is due soon, although every clock is an hour behind: another
// task of the shard shows it. Only what is far ahead of its shard is scheduled for later.
func TestShardTimes_AreThoseOfTheShardAndNotOfAClock(t *testing.T) {
	const hour, step = 3_600_000, 1_800_003_600_000
	ahead, clock := IDIn("ahead", 3), IDIn("clock", 4)
	task := func(id string, created, due events.Millis) *projection.Task {
		return &projection.Task{ID: events.TaskID(id), CreatedAt: created, Due: due}
	}
	var times shardTimes
	times.see(task(ahead, step, 0))
	times.see(task(ahead, step-hour, 0))
	times.see(task(clock, step-hour, 0))
	for _, tt := range []struct {
		name string
		task *projection.Task
		far  bool
	}{
		{"created before the step, retried after it", task(ahead, step-hour, step+400), false},
		{"an hour ahead of a shard that is ahead", task(ahead, step, step+hour), true},
		{"due by the clock", task(clock, step-hour, step-hour+842), false},
		{"an hour ahead of a shard that keeps to the clock", task(clock, step-hour, step), true},
	} {
		if got := times.far(tt.task); got != tt.far {
			t.Errorf("%s: far = %v, want %v", tt.name, got, tt.far)
		}
	}
	times.see(&projection.Task{
		ID:          events.TaskID(clock),
		CreatedAt:   step - hour,
		LastAttempt: projection.LastAttempt{StartedAt: step},
	})
	if times.far(task(clock, step-hour, step)) {
		t.Error("an attempt has started at the step: what is due then is not far ahead")
	}
}
