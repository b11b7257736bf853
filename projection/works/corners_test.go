package works_test

import (
	"strconv"
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

// beginStream plans a stream, and has its own task take its bucket.
func (f *fold) beginStream(id events.TaskID) *works.Work {
	f.Helper()
	f.add(id, &events.WorkPlanned{Run: 1, Definition: "d", Partitions: []events.WorkPartition{{
		ID:      "all",
		Buckets: 1,
		Workers: 1,
		Threads: 1,
		Form:    events.FormPrecise,
	}}})
	f.add(id, &events.PartitionStarted{Partition: 1})
	f.add(id, &events.BucketsMoved{Worker: 1, Attempt: 1, Started: 1})
	return f.all().Work(id)
}

// hold adds a change to a hold, and creates its task if it begins one.
func (f *fold) hold(id events.TaskID, number uint32, key string, data int) error {
	f.Helper()
	begins := f.all().Work(id).Stream == nil || f.all().Work(id).Stream.Hold(number) == nil
	err := f.refused(id, &events.ChangeHeld{Attempt: 1, Hold: number, Partition: 1, Key: key, Data: make([]byte, data)})
	if err == nil && begins {
		is := extension.Task{ID: events.HoldID(id, number), Life: events.Ref(number)}
		f.Saw(is, &events.Event{Task: is.ID, Body: &events.Created{Ties: events.Ties{Parent: id}}})
	}
	return err
}

func TestHold_TakesAThousandChangesAndNoMore(t *testing.T) {
	t.Parallel()
	f := newFold(t)
	of := f.beginStream("a/p")
	for range events.MaxHeldChanges {
		if err := f.hold("a/p", 1, "k", 1); err != nil {
			t.Fatal(err)
		}
	}
	if f.hold("a/p", 1, "k", 1) == nil {
		t.Error("one more is taken")
	}
	f.add("a/p", &events.HoldMoved{Hold: 1, Done: 1})
	if err := f.hold("a/p", 1, "k", 1); err != nil {
		t.Errorf("after one is processed: %v", err)
	}
	if is := f.restored(); is.Bytes() != f.all().Bytes() || len(is.Work("a/p").Stream.Hold(1).Changes) != len(of.Stream.Hold(1).Changes) {
		t.Errorf("restored, it takes %d bytes, not %d", is.Bytes(), f.all().Bytes())
	}
}

func TestHold_TakesAsManyBytesAsItMayAndNoMore(t *testing.T) {
	t.Parallel()
	f := newFold(t)
	f.beginStream("a/p")
	if err := f.hold("a/p", 1, "k", events.MaxHeldBytes-1); err != nil {
		t.Fatal(err)
	}
	if err := f.hold("a/p", 1, "k", 1); err != nil {
		t.Error(err)
	}
	if f.hold("a/p", 1, "k", 1) == nil {
		t.Error("one more byte is taken")
	}
	f.restored()
}

func TestStream_HasTenThousandHoldsAndNoMoreWhichGoWithIt(t *testing.T) {
	t.Parallel()
	f := newFold(t)
	of := f.beginStream("a/p")
	for n := range uint32(events.MaxHolds) {
		if err := f.hold("a/p", n+1, strconv.Itoa(int(n)), 1); err != nil {
			t.Fatal(err)
		}
	}
	if f.hold("a/p", events.MaxHolds+1, "more", 1) == nil {
		t.Error("one more begins")
	}
	f.add("a/p", &events.HoldMoved{Hold: 7, Done: 1, Ended: true})
	if f.hold("a/p", 7, "7", 1) == nil {
		t.Error("a number is given twice")
	}
	if err := f.hold("a/p", events.MaxHolds+1, "6", 1); err != nil {
		t.Errorf("once one has ended: %v", err)
	}
	if is := f.restored(); is.Bytes() != f.all().Bytes() || is.Work("a/p").Stream.Len() != of.Stream.Len() || is.SpentLen() != 1 {
		t.Errorf("restored, it has %d holds and %d bytes", is.Work("a/p").Stream.Len(), is.Bytes())
	}
	f.add("a/p", &events.Deleted{})
	if f.all().SpentLen() != events.MaxHolds+1 {
		t.Errorf("%d tasks of holds are to be deleted", f.all().SpentLen())
	}
	for n := range uint32(events.MaxHolds + 1) {
		is := extension.Task{ID: events.HoldID("a/p", n+1), Life: events.Ref(n + 1)}
		f.Saw(is, &events.Event{Task: is.ID, Body: &events.Deleted{}})
	}
	if f.all().SpentLen() != 0 || f.all().Bytes() != 0 {
		t.Errorf("%d tasks of holds, %d bytes are left", f.all().SpentLen(), f.all().Bytes())
	}
}

func TestStream_IsForgottenForNoOtherWorkAndHeldAgainstRetention(t *testing.T) {
	t.Parallel()
	f := newFold(t)
	id := func(n int) events.TaskID { return events.TaskID("a/" + strconv.Itoa(n)) }
	final := func(n int) extension.Task { return extension.Task{ID: id(n), Life: 1, Final: true} }
	for n := range works.MaxWorks {
		f.beginStream(id(n))
		if n != 7 {
			f.add(id(n), &events.TokenMoved{Attempt: 1, Token: "t"})
		}
		f.add(id(n), &events.BucketsMoved{Worker: 1, Attempt: 1, Ended: 1})
		f.Saw(final(n), &events.Event{Task: id(n), Body: &events.Succeeded{Run: 1}})
	}
	if f.Holds(final(7)) || !f.Holds(final(8)) {
		t.Error("retention may forget a stream with a token, or none without")
	}
	f.beginStream("b/1")
	if f.all().Work(id(7)) != nil || f.all().Work(id(0)) == nil {
		t.Error("a stream with a token is forgotten for another work")
	}
	if f.refused("b/2", &events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{{ID: "all", Buckets: 1, Workers: 1, Threads: 1}}}) == nil {
		t.Error("one more work is planned")
	}
}

func TestStream_RefusesWhatIsNotOfTheAttemptOrThePartition(t *testing.T) {
	t.Parallel()
	f := newFold(t)
	f.beginStream("a/p")
	f.begin("a/q")
	if err := f.hold("a/p", 3, "k", 1); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]events.Body{
		"a token of another attempt":        &events.TokenMoved{Attempt: 2, Token: "t"},
		"a token that is simulated":         &events.TokenMoved{Attempt: 1, Token: "t", Simulated: true},
		"a change of another attempt":       &events.ChangeHeld{Attempt: 2, Hold: 4, Partition: 1, Key: "z"},
		"a change of another partition":     &events.ChangeHeld{Attempt: 1, Hold: 4, Partition: 2, Key: "z"},
		"a hold of a number of before":      &events.ChangeHeld{Attempt: 1, Hold: 2, Partition: 1, Key: "z"},
		"two holds of a key":                &events.ChangeHeld{Attempt: 1, Hold: 4, Partition: 1, Key: "k"},
		"a change of another key":           &events.ChangeHeld{Attempt: 1, Hold: 3, Partition: 1, Key: "z"},
		"a hold that is not there":          &events.HoldMoved{Hold: 4, Done: 1, Ended: true},
		"more changes than there are":       &events.HoldMoved{Hold: 3, Done: 2, Ended: true},
		"the end of a hold with changes":    &events.HoldMoved{Hold: 3, Ended: true},
		"a hold without changes that stays": &events.HoldMoved{Hold: 3, Done: 1},
		"a token that is set while it runs": &events.WorkReset{What: events.ResetToken},
	} {
		if f.refused("a/p", body) == nil {
			t.Errorf("%s is allowed", name)
		}
	}
	if f.refused("a/q", &events.TokenMoved{Attempt: 1, Token: "t"}) == nil {
		t.Error("a token of a work that is no stream is allowed")
	}
}
