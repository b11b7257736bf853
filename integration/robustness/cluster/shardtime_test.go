package cluster

import (
	"testing"

	"taskledger/events"
	"taskledger/task"
)

// A task of a shard whose time a wrong clock has moved ahead by an hour is due soon, although every clock is an hour behind: another
// task of the shard shows it. Only what is far ahead of its shard is scheduled for later.
func TestShardTimes_AreThoseOfTheShardAndNotOfAClock(t *testing.T) {
	const hour, step = 3_600_000, 1_800_003_600_000
	ahead, clock := IDIn("ahead", 3), IDIn("clock", 4)
	seen := func(id string, created, due events.Millis) *task.Task {
		return &task.Task{ID: events.TaskID(id), Times: task.Times{CreatedAt: created, ScheduleNotBefore: due}}
	}
	var times shardTimes
	times.see(seen(ahead, step, 0))
	times.see(seen(ahead, step-hour, 0))
	times.see(seen(clock, step-hour, 0))
	for _, tt := range []struct {
		name string
		task *task.Task
		far  bool
	}{
		{"created before the step, retried after it", seen(ahead, step-hour, step+400), false},
		{"an hour ahead of a shard that is ahead", seen(ahead, step, step+hour), true},
		{"due by the clock", seen(clock, step-hour, step-hour+842), false},
		{"an hour ahead of a shard that keeps to the clock", seen(clock, step-hour, step), true},
	} {
		if got := times.far(tt.task); got != tt.far {
			t.Errorf("%s: far = %v, want %v", tt.name, got, tt.far)
		}
	}
	times.see(&task.Task{ID: events.TaskID(clock), Times: task.Times{CreatedAt: step - hour, StartedAt: step}})
	if times.far(seen(clock, step-hour, step)) {
		t.Error("an attempt has started at the step: what is due then is not far ahead")
	}
}
