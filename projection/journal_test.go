package projection_test

import (
	"reflect"
	"time"

	"taskledger/events"
	"taskledger/projection"
)

const (
	shard               = 3
	start events.Millis = 1_800_000_000_000
)

// tb has the methods that testing.T and rapid.T share.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// journal writes events as an owner would: each with the sequence and predecessor that its task asks for.
type journal struct {
	t       tb
	state   *projection.Shard
	entry   events.Builder
	now     events.Millis
	entries []*events.Entry // as decoded from their stored form
}

func newJournal(t tb) *journal {
	j := &journal{t: t, state: projection.NewShard(shard), now: start}
	j.begin()
	return j
}

func (j *journal) begin() {
	j.entry.Reset(events.Entry{Shard: shard, Number: j.state.Number + 1, Epoch: 7, Owner: "n-owner", Time: j.now, Prev: j.state.Hash})
}

// next is the event that would come next in a task's life.
func (j *journal) next(id events.TaskID, body events.Body) events.Event {
	ev := events.Event{Task: id, Seq: 1, Body: body, At: j.now}
	ev.Position = events.Position{Shard: shard, Ref: events.RefOf(j.state.Number+1, len(j.entry.Entry.Events))}
	if t := j.state.Task(id); t != nil {
		ev.Seq, ev.Prev = t.Seq+1, t.Last
	}
	return ev
}

// add applies an event that must be legal.
func (j *journal) add(id events.TaskID, body events.Body) *projection.Task {
	j.t.Helper()
	return j.addEvent(j.next(id, body))
}

func (j *journal) addEvent(ev events.Event) *projection.Task {
	j.t.Helper()
	t, err := j.state.Apply(j.state.Task(ev.Task), j.entry.Add(ev))
	if err != nil {
		j.t.Fatalf("%s of %s: %v", ev.Kind(), ev.Task, err)
	}
	return t
}

// seal completes the entry, if it holds anything, and begins one after a pause.
func (j *journal) seal(pause time.Duration) {
	j.t.Helper()
	if len(j.entry.Entry.Events) > 0 {
		data, err := j.entry.Seal()
		if err != nil {
			j.t.Fatalf("seal: %v", err)
		}
		stored, err := events.Decode(data)
		if err != nil {
			j.t.Fatalf("decode: %v", err)
		}
		j.entries = append(j.entries, stored)
		j.state.Seal(&j.entry.Entry)
	}
	j.now = j.now.Add(pause)
	j.begin()
}

// pass lets a time pass in entries of a minute and less, of which all counts.
func (j *journal) pass(d time.Duration) {
	j.t.Helper()
	for ; d > time.Minute; d -= time.Minute {
		j.seal(time.Minute)
		j.add("passing", j.created())
		j.add("passing", &events.Deleted{})
	}
	j.seal(d)
}

// created is a Created that is due now.
func (j *journal) created() *events.Created {
	return &events.Created{Behavior: "work", Policy: policy(j.t, events.Policy{}), NotBefore: j.now, Params: events.JSON([]byte(`{"a":1}`))}
}

func (j *journal) started(id events.TaskID) *events.Started {
	attempt := uint32(1)
	if t := j.state.Task(id); t != nil {
		attempt = t.Attempt + 1
	}
	return &events.Started{Node: "n-1", Attempt: attempt, Lease: 9_000}
}

func policy(t tb, p events.Policy) events.Policy {
	t.Helper()
	complete, err := p.Complete()
	if err != nil {
		t.Fatalf("policy: %v", err)
	}
	return complete
}

// view is everything a task shows, comparable by reflect.DeepEqual.
func view(t *projection.Task) map[string]any {
	if t == nil {
		return nil
	}
	fields := map[string]any{"behavior": t.Kind.Behavior, "policy": t.Kind.Policy, "creator": t.Kind.Creator}
	v := reflect.ValueOf(*t)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && f.Name != "Kind" {
			fields[f.Name] = v.Field(i).Interface()
		}
	}
	return fields
}

// viewAll is everything a shard shows of its tasks.
func viewAll(s *projection.Shard) map[events.TaskID]map[string]any {
	all := map[events.TaskID]map[string]any{}
	for t := range s.Tasks() {
		all[t.ID] = view(t)
	}
	return all
}

// places returns where a shard keeps its tasks, as far as it shows.
func places(s *projection.Shard) map[string]any {
	running := map[string]int{}
	for _, node := range s.RunningNodes() {
		for range s.Running(node) {
			running[node]++
		}
	}
	ready := map[string]int{}
	for behavior, n := range s.Backlog() {
		ready[behavior] = n
	}
	return map[string]any{"len": s.Len(), "finished": s.Finished(), "live": s.Live(), "due": s.NextDue(), "running": running, "ready": ready}
}
