package check_test

import (
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// pauses pauses a behavior.
func (b *builder) pauses(behavior string) {
	b.set(events.Settings.Shard(shards), &events.Paused{Behavior: behavior})
}

func (b *builder) unpause(behavior string) {
	b.set(events.Settings.Shard(shards), &events.Unpaused{Behavior: behavior})
}

// What is paused does not start. That something is paused, or no longer, takes a while to be heard.
func TestAll_KnowsWhatIsPaused(t *testing.T) {
	waits := func(paused string, during, after time.Duration) func(*builder) {
		return func(b *builder) {
			b.pauses(paused)
			b.submit("a")
			b.pass(during)
			b.unpause(paused)
			b.pass(after)
			b.start("a", "n-1")
			b.succeed("a")
		}
	}
	starts := func(after time.Duration, faults ...history.Fault) func(*builder) {
		return func(b *builder) {
			b.pauses("work")
			b.submit("a")
			for _, f := range faults {
				f.From, f.Until = f.From+b.clock, f.Until+b.clock
				b.run.Faults = append(b.run.Faults, f)
			}
			b.pass(after)
			b.start("a", "n-1")
			b.succeed("a")
			b.pass(time.Minute)
			b.unpause("work")
		}
	}
	at := func(from, until time.Duration) history.Fault {
		return history.Fault{Kind: "restart", Target: "node", From: int64(from), Until: int64(until), Proof: "gone"}
	}
	for name, row := range map[string]struct {
		plant func(*builder)
		want  string // "" = nothing
	}{
		"it waits while paused":                                      {waits("work", 3*time.Second, time.Second), ""},
		"it waits while another behavior is paused":                  {waits("sleep", 3*time.Second, time.Second), "14 idle"},
		"it waits long after the end of a pause":                     {waits("work", 3*time.Second, 8*time.Second), "14 idle"},
		"it starts before the pause has been heard of":               {starts(900 * time.Millisecond), ""},
		"it starts while paused":                                     {starts(6 * time.Second), "15 paused"},
		"it starts after a restart":                                  {starts(15*time.Second, at(10*time.Second, 11*time.Second)), "15 paused"},
		"it starts where a fault kept the pause from being heard of": {starts(15*time.Second, at(2*time.Second, 11*time.Second)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			b.settled(1)
			row.plant(b)
			b.breaks(row.want)
		})
	}
}
