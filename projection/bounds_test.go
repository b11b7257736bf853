package projection_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/projection"
)

// finish takes a task from nothing to its end within the present entry.
func (j *journal) finish(id events.TaskID, retain time.Duration, result events.Payload) {
	c := j.created()
	c.Policy.Retain = retain
	j.add(id, c)
	j.add(id, j.started(id))
	j.add(id, &events.Succeeded{Result: result, Run: 1})
}

func TestRetention_ByAgeInclusively(t *testing.T) {
	j := newJournal(t)
	j.finish("a", time.Minute, nil)
	j.seal(time.Minute)
	j.add("other", j.created())
	j.seal(time.Millisecond)
	if j.state.Task("a") == nil {
		t.Error("forgotten at its time, want after it")
	}
	j.add("another", j.created())
	j.seal(0)
	if j.state.Task("a") != nil || j.state.Finished() != 0 || j.state.Live() != 2 {
		t.Error("kept beyond its time")
	}
}

func TestRetention_ByCountTheFirstToExpireGoes(t *testing.T) {
	j := newJournal(t)
	j.finish("long", 48*time.Hour, nil)
	j.finish("short", time.Hour, nil)
	for i := range projection.MaxFinished - 2 {
		if i%1000 == 999 {
			j.seal(time.Millisecond)
		}
		j.finish(events.TaskID(fmt.Sprint("t", i)), 24*time.Hour, nil)
	}
	j.add("live", j.created())
	j.seal(time.Millisecond)
	if got := j.state.Finished(); got != projection.MaxFinished {
		t.Fatalf("%d finished, want %d", got, projection.MaxFinished)
	}
	j.finish("one", 24*time.Hour, nil)
	j.finish("two", 24*time.Hour, nil)
	j.seal(0)
	if j.state.Task("short") != nil || j.state.Task("t0") != nil {
		t.Error("what expires first was kept")
	}
	for _, id := range []events.TaskID{"long", "t1", "one", "two", "live"} {
		if j.state.Task(id) == nil {
			t.Errorf("%s was forgotten", id)
		}
	}
	if got := j.state.Finished(); got != projection.MaxFinished {
		t.Errorf("%d finished, want %d", got, projection.MaxFinished)
	}
}

func TestRetention_FinishedTaskLeavesPayloadsToTheJournal(t *testing.T) {
	j := newJournal(t)
	large := events.JSON([]byte(strings.Repeat("7", projection.MaxKeptResult)))
	j.finish("large", time.Hour, large)
	j.finish("small", time.Hour, events.JSON([]byte("7")))
	if a := j.state.Task("large"); a.Result != nil || !a.ResultElided || a.Params != nil || !a.ParamsElided {
		t.Errorf("large result kept: %+v", a)
	}
	if a := j.state.Task("small"); a.Result == nil || a.ResultElided || !a.ParamsElided {
		t.Errorf("small result dropped: %+v", a)
	}
	j.add("large", &events.Rescheduled{At: j.now})
	j.add("large", j.started("large"))
	if a := j.state.Task("large"); a.ResultElided || !a.ParamsElided || a.ParamsAt != a.Created {
		t.Errorf("in the next run: %+v", a)
	}
	j.add("large", &events.Merged{Params: large})
	if a := j.state.Task("large"); a.ParamsElided || a.Params == nil || a.ParamsAt != a.Last {
		t.Errorf("after a merge: %+v", a)
	}
}

func TestRetention_ScheduleHoldsItsLastOutcome(t *testing.T) {
	j := newJournal(t)
	j.add("tick", j.created())
	j.add("tick", j.started("tick"))
	j.add("tick", &events.Succeeded{Run: 1, Next: j.now.Add(72 * time.Hour), Result: events.JSON([]byte("7"))})
	j.seal(50 * time.Hour)
	j.add("other", j.created())
	j.seal(0)
	if a := j.state.Task("tick"); a == nil || a.Result == nil || a.Params == nil || j.state.Finished() != 0 {
		t.Errorf("a task with a next run was treated as finished: %+v", a)
	}
}

func TestSenders_RememberedForAnHourAfterLastUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(t)
		used := map[projection.SenderLane]*projection.Decided{}
		for entry := range rapid.IntRange(1, 20).Draw(t, "entries") {
			for range rapid.IntRange(0, 4).Draw(t, "origins") {
				lane := projection.SenderLane{Sender: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "sender"), Lane: rapid.Uint8Range(0, 1).Draw(t, "lane")}
				number := uint64(1)
				if d := used[lane]; d != nil {
					number = d.Number + 1
				}
				answers := []byte{byte(entry)}
				j.entry.AddOrigin(events.Origin{Sender: lane.Sender, Lane: lane.Lane, Number: number, Answers: answers})
				used[lane] = &projection.Decided{SenderLane: lane, Number: number, Answers: answers, LastUse: j.now}
			}
			at := j.now
			j.add(events.TaskID(fmt.Sprint("t", entry)), j.created())
			j.seal(time.Duration(rapid.IntRange(0, 50).Draw(t, "minutes")) * time.Minute)
			for lane, d := range used {
				if d.LastUse+projection.KeepSenders < at {
					delete(used, lane)
				}
			}
			if got := j.state.Senders(); got != len(used) {
				t.Fatalf("%d lanes remembered, want %d", got, len(used))
			}
			for lane, want := range used {
				got := j.state.Decided(lane)
				if got == nil || got.Number != want.Number || string(got.Answers) != string(want.Answers) || got.LastUse != want.LastUse {
					t.Fatalf("%v is remembered as %+v, want %+v", lane, got, want)
				}
			}
		}
		if j.state.Decided(projection.SenderLane{Sender: "stranger"}) != nil {
			t.Fatal("a lane never used is remembered")
		}
	})
}

// A shard may hold a million of these.
func TestMemory_DelayedTaskCostsAtMost512Bytes(t *testing.T) {
	const count = 50_000
	j := newJournal(t)
	params := events.JSON([]byte(`"` + strings.Repeat("p", 62) + `"`))
	p := policy(t, events.Policy{})
	before := liveHeap()
	for i := range count {
		if i%1000 == 999 {
			j.entries = nil
			j.seal(0)
		}
		j.add(events.TaskID(fmt.Sprintf("%026d", i)), &events.Created{Behavior: "work", Policy: p, NotBefore: j.now.Add(time.Hour + time.Duration(i)*time.Millisecond),
			Params: append(events.Payload(nil), params...)})
	}
	j.entries = nil
	j.seal(0)
	j.entries, j.entry = nil, events.Builder{}
	each := float64(liveHeap()-before) / count
	t.Logf("%.0f bytes of live heap for each task", each)
	if each > 512 {
		t.Errorf("%.0f bytes of live heap for each task, want at most 512", each)
	}
	runtime.KeepAlive(j)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
