package natsbus_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// parted is an archive of shard 0 of entries 1 to 8, with the tasks task-1 to task-8, which is to begin anew with entry
// 6.
type parted struct {
	*natsbus.Archive
	t   *testing.T
	js  jetstream.JetStream
	old []store.Record
	end store.ArchiveHead // of what is there
}

func newParted(t *testing.T) *parted {
	s := testcluster.StartJetStream(t)
	p := &parted{Archive: openArchive(t, s), t: t, js: byHand(t, s.URL), old: archivetest.Entries(t, 0, 1, 8)}
	_, err := p.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: archiveStream, Subjects: []string{"taskledger.archive.*"}})
	if err != nil {
		t.Fatal(err)
	}
	for some := range slices.Chunk(p.old, 2) {
		p.end = archive(t, p.Archive, 0, p.end, some)
	}
	return p
}

// anew archives entries from number on, with the tasks anew-number and so on, behind a head.
func (p *parted) anew(after store.ArchiveHead, entries ...uint64) store.ArchiveHead {
	p.t.Helper()
	var all []store.Record
	for _, number := range entries {
		all = append(all, archivetest.Entry(p.t, 0, number, 7, "anew-"+archivetest.Task(number)))
	}
	return archive(p.t, p.Archive, 0, after, all)
}

// remove deletes a message.
func (p *parted) remove(sequence uint64) {
	p.t.Helper()
	stream, err := p.js.Stream(p.t.Context(), archiveStream)
	if err == nil {
		err = stream.DeleteMsg(p.t.Context(), sequence)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// found returns the numbers of the entries in which a task is found.
func (p *parted) found(task events.TaskID) (numbers []uint64, err error) {
	found, err := archivetest.Collect(p.FindArchived(p.t.Context(), 0, task, math.MaxUint64))
	for _, rec := range found {
		numbers = append(numbers, rec.Number)
	}
	return numbers, err
}

// wantDamage checks which entries of a task are found before the damage is told.
func (p *parted) wantDamage(task events.TaskID, want ...uint64) {
	p.t.Helper()
	got, err := p.found(task)
	if !errors.Is(err, events.ErrDamaged) || !slices.Equal(got, want) {
		p.t.Errorf("task %s is found in entries %v, %v; want %v, and the damage", task, got, err, want)
	}
}

// Where an archive that began anew is damaged at the border, what was archived before cannot be told from what counts
// no more: a task that may be there is not told as one that is not.
func TestArchive_DamageBetweenItsPartsIsNoAbsence(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(p *parted){
		"what was archived before is gone": func(p *parted) {
			p.anew(store.ArchiveHead{Entry: 5, Sequence: p.end.Sequence, Begins: p.end.Sequence}, 6, 7)
			p.remove(p.end.Sequence)
		},
		"the first one of the new part is no segment": func(p *parted) {
			forge(p.t, p.js, nil, []byte("garbage"))
			p.anew(store.ArchiveHead{Entry: 5, Sequence: p.end.Sequence + 1, Begins: p.end.Sequence}, 6, 7)
		},
		"the last one before is no segment": func(p *parted) {
			forge(p.t, p.js, nats.Header{"Taskledger-Begins": {"garbage"}}, []byte("garbage"))
			p.anew(store.ArchiveHead{Entry: 5, Sequence: p.end.Sequence + 1, Begins: p.end.Sequence + 1}, 6, 7)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newParted(t)
			make(p)
			p.wantDamage("task-1")
			p.wantDamage("anew-task-6", 7, 6)
			if _, err := archivetest.Collect(p.ReadArchive(t.Context(), 0, 1)); !errors.Is(err, events.ErrDamaged) {
				t.Errorf("read from the first entry: %v", err)
			}
		})
	}
}

// Where a segment is gone, a task that may have been in it is not told as one that is not there.
func TestArchive_GapIsNoAbsence(t *testing.T) {
	t.Parallel()
	p := newParted(t)
	p.remove(2)
	p.wantDamage("task-3")
	p.wantDamage("task-1", 2, 1)
	p.wantDamage("task-8", 8, 7)
}

// What a part has behind the entries that count was given up when the archive began anew: a gap there hides nothing.
func TestArchive_GapBehindWhatCountsIsNoDamage(t *testing.T) {
	t.Parallel()
	p := newParted(t)
	p.anew(store.ArchiveHead{Entry: 3, Sequence: p.end.Sequence, Begins: p.end.Sequence}, 4, 5)
	p.remove(3)
	for task, want := range map[events.TaskID][]uint64{"task-3": {3}, "anew-task-5": {5, 4}, "never": nil} {
		if got, err := p.found(task); err != nil || !slices.Equal(got, want) {
			t.Errorf("task %s is found in entries %v, %v; want %v", task, got, err, want)
		}
	}
	if read, err := archivetest.Collect(p.ReadArchive(t.Context(), 0, 1)); len(read) != 5 || err != nil {
		t.Errorf("read from the first entry: %d entries, %v; want 5", len(read), err)
	}
}

// A segment of the whole archive behind one that began it anew tells that its writer did not know of that. Which of the
// entries before it count is not known.
func TestArchive_SegmentThatDoesNotTellOfTheNewBeginningIsDamage(t *testing.T) {
	t.Parallel()
	p := newParted(t)
	head := p.anew(store.ArchiveHead{Entry: 5, Sequence: p.end.Sequence, Begins: p.end.Sequence}, 6, 7)
	p.anew(store.ArchiveHead{Entry: head.Entry, Sequence: head.Sequence}, 8)
	for _, task := range []events.TaskID{"task-1", "task-7", "anew-task-7", "anew-task-8", "never"} {
		p.wantDamage(task)
	}
	for from := range uint64(8) {
		if _, err := archivetest.Collect(p.ReadArchive(t.Context(), 0, from)); !errors.Is(err, events.ErrDamaged) {
			t.Errorf("read from entry %d: %v", from, err)
		}
	}
}
