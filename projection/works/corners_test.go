package works_test

import (
	"testing"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/extension"
	"taskledger/projection/works"
)

// fold drives the works of a shard by events, without the tasks that they are of.
type fold struct {
	*testing.T
	extension.Extension
}

func newFold(t *testing.T) *fold {
	return &fold{T: t, Extension: works.Extend(extension.Shard{Reconsider: func(events.TaskID) {}})}
}

func (f *fold) all() *works.Works { return f.State.(*works.Works) }

// refused returns why the state does not allow an event, and applies one that it allows.
func (f *fold) refused(id events.TaskID, body events.Body) error {
	t := extension.Task{ID: id, Life: 1}
	ev := &events.Event{Task: id, At: 1, Body: body}
	if err := f.Allows(t, ev); err != nil {
		return err
	}
	f.Saw(t, ev)
	return nil
}

func (f *fold) add(id events.TaskID, body events.Body) {
	f.Helper()
	if err := f.refused(id, body); err != nil {
		f.Fatalf("%s of %s: %v", body.Kind(), id, err)
	}
}

// begin plans a work whose partition has two counters, and has its own task take the first bucket.
func (f *fold) begin(id events.TaskID) *works.Work {
	f.Helper()
	const limit = 1 << 40
	f.add(id, &events.WorkPlanned{Run: 1, Definition: "d", Partitions: []events.WorkPartition{{
		ID:         "all",
		Buckets:    2,
		Workers:    1,
		Threads:    1,
		Thresholds: []events.WorkThreshold{{Counter: "deletes", Limit: limit}, {Counter: "adds", Limit: limit}},
	}}})
	f.add(id, &events.PartitionStarted{Partition: 1})
	f.add(id, &events.BucketsMoved{Worker: 1, Attempt: 1, Started: 1})
	return f.all().Work(id)
}

// permit counts n items from a first one on.
func (f *fold) permit(id events.TaskID, counter string, bucket, first, n uint64) {
	f.Helper()
	const together = 64
	for end := first + n; first < end; first += together {
		items := make([]uint64, min(together, end-first))
		for i := range items {
			items[i] = first + uint64(i)
		}
		f.add(id, &events.PermitsGranted{Counter: counter, Bucket: bucket, Items: items})
	}
}

// restored returns the state that the rows of a snapshot make.
func (f *fold) restored() *works.Works {
	f.Helper()
	to := newFold(f.T)
	for i, section := range f.Sections {
		rows, write := section.List()
		for row := range rows {
			var w wire.Writer
			write(row, &w)
			r := wire.NewReader(w.B)
			if to.Sections[i].Read(r); r.Err() != nil {
				f.Fatalf("row %d of %s: %v", row, section.Name, r.Err())
			}
		}
	}
	if err := to.Restored(1<<40, 1); err != nil {
		f.Fatal(err)
	}
	return to.all()
}

func TestPermits_BeyondThoseThatAWorkRemembersAreCountedAlone(t *testing.T) {
	t.Parallel()
	const id = "a/p"
	f := newFold(t)
	of := f.begin(id)
	f.permit(id, "deletes", 1, 0, works.MaxPermits-10)
	f.permit(id, "adds", 1, 0, 10)
	if of.Permits() != works.MaxPermits || of.Uncertain != 0 {
		t.Fatalf("%d permits are remembered, %d uncertain, want %d", of.Permits(), of.Uncertain, works.MaxPermits)
	}
	if f.refused(id, &events.PermitsGranted{Counter: "deletes", Bucket: 1, Items: []uint64{7}}) == nil {
		t.Error("an item that is remembered counts a second time")
	}
	for range 2 { // an item that is not remembered counts each time
		f.permit(id, "deletes", 1, works.MaxPermits, 1)
	}
	if of.Permits() != works.MaxPermits || of.Uncertain != 2 || of.Permitted(0, 1, works.MaxPermits) {
		t.Errorf("%d permits are remembered, %d uncertain, want %d and 2", of.Permits(), of.Uncertain, works.MaxPermits)
	}
	if counted := of.Parts[0].Counters; counted[0] != works.MaxPermits-10+2 || counted[1] != 10 {
		t.Errorf("counted %d, want all", counted)
	}
	if is := f.restored(); is.Permits() != works.MaxPermits || is.Work(id).Uncertain != 2 || is.Bytes() != f.all().Bytes() {
		t.Errorf("restored, it remembers %d permits of %d bytes", is.Permits(), is.Bytes())
	}
	f.add(id, &events.BucketsMoved{Worker: 1, Attempt: 1, Ended: 1, Started: 2})
	if f.permit(id, "deletes", 2, 0, 5); of.Permits() != 5 || f.all().Permits() != 5 || of.Uncertain != 2 {
		t.Errorf("in the next bucket %d permits are remembered, %d uncertain, want 5 and 2", of.Permits(), of.Uncertain)
	}
}

func TestPermits_BeyondThoseThatAShardRemembersAreCountedAlone(t *testing.T) {
	t.Parallel()
	f := newFold(t)
	ids := []events.TaskID{"a/0", "a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7", "a/8", "a/9", "a/10"}
	for _, id := range ids {
		f.begin(id)
		f.permit(id, "deletes", 1, 0, works.MaxPermits)
	}
	last := f.all().Work(ids[len(ids)-1])
	beyond := len(ids)*works.MaxPermits - works.MaxShardPermits
	if f.all().Permits() != works.MaxShardPermits || last.Uncertain != uint64(beyond) {
		t.Errorf("%d permits are remembered, %d of the last work uncertain, want %d and %d", f.all().Permits(), last.Uncertain,
			works.MaxShardPermits, beyond)
	}
	if counted := last.Parts[0].Counters[0]; counted != works.MaxPermits {
		t.Errorf("the last work has counted %d, want %d", counted, works.MaxPermits)
	}
	f.add(ids[0], &events.BucketsMoved{Worker: 1, Attempt: 1, Ended: 1}) // it makes room for those of others
	f.permit(last.ID, "adds", 1, 0, 3)
	if last.Uncertain != uint64(beyond) || !last.Permitted(1, 1, 2) {
		t.Errorf("%d permits of the last work are uncertain, want %d as before", last.Uncertain, beyond)
	}
	for _, id := range ids {
		f.add(id, &events.Deleted{})
	}
	if f.all().Permits() != 0 || f.all().Bytes() != 0 {
		t.Errorf("%d permits of %d bytes are left when all works are gone", f.all().Permits(), f.all().Bytes())
	}
}

// One range more than a run remembers makes the span from the first bucket with failed items to the last.
func TestFailed_OneRangeMoreThanARunRemembersMakesASpan(t *testing.T) {
	t.Parallel()
	const (
		id      = "a/p"
		first   = 5
		buckets = first + 2*works.MaxFailedRanges + 10
	)
	f := newFold(t)
	f.add(id, &events.WorkPlanned{Run: 1, Definition: "d", Partitions: []events.WorkPartition{{
		ID:      "all",
		Buckets: buckets,
		Workers: 1,
		Threads: 1,
	}}})
	f.add(id, &events.PartitionStarted{Partition: 1})
	f.add(id, &events.BucketsMoved{Worker: 1, Attempt: 1, Started: 1})
	of := f.all().Work(id)
	failed := uint64(0)
	for n := uint64(1); n <= buckets; n++ {
		move := &events.BucketsMoved{Worker: 1, Attempt: 1, Ended: n}
		if n < buckets {
			move.Started = n + 1
		}
		if n >= first && n%2 == 1 && failed <= works.MaxFailedRanges {
			move.Items.Failed = 1
			failed++
		}
		f.add(id, move)
		if failed == works.MaxFailedRanges && (of.Parts[0].Spanned || of.FailedBuckets() != failed) {
			t.Fatalf("%d failed buckets of %d ranges are told as a span", of.FailedBuckets(), failed)
		}
	}
	f.add(id, &events.PartitionEnded{Partition: 1})
	const span = 2*works.MaxFailedRanges + 1
	if p := &of.Parts[0]; !p.Spanned || of.FailedBuckets() != span || p.FailedIn != works.MaxFailedRanges+1 {
		t.Errorf("spanned %t, %d buckets, %d failed, want a span of %d", p.Spanned, of.FailedBuckets(), p.FailedIn, span)
	}
	f.add(id, &events.WorkPlanned{Run: 2, Failed: true})
	f.add(id, &events.PartitionStarted{Partition: 1})
	if free, least := of.Free(); free != span || least != first {
		t.Errorf("the run of failed buckets has %d from %d on, want %d from %d on", free, least, span, first)
	}
	if !of.IsDone(first-1) || of.IsDone(first+1) || !of.IsDone(first+span) {
		t.Error("the run of failed buckets is not the span between the first and the last")
	}
}

func TestWorkers_ThatHaveEndedAreKeptUpToTheBytesOfAShardTheLastOnes(t *testing.T) {
	t.Parallel()
	const each = 1 << 20
	f := newFold(t)
	of := f.begin("a/p")
	for n := uint32(2); n < 30; n++ {
		is := extension.Task{ID: events.WorkerID("a/p", n), Life: events.Ref(n), Bytes: each}
		f.Saw(is, &events.Event{Task: is.ID, Body: &events.Created{Ties: events.Ties{Parent: "a/p"}}})
		is.Final = true
		f.Saw(is, &events.Event{Task: is.ID, Body: &events.Succeeded{Run: 1}})
		if want := min(int(n-1), works.MaxKeptBytes/each); of.Kept() != want || of.Worker(n) == nil {
			t.Fatalf("%d of %d workers of 1 MiB are kept, want %d", of.Kept(), n-1, want)
		}
	}
	if of.Active() != 0 || f.restored().Work("a/p").Kept() != of.Kept() {
		t.Errorf("%d are active, %d are kept in a snapshot", of.Active(), f.restored().Work("a/p").Kept())
	}
}
