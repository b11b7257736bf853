package projection_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/projection"
	"taskledger/task"
)

var testLanes = []projection.SenderLane{{Sender: "x"}, {Sender: "x", Lane: 3}, {Sender: "y"}, {Sender: "z", Lane: 1}}

// whole is everything that a shard shows, time aside; now is the latest time it was given.
func whole(s *projection.Shard, now events.Millis) map[string]any {
	s.MakeDue(now)
	senders := map[projection.SenderLane]string{} // when they are forgotten, unwind tells
	for _, lane := range testLanes {
		if d := s.Decided(lane); d != nil {
			senders[lane] = fmt.Sprintf("%d %x", d.Number, d.Answers)
		}
	}
	first := map[string]events.TaskID{}
	for behavior := range s.Backlog() {
		first[behavior] = s.Ready(behavior).ID
	}
	return map[string]any{"number": s.Number, "hash": s.Hash, "time": s.Time, "bytes": s.LiveBytes(), "tasks": viewAll(s),
		"places": places(s), "ready first": first, "senders": senders, "sender count": s.Senders()}
}

func wantSame(t tb, got, want map[string]any, when string) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(want)) {
		if !reflect.DeepEqual(got[what], want[what]) {
			t.Fatalf("%s: %s is\n%v\nwant\n%v", when, what, got[what], want[what])
		}
	}
}

func restore(t tb, parts [][]byte) *projection.Shard {
	t.Helper()
	s, err := restored(parts)
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	return s
}

func restored(parts [][]byte) (*projection.Shard, error) {
	r := projection.NewRestorer(shard)
	for _, part := range parts {
		if err := r.Add(part); err != nil {
			return nil, err
		}
	}
	return r.Done()
}

// write takes a snapshot at once.
func write(s *projection.Shard) (parts [][]byte) {
	sn := s.BeginSnapshot()
	for !sn.Step(100) {
		parts = append(parts, sn.Parts()...)
	}
	return append(parts, sn.Parts()...)
}

// unwind empties the ready, due and finished orders of a shard and says in which order things left; the shard is of no
// use after it.
func unwind(t tb, s *projection.Shard, now events.Millis) (left []string) {
	t.Helper()
	for ; now != 0; now = s.NextDue() {
		s.MakeDue(now)
		for _, behavior := range []string{"purge", "work"} {
			for task := s.Ready(behavior); task != nil; task = s.Ready(behavior) {
				left = append(left, "ready "+string(task.ID))
				suspend := events.Event{Task: task.ID, Seq: task.Seq + 1, Prev: task.Last, At: now, Body: &events.Suspended{},
					Position: events.Position{Shard: shard, Ref: events.RefOf(s.Number+1, 0)}}
				if _, err := s.Apply(task, &suspend); err != nil {
					t.Fatalf("unwind: %v", err)
				}
			}
		}
	}
	lasting := 0 // whose streams outlive them
	for task := range s.Tasks() {
		if task.Final() && streams(s, task) {
			lasting++
		}
	}
	finished := func() int { return s.Finished() - lasting }
	for finished() > 0 || s.Senders() > 0 {
		before, senders, pause := viewAll(s), s.Senders(), events.Millis(100)
		if s.Held() > 0 && s.Held() == finished() {
			pause = 10_000
		}
		succeeded := func(t *projection.Task) bool { return t.Final() && !streams(s, t) && t.Status == task.Success }
		if s.Held() == 0 && !slices.ContainsFunc(slices.Collect(s.Tasks()), succeeded) {
			pause = events.Millis(projection.RetainFailures.Milliseconds() / 20)
		}
		s.Seal(&events.Entry{Number: s.Number + 1, Time: s.Time + pause})
		for _, id := range slices.Sorted(maps.Keys(before)) {
			if s.Task(id) == nil {
				left = append(left, fmt.Sprint(s.Time, " forgets ", id))
			}
		}
		if n := s.Senders(); n != senders {
			left = append(left, fmt.Sprint(s.Time, " leaves senders ", n))
		}
		if finished() == 0 {
			s.Seal(&events.Entry{Number: s.Number + 1, Time: s.Time + projection.KeepSenders/50})
		}
	}
	return left
}

// stepEntry adds a random entry.
func stepEntry(t *rapid.T, j *journal, between func()) {
	for _, lane := range testLanes {
		if rapid.IntRange(0, 3).Draw(t, "used") == 0 {
			number := uint64(1)
			if d := j.state.Decided(lane); d != nil {
				number = d.Number + 1
			}
			j.entry.AddOrigin(events.Origin{Sender: lane.Sender, Lane: lane.Lane, Number: number, Answers: []byte{byte(number)}})
		}
	}
	for range rapid.IntRange(1, 8).Draw(t, "events") {
		step(t, j)
		between()
	}
	j.seal(rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 4 * time.Second, 40 * time.Minute}).Draw(t, "pause"))
	between()
}

func TestSnapshot_IsTheStateAtItsEntryWhateverHappensMeanwhile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(t)
		for range rapid.IntRange(0, 12).Draw(t, "entries before") {
			stepEntry(t, j, func() {})
		}
		begun := len(j.entries)
		want := whole(j.state, j.state.Time)
		sn := j.state.BeginSnapshot()
		if sn.Entry != uint64(begun) {
			t.Fatalf("snapshot of entry %d, want %d", sn.Entry, begun)
		}
		var parts [][]byte
		done := false
		advance := func() {
			done = sn.Step(rapid.IntRange(0, 2).Draw(t, "tasks"))
			parts = append(parts, sn.Parts()...)
		}
		for range rapid.IntRange(0, 8).Draw(t, "entries meanwhile") {
			stepEntry(t, j, advance)
			checkPlaces(t, j.state, j.now)
		}
		for !done {
			advance()
		}
		total := 0
		for _, part := range parts {
			total += len(part)
		}
		if int64(total) != sn.Bytes {
			t.Fatalf("%d bytes in parts, Bytes says %d", total, sn.Bytes)
		}
		got := restore(t, parts)
		wantSame(t, whole(got, got.Time), want, "restored")
		folded := replay(t, j.entries[:begun])
		wantSame(t, whole(folded, folded.Time), want, "folded")
		for range rapid.IntRange(0, 4).Draw(t, "entries after") {
			stepEntry(t, j, func() {})
		}
		for _, e := range j.entries[begun:] {
			for _, s := range []*projection.Shard{got, folded} {
				if err := s.Replay(e); err != nil {
					t.Fatalf("entry %d: %v", e.Number, err)
				}
			}
			wantSame(t, whole(got, got.Time), whole(folded, folded.Time), "later, restored against folded")
		}
		checkPlaces(t, got, got.Time)
		wantSame(t, whole(got, j.now), whole(j.state, j.now), "at the end, restored against the original")
		if got, want := unwind(t, got, j.now), unwind(t, folded, j.now); !slices.Equal(got, want) {
			t.Fatalf("the restored shard unwinds as\n%s\nthe folded one as\n%s", got, want)
		}
	})
}

func TestSnapshot_AbandonedLeavesNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(t)
		var first, second *projection.Snapshot
		ended := rapid.Bool().Draw(t, "ended by hand")
		for i := range 9 {
			switch i {
			case 3:
				first = j.state.BeginSnapshot()
			case 6:
				if ended {
					first.End()
					first.End()
				}
				second = j.state.BeginSnapshot()
			}
			stepEntry(t, j, func() {
				if first != nil && second == nil && first.Step(1) {
					first.End() // an abandoned one may also be complete
				}
			})
		}
		if first.Step(100) || len(first.Parts()) > 0 {
			t.Fatalf("the abandoned snapshot goes on")
		}
		for !second.Step(3) {
			continue
		}
		got, folded := restore(t, second.Parts()), replay(t, j.entries[:6])
		wantSame(t, whole(got, got.Time), whole(folded, folded.Time), "the second")
		all := replay(t, j.entries)
		wantSame(t, whole(j.state, j.now), whole(all, j.now), "the shard")
	})
}

// crowd is a shard with tasks and senders for many parts.
func crowd(t tb) *journal {
	j := delayed(t, 3000)
	big := events.JSON(bytes.Repeat([]byte("7"), 200<<10))
	for i := range 3 {
		c := j.created()
		c.Params, c.Behavior = big, fmt.Sprint("big-", i)
		j.add(events.TaskID(fmt.Sprint("big/", i)), c)
		j.entry.AddOrigin(events.Origin{Sender: "loud", Lane: uint8(i), Number: 1, Answers: big[:100<<10]})
		j.seal(0)
	}
	for i := range 1000 {
		j.entry.AddOrigin(events.Origin{Sender: fmt.Sprint("sender-", i), Number: uint64(i + 1), Answers: big[:90]})
	}
	j.add("last", j.created())
	j.seal(0)
	return j
}

func TestSnapshot_PartsAreSmall(t *testing.T) {
	s := crowd(t).state
	parts := write(s)
	large := 0
	for i, part := range parts {
		switch n := len(part); {
		case n > 256<<10:
			t.Errorf("part %d has %d bytes", i, n)
		case n > projection.PartBytes:
			large++
		}
	}
	if large != 6 {
		t.Errorf("%d parts exceed %d bytes, want one for each of 6 values that alone do", large, projection.PartBytes)
	}
	if want := 15 + 6; len(parts) > want {
		t.Errorf("%d parts, want at most %d", len(parts), want)
	}
	got := restore(t, parts)
	wantSame(t, whole(got, s.Time), whole(s, s.Time), "restored")
	if got := got.Decided(projection.SenderLane{Sender: "loud", Lane: 2}); got == nil || len(got.Answers) != 100<<10 {
		t.Errorf("the loud sender is restored as %+v", got)
	}
}

func TestSnapshot_StepIsBoundedByAPart(t *testing.T) {
	sn := crowd(t).state.BeginSnapshot()
	for done := false; !done; {
		done = sn.Step(1 << 30)
		if n := len(sn.Parts()); n > 1 {
			t.Fatalf("a step wrote %d parts", n)
		}
	}
}

func TestRestorer_RefusesPartsThatAreMissingRepeatedOrInAnotherOrder(t *testing.T) {
	t.Parallel()
	j := crowd(t)
	parts := write(j.state)
	j.add("one-more", j.created())
	j.seal(time.Second)
	later := write(j.state)
	rows := map[string][][]byte{"nothing": nil, "one part": parts[:1], "of two snapshots": slices.Concat(parts[:2], later[2:])}
	for i := range parts {
		rows[fmt.Sprint("without part ", i)] = slices.Concat(parts[:i], parts[i+1:])
		rows[fmt.Sprint("part twice: ", i)] = slices.Concat(parts[:i+1], parts[i:])
		if i > 0 {
			swapped := slices.Clone(parts)
			swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
			rows[fmt.Sprint("swapped before ", i)] = swapped
		}
	}
	for name, parts := range rows {
		if _, err := restored(parts); !errors.Is(err, projection.ErrSnapshot) {
			t.Errorf("%s: %v, want ErrSnapshot", name, err)
		}
	}
	r := projection.NewRestorer(shard + 1)
	if err := r.Add(parts[0]); !errors.Is(err, projection.ErrSnapshot) || !strings.Contains(err.Error(), "part 0 of shard 4") {
		t.Errorf("a part of another shard: %v", err)
	}
}

func TestRestorer_RefusesAFlippedByteAndStaysRefusing(t *testing.T) {
	t.Parallel()
	parts, random := write(delayed(t, 1000).state), testkit.Rand(t)
	for i, part := range parts {
		for range 300 {
			damaged := bytes.Clone(part)
			damaged[random.IntN(len(part))] ^= byte(1 + random.IntN(255))
			r := projection.NewRestorer(shard)
			for k, part := range parts {
				if k == i {
					part = damaged
				}
				err := r.Add(part)
				if (err != nil) != (k >= i) || err != nil && (!errors.Is(err, projection.ErrSnapshot) || !strings.Contains(err.Error(), fmt.Sprintf("part %d of", i))) {
					t.Fatalf("part %d damaged, Add of part %d: %v", i, k, err)
				}
			}
			if s, err := r.Done(); s != nil || !errors.Is(err, projection.ErrSnapshot) {
				t.Fatalf("part %d damaged, Done: %v", i, err)
			}
		}
	}
}

func TestRestorer_KeepsNothingOfTheParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(t)
		for range 8 {
			stepEntry(t, j, func() {})
		}
		want := whole(j.state, j.now)
		parts := write(j.state)
		r := projection.NewRestorer(shard)
		for _, part := range parts {
			if err := r.Add(part); err != nil {
				t.Fatalf("add: %v", err)
			}
			clear(part)
		}
		s, err := r.Done()
		if err != nil {
			t.Fatalf("done: %v", err)
		}
		wantSame(t, whole(s, j.now), want, "after the parts were cleared")
	})
}

func TestMemory_RestoredTasksTakeNoMoreThanFoldedOnes(t *testing.T) {
	const count = 50_000
	before := liveHeap()
	j := delayed(t, count)
	j.entries, j.entry = nil, events.Builder{}
	folded := float64(liveHeap()-before) / count
	parts := write(j.state)
	*j = journal{}
	before = liveHeap()
	s := restore(t, parts)
	each := float64(liveHeap()-before) / count
	t.Logf("%.0f bytes of live heap for each folded task, %.0f for each restored one", folded, each)
	if each > folded*1.05 {
		t.Errorf("a restored task takes %.0f bytes, a folded one %.0f", each, folded)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(parts)
}
