package events_test

import (
	"testing"

	"taskledger/events"
)

// perEntry is the number of events in the entries of the benchmarks: what some hundred submits in flight make.
const perEntry = 300

// lives returns the events of an entry of a busy shard: tasks that are created and started at once, and others that
// succeed.
func lives() []events.Event {
	all := make([]events.Event, 0, perEntry)
	params, result := events.JSON([]byte(`{"table":"orders"}`)), events.JSON([]byte(`{"files":3}`))
	for len(all) < perEntry {
		all = append(all,
			events.Event{Task: "t-0123456789abcdef", Seq: 1, Origin: 1,
				Body: &events.Created{Behavior: "purge-table", Policy: samplePolicy, NotBefore: sampleTime, Params: params}},
			events.Event{Task: "t-0123456789abcdef", Seq: 2, Prev: events.RefOf(42, 3),
				Body: &events.Started{Node: "n-1f2e3d4c", Attempt: 1, Lease: 10_000}},
			events.Event{Task: "t-fedcba9876543210", Seq: 3, Origin: 1, Prev: events.RefOf(41, 7), Body: &events.Succeeded{Result: result}})
	}
	return all
}

func BenchmarkEncode(b *testing.B) {
	all := lives()
	var builder events.Builder
	b.ReportAllocs()
	for b.Loop() {
		builder.Reset(sampleHead())
		builder.AddOrigin(sampleOrigins[0])
		for i := range all {
			builder.Add(all[i])
		}
		if _, err := builder.Seal(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*perEntry), "ns/event")
}

func BenchmarkDecode(b *testing.B) {
	_, data := seal(b, sampleHead(), sampleOrigins[:1], lives()...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*perEntry), "ns/event")
	b.ReportMetric(float64(len(data))/perEntry, "B/event")
}
