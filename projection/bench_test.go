package projection_test

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"taskledger/events"
)

// delayed is a shard with so many tasks that wait for their time.
func delayed(t tb, count int) *journal {
	j := newJournal(t)
	p := policy(t, events.Policy{})
	params := strings.Repeat("p", 62)
	for i := range count {
		if i%1000 == 999 {
			j.entries = nil
			j.seal(0)
		}
		j.add(events.TaskID(fmt.Sprintf("%026d", i)), &events.Created{Behavior: "work", Policy: p,
			NotBefore: j.now.Add(time.Hour + time.Duration(i*7919%count)*time.Millisecond), Params: events.JSON([]byte(`"` + params + `"`))})
	}
	j.seal(0)
	j.entries = nil
	return j
}

// BenchmarkApply takes tasks from nothing to forgotten, with none and with many others around.
func BenchmarkApply(b *testing.B) {
	for _, around := range []int{0, 100_000} {
		b.Run(fmt.Sprint("among ", around), func(b *testing.B) {
			j := delayed(b, around)
			p := policy(b, events.Policy{})
			var all []*events.Entry
			for i := range 64 {
				for k := range 64 {
					id := events.TaskID(fmt.Sprintf("task-%d-%d", i, k))
					j.add(id, &events.Created{Behavior: "work", Policy: p, NotBefore: j.now})
					j.add(id, j.started(id))
					j.add(id, &events.Succeeded{Run: 1})
					j.add(id, &events.Deleted{})
				}
				j.seal(time.Millisecond)
			}
			all = j.entries
			count := 0
			b.ReportAllocs()
			runtime.GC()
			for b.Loop() {
				e := all[count%len(all)]
				for i := range e.Events {
					if _, err := j.state.Apply(j.state.Task(e.Events[i].Task), &e.Events[i]); err != nil {
						b.Fatal(err)
					}
				}
				j.state.Seal(e)
				count++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(count*256), "ns/event")
		})
	}
}

// BenchmarkApply_AmongFinished takes tasks from nothing to success in shards that keep no more finished ones: each that
// ends pushes out another. An entry ends the tasks that the one before started. The shards take turns, as on a node, so
// that what one of them looks at is seldom in the processor's cache. Making the events does not count.
func BenchmarkApply_AmongFinished(b *testing.B) {
	const shards, tasks = 16, 100
	p := policy(b, events.Policy{})
	var took time.Duration
	entry := func(j *journal, ended []events.TaskID) (started []events.TaskID) {
		e := &events.Entry{Shard: shard, Number: j.state.Number + 1, Time: j.now}
		add := func(id events.TaskID, seq uint64, prev events.Ref, body events.Body) {
			at := events.Position{Shard: shard, Ref: events.RefOf(e.Number, len(e.Events))}
			e.Events = append(e.Events, events.Event{Task: id, Seq: seq, Prev: prev, Body: body, At: e.Time, Position: at})
		}
		for _, id := range ended {
			add(id, 3, j.state.Task(id).Last, &events.Succeeded{Run: 1})
		}
		for range tasks {
			started = append(started, events.TaskID(rand.Text()))
			add(started[len(started)-1], 1, 0, &events.Created{Behavior: "work", Policy: p, NotBefore: j.now})
		}
		for i, id := range started {
			add(id, 2, e.Events[len(ended)+i].Position.Ref, &events.Started{Node: "n-1", Attempt: 1, Lease: 9_000})
		}
		begin := time.Now()
		for i := range e.Events {
			if _, err := j.state.Apply(j.state.Task(e.Events[i].Task), &e.Events[i]); err != nil {
				b.Fatal(err)
			}
		}
		j.state.Seal(e)
		took += time.Since(begin)
		j.now++
		return started
	}
	var journals [shards]*journal
	var running [shards][]events.TaskID
	for i := range journals {
		journals[i] = newJournal(b)
		for journals[i].state.Finished() < p.RetainCount {
			running[i] = entry(journals[i], running[i])
		}
	}
	runtime.GC()
	took = 0
	count := 0
	for b.Loop() {
		i := count % shards
		running[i] = entry(journals[i], running[i])
		count++
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(count*tasks), "ns/task")
}

func BenchmarkBeginSnapshot(b *testing.B) {
	for _, senders := range []int{0, 100_000} {
		b.Run(fmt.Sprint("senders ", senders), func(b *testing.B) {
			j := delayed(b, 100_000)
			for i := range senders {
				j.entry.AddOrigin(events.Origin{Sender: fmt.Sprint("sender-", i), Number: 1})
				if i%10_000 == 9_999 {
					j.add(events.TaskID(fmt.Sprint("t", i)), j.created())
					j.seal(0)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				j.state.BeginSnapshot().End()
			}
		})
	}
}

func BenchmarkSnapshot_Step256(b *testing.B) {
	j := delayed(b, 100_000)
	sn := j.state.BeginSnapshot()
	steps, written, bytes := 0, 0, 0
	b.ReportAllocs()
	for b.Loop() {
		if steps++; sn.Step(256) {
			written += j.state.Len()
			bytes += int(sn.Bytes)
			sn = j.state.BeginSnapshot()
		}
		sn.Parts()
	}
	if written > 0 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps*256), "ns/task")
		b.ReportMetric(float64(bytes)/float64(written), "bytes/task")
	}
}

func BenchmarkRestorer_Million(b *testing.B) {
	parts := write(delayed(b, 1_000_000).state)
	b.ReportAllocs()
	for b.Loop() {
		runtime.GC()
		if s := restore(b, parts); s.Len() != 1_000_000 {
			b.Fatal(s.Len())
		}
	}
}
