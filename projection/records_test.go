package projection_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/items"
	"taskledger/projection/schedules"
)

// recordBodies has a body of every kind that is of no task, in an order in which they are legal.
func recordBodies(j *journal) []events.Body {
	return []events.Body{
		&events.ItemAdded{ID: 1, Group: "pages", At: j.now, Owner: 7, Data: events.Bytes([]byte("a"))},
		&events.ItemReplaced{From: 1, To: 2, At: j.now.Add(time.Hour), Owner: 7},
		&events.ItemRemoved{ID: 2, Owner: 7},
		&events.StoreForgotten{Store: "crawl", Last: 2},
		&events.Paused{Behavior: "work", Reason: "a deployment"},
		&events.Unpaused{Behavior: "work"},
		&events.AcceptedLoss{Entry: j.state.Number + 1, Sound: j.state.Hash, Reason: "torn"},
		&events.Recovered{Entry: j.state.Number, Sound: j.state.Hash, Reason: "a disk was replaced"},
	}
}

// scheduleBodies has a body of every kind that is of a schedule, in an order in which they are legal.
func scheduleBodies(j *journal) []events.Body {
	return []events.Body{
		&events.ScheduleSet{Plan: nightly, Params: events.JSON([]byte(`{}`)), Next: j.now.Add(time.Hour), Code: "5f"},
		&events.Ticked{Decision: events.TickMissed, Cause: events.TickOld, From: j.now.Add(time.Hour), To: j.now.Add(time.Hour), Next: j.now.Add(2 * time.Hour)},
		&events.SchedulePaused{Reason: "a deployment"},
		&events.ScheduleResumed{},
		&events.BackfillSet{From: j.now, To: j.now.Add(time.Minute), Ticks: 1},
		&events.BackfillEnded{},
		(&events.ScheduleSet{Plan: renamed, Next: j.now.Add(2 * time.Hour)}).Recorded(""),
		&events.ScheduleEnded{},
	}
}

// nightly is the plan of a schedule.
var nightly = events.SchedulePlan{Cron: "0 0 3 * * ?", Zone: "UTC", Behavior: "work", Policy: completePolicy(), Keep: 1}

// renamed is nightly with UUIDs for names of runs.
var renamed = func() events.SchedulePlan {
	p := nightly
	p.Names = events.NamesByUUID
	return p
}()

func completePolicy() events.Policy {
	p, err := events.Policy{}.Complete()
	if err != nil {
		panic(err)
	}
	return p
}

// ofRecord is the event that would come next in a record that is no task.
func (j *journal) ofRecord(body events.Body) events.Event {
	ev := events.Event{Body: body, At: j.now}
	ev.Task, ev.Seq, ev.Prev = j.follows(body)
	ev.Position = events.Position{Shard: shard, Ref: events.RefOf(j.state.Number+1, len(j.entry.Entry.Events))}
	return ev
}

// follows is the record of a body, and what the record's next event follows.
func (j *journal) follows(body events.Body) (of events.TaskID, seq uint64, prev events.Ref) {
	switch body.Kind().Record() {
	case events.OfItem:
	case events.OfSchedule:
		of = events.ScheduleRecord("nightly")
		if s := schedules.Of(j.state).Schedule("nightly"); s != nil {
			return of, s.Seq + 1, s.Last
		}
		return of, 1, 0
	default:
		seq, prev = j.state.Next(body.Kind().Record())
		return "", seq, prev
	}
	of = events.StoreItem("crawl", 1)
	for id := range uint64(2) {
		if was := items.Of(j.state).Item("crawl", id+1); was != nil {
			return of, uint64(was.Seq) + 1, was.Last
		}
	}
	return of, 1, 0
}

func TestRecords_HaveEveryKindOfEventFolded(t *testing.T) {
	j := newJournal(t)
	bodies := append(recordBodies(j), scheduleBodies(j)...)
	for _, kind := range events.Kinds() {
		if kind.Record() != events.OfTask && !slices.ContainsFunc(bodies, func(b events.Body) bool { return b.Kind() == kind }) {
			t.Errorf("%s has no sample", kind)
		}
	}
	j.add("beside", j.created())
	for _, body := range bodies {
		of, before := body.Kind().Record(), j.state.Digest(nil)
		_, seq, _ := j.follows(body)
		j.addEvent(j.ofRecord(body))
		if _, next, prev := j.follows(body); body.Kind() != events.KindItemRemoved && body.Kind() != events.KindScheduleEnded && (next != seq+1 || prev == 0) {
			t.Errorf("%s: the next event of the %s is %d after %d", body.Kind(), of, next, prev)
		}
		if j.state.Digest(nil) == before {
			t.Errorf("%s leaves the digest as it was", body.Kind())
		}
	}
	j.seal(0)
	if restored := restore(t, write(j.state)); restored.Digest(nil) != j.state.Digest(nil) {
		t.Error("restored, the shard differs")
	}
	replayed := projection.NewShard(shard)
	for _, e := range j.entries {
		if err := replayed.Replay(e); err != nil {
			t.Fatal(err)
		}
	}
	if replayed.Digest(nil) != j.state.Digest(nil) || replayed.Len() != 1 {
		t.Errorf("replayed, the shard differs, or has %d tasks", replayed.Len())
	}
}

func TestRecords_RefuseWithTheirNameAndWithoutATrace(t *testing.T) {
	for i := range recordBodies(newJournal(t)) {
		j := newJournal(t)
		for _, body := range recordBodies(j)[:i] {
			j.addEvent(j.ofRecord(body))
		}
		ev := j.ofRecord(recordBodies(j)[i])
		ev.Seq++
		before := j.state.Digest(nil)
		after, err := j.state.Apply(nil, &ev)
		var refused *projection.TransitionError
		switch {
		case !errors.As(err, &refused) || after != nil:
			t.Errorf("%s: %v, %v; want a TransitionError", ev.Kind(), after, err)
		case refused.Record != ev.Kind().Record() || refused.Seq != ev.Seq || refused.Kind != ev.Kind():
			t.Errorf("refused with %+v, want %s, event %d of %s", refused, ev.Kind(), ev.Seq, ev.Kind().Record())
		case !strings.Contains(err.Error(), refused.Record.String()) || !strings.Contains(err.Error(), ev.Kind().String()):
			t.Errorf("%q does not name %s of %s", err, ev.Kind(), refused.Record)
		}
		if j.state.Digest(nil) != before {
			t.Errorf("%s was refused and left a trace", ev.Kind())
		}
	}
}

// What changes while a snapshot is being written is in it as it was when it began.
func TestRecords_AreInASnapshotAsTheyWereWhenItBegan(t *testing.T) {
	j := newJournal(t)
	bodies := recordBodies(j)
	for _, i := range []int{0, 1, 2, 4} {
		j.addEvent(j.ofRecord(bodies[i]))
	}
	j.seal(0)
	sn, then := j.state.BeginSnapshot(), j.state.Digest(nil)
	for _, i := range []int{3, 5, 6, 7} {
		j.addEvent(j.ofRecord(bodies[i]))
	}
	j.seal(0)
	for !sn.Step(1) {
	}
	if got := restore(t, sn.Parts()); got.Digest(nil) != then {
		t.Error("it holds what came later")
	}
}

func TestRestore_RefusesARecordOfAnEntryToCome(t *testing.T) {
	j := newJournal(t)
	j.seal(0)
	ev := j.ofRecord(&events.Paused{Behavior: "work"})
	ev.Position.Ref = events.RefOf(j.state.Number+1, 0)
	if _, err := j.state.Apply(nil, &ev); err != nil {
		t.Fatal(err)
	}
	if _, err := restored(write(j.state)); !errors.Is(err, projection.ErrSnapshot) || !strings.Contains(err.Error(), "settings") {
		t.Errorf("%v, want ErrSnapshot of the settings", err)
	}
}

// TestRecords_IdsOfItemsAreNotUsedAgainAfterALossOfTheJournal covers a store that was there and one that the lost end
// had made, by replay and by snapshot.
func TestRecords_IdsOfItemsAreNotUsedAgainAfterALossOfTheJournal(t *testing.T) {
	for what, loss := range map[string]func(j *journal) events.Body{
		"lost by the store": func(j *journal) events.Body { return &events.Recovered{Entry: j.state.Number, Sound: j.state.Hash} },
		"given up by an operator": func(j *journal) events.Body {
			return &events.AcceptedLoss{Entry: j.state.Number + 1, Sound: j.state.Hash}
		},
	} {
		j := newJournal(t)
		j.addEvent(j.ofRecord(&events.ItemAdded{ID: 1, Group: "pages", At: j.now, Owner: 7, Data: events.Bytes(nil)}))
		j.seal(time.Second)
		j.addEvent(j.ofRecord(loss(j)))
		j.seal(time.Second)
		for name, s := range map[string]*projection.Shard{"replayed": j.state, "restored": restore(t, write(j.state))} {
			for _, c := range []struct {
				store string
				id    uint64
				legal bool
			}{{"crawl", 2, false}, {"crawl", 1<<32 + 2, true}, {"new", 1, false}, {"new", 1<<32 + 1, true}} {
				ev := events.Event{Task: events.StoreItem(c.store, c.id), Seq: 1, At: j.now, Position: events.Position{Shard: shard, Ref: events.RefOf(j.state.Number+1, 0)},
					Body: &events.ItemAdded{ID: c.id, Group: "pages", At: j.now, Owner: 7, Data: events.Bytes(nil)}}
				if _, err := s.Apply(nil, &ev); (err == nil) != c.legal {
					t.Errorf("%s, %s: id %d in store %s: %v", what, name, c.id, c.store, err)
				}
			}
		}
	}
}
