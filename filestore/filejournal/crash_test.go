package filejournal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
	"taskledger/internal/testkit"
)

// history holds what one caller has asked of a journal, and what was answered.
type history struct {
	random   *rand.Rand
	journal  *filejournal.Journal
	asked    map[int][]journal.Entry // by shard, from the first one on: those that were answered, and perhaps one more
	answered map[int]int
	durable  map[int]int // how many were answered before the last snapshot was
	first    map[int]uint64
	written  map[journal.Key]journal.Snapshot // answered
	writing  map[journal.Key]journal.Snapshot // asked last, and not answered
}

func newHistory(seed uint64) *history {
	return &history{
		random:   rand.New(rand.NewPCG(seed, 1)),
		asked:    map[int][]journal.Entry{},
		answered: map[int]int{},
		durable:  map[int]int{},
		first:    map[int]uint64{},
		written:  map[journal.Key]journal.Snapshot{},
		writing:  map[journal.Key]journal.Snapshot{},
	}
}

// small makes segments so small that a short history has several.
func small(o filejournal.Options) filejournal.Options {
	o.SegmentBytes = 4000
	if o.Durability == filejournal.Opportunistic {
		o.Lag = time.Hour // a timer would make other histories of the same seed
	}
	o.Boot = "first"
	return o
}

const shards = 3

// step asks for one thing, and returns the error of the journal.
func (h *history) step() error {
	shard := h.random.IntN(shards)
	if h.random.IntN(8) == 0 {
		k := journal.Key{Shard: shard, Slot: h.random.IntN(journal.Slots)}
		s := journal.Snapshot{First: h.first[shard]}
		if n := h.answered[shard]; n > 0 {
			s.First = max(s.First, uint64(h.random.IntN(n)+1))
		}
		for range h.random.IntN(3) {
			s.Parts = append(s.Parts, h.data())
		}
		h.writing[k] = s
		if err := h.journal.WriteSnapshot(k, s); err != nil {
			return err
		}
		h.written[k], h.first[shard] = s, s.First
		delete(h.writing, k)
		for shard, n := range h.answered {
			h.durable[shard] = n
		}
		return nil
	}
	e := journal.Entry{
		Shard:    shard,
		Number:   uint64(len(h.asked[shard])) + 1,
		Revision: h.random.Int64N(1 << 40),
		Data:     h.data(),
	}
	h.asked[shard] = append(h.asked[shard], e)
	if err := h.journal.Append(e); err != nil {
		return err
	}
	h.answered[shard]++
	return nil
}

// data returns bytes of some length: of any value, or almost all zeros, which a disk that has lost them returns, too.
func (h *history) data() []byte {
	data := make([]byte, 1+h.random.IntN(1500))
	switch h.random.IntN(3) {
	case 0:
		for i := range data {
			data[i] = byte(h.random.Uint32())
		}
	case 1:
		data[h.random.IntN(len(data))] = 1 << h.random.IntN(8)
	}
	return data
}

// run makes steps until the journal fails.
func (h *history) run(steps int) error {
	for range steps {
		if err := h.step(); err != nil {
			return err
		}
	}
	return nil
}

// check compares a journal that was opened after a crash with what was answered before it. What was lost of a journal
// that may lose entries it takes out of the history.
func (h *history) check(j *filejournal.Journal, lossy bool) error {
	for shard := range shards {
		if err := h.checkShard(j, shard, lossy); err != nil {
			return err
		}
	}
	for shard := range shards {
		for slot := range journal.Slots {
			k := journal.Key{Shard: shard, Slot: slot}
			got, err := j.ReadSnapshot(k)
			if err != nil {
				return fmt.Errorf("snapshot %+v: %w", k, err)
			}
			late, asked := h.writing[k]
			if !sameSnapshot(got, h.written[k]) && (!asked || !sameSnapshot(got, late)) {
				return fmt.Errorf("snapshot %+v has %d parts and entries from %d on: it is neither the one before nor the next",
					k, len(got.Parts), got.First)
			}
		}
	}
	return nil
}

func (h *history) checkShard(j *filejournal.Journal, shard int, lossy bool) error {
	first := h.first[shard]
	for k, late := range h.writing {
		if got, err := j.ReadSnapshot(k); k.Shard == shard && err == nil && sameSnapshot(got, late) {
			first = max(first, late.First) // the entries before it may have gone
		}
	}
	first = max(first, 1)
	number := first
	for e, err := range j.Read(shard, first) {
		if err != nil {
			return err
		}
		if number > uint64(len(h.asked[shard])) {
			return fmt.Errorf("shard %d has an entry %d that nobody asked for", shard, number)
		}
		want := h.asked[shard][number-1]
		if e.Number != number || e.Revision != want.Revision || !bytes.Equal(e.Data, want.Data) {
			return fmt.Errorf("entry %d of shard %d is %d of revision %d", number, shard, e.Number, e.Revision)
		}
		number++
	}
	kept := h.answered[shard]
	if lossy {
		kept = h.durable[shard]
	}
	if number <= uint64(kept) {
		return fmt.Errorf("shard %d ends before entry %d, and %d were answered", shard, number, kept)
	}
	h.asked[shard] = h.asked[shard][:number-1]
	h.answered[shard] = int(number - 1)
	return nil
}

func sameSnapshot(a, b journal.Snapshot) bool {
	if a.First != b.First || len(a.Parts) != len(b.Parts) {
		return false
	}
	for i := range a.Parts {
		if !bytes.Equal(a.Parts[i], b.Parts[i]) {
			return false
		}
	}
	return true
}

// goOn opens the journal of a disk, checks it, and makes some more steps, which must be there after a clean end.
func (h *history) goOn(d *faultdisk.Disk, o filejournal.Options, lossy bool) error {
	j, err := filejournal.OpenLayer(d, o)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := h.check(j, lossy); err != nil {
		return errors.Join(err, j.Close())
	}
	for k, s := range h.writing {
		if got, err := j.ReadSnapshot(k); err == nil && sameSnapshot(got, s) {
			h.written[k], h.first[k.Shard] = s, max(h.first[k.Shard], s.First)
		}
	}
	clear(h.writing)
	h.journal = j
	if err := errors.Join(h.run(10), j.Close()); err != nil {
		return fmt.Errorf("go on: %w", err)
	}
	again, err := filejournal.OpenLayer(d, o)
	if err != nil {
		return fmt.Errorf("open after a clean end: %w", err)
	}
	return errors.Join(h.check(again, false), again.Close())
}

// steps are enough for several segments, of which some are rewritten and removed.
const steps = 60

// begin opens a journal on a new disk. It is killed at its nth change, 0 = never.
func begin(seed uint64, o filejournal.Options, n int) (*history, *faultdisk.Disk, error) {
	h, d := newHistory(seed), faultdisk.New()
	if n > 0 {
		d.KillAt(n)
	}
	j, err := filejournal.OpenLayer(d, o)
	if err != nil {
		return h, d, err
	}
	h.journal = j
	return h, d, h.run(steps)
}

// kills returns the changes of a history at which it is killed: all of them in a proof, else some that the seed picks.
func kills(t *testing.T, seed uint64, o filejournal.Options) (all []int) {
	t.Helper()
	for n := range changes(t, seed, o) {
		all = append(all, n+1)
	}
	if testkit.Whole() {
		return all
	}
	return testkit.Some(all[seed%4:], 4)
}

// changes counts those of a whole history.
func changes(t *testing.T, seed uint64, o filejournal.Options) int {
	t.Helper()
	h, d, err := begin(seed, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := d.Changes()
	if err := h.journal.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// fates tell what a loss of power may leave: nothing that was not synced, all of it, the first bytes, any sectors.
func fates(random *rand.Rand) map[string]faultdisk.Fate {
	all, none := func(n int) int { return n }, func(int) int { return 0 }
	some := func(n int) int { return random.IntN(n + 1) }
	yes, coin := func() bool { return true }, func() bool { return random.IntN(2) == 0 }
	synced, written := func(s, _ int) int { return s }, func(_, w int) int { return w }
	between := func(s, w int) int { return min(s, w) + random.IntN(max(s, w)-min(s, w)+1) }
	return map[string]faultdisk.Fate{
		"nothing":        {Names: none, Length: synced, Sector: func() bool { return false }},
		"names":          {Names: all, Length: synced, Sector: func() bool { return false }},
		"everything":     {Names: all, Length: written, Sector: yes},
		"first bytes":    {Names: some, Length: between, Sector: yes},
		"any sectors":    {Names: all, Length: written, Sector: coin},
		"bytes, sectors": {Names: some, Length: between, Sector: coin},
		"any names":      {Names: all, Name: coin, Length: written, Sector: yes},
		"any of all":     {Names: all, Name: coin, Length: between, Sector: coin},
		"zeros":          {Names: all, Length: written, Sector: func() bool { return false }},
	}
}

func durabilities() map[string]filejournal.Options {
	return map[string]filejournal.Options{
		"Strict":        small(filejournal.Options{}),
		"Opportunistic": small(filejournal.Options{Durability: filejournal.Opportunistic}),
	}
}

// seeds are drawn anew in a proof alone.
func seeds() (all []uint64) {
	for n := range testkit.Times(2, 40) {
		all = append(all, uint64(n)+1)
	}
	return all
}

func TestCrash_OfTheMachineLosesNoMoreThanThePromise(t *testing.T) {
	for name, o := range durabilities() {
		for _, seed := range seeds() {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				for _, n := range kills(t, seed, o) {
					for fate := range fates(nil) {
						h, d, err := begin(seed, o, n)
						if !errors.Is(err, faultdisk.ErrKilled) {
							t.Fatalf("change %d: %v", n, err)
						}
						random := rand.New(rand.NewPCG(seed, uint64(n)))
						after, next := d.Crash(fates(random)[fate]), o
						next.Boot = "second"
						if err := h.goOn(after, next, name == "Opportunistic"); err != nil {
							t.Fatalf("killed at change %d of seed %d, keeping %s: %v", n, seed, fate, err)
						}
					}
				}
			})
		}
	}
}

func TestCrash_OfTheProcessLosesNothing(t *testing.T) {
	for name, o := range durabilities() {
		for _, seed := range seeds() {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				for _, n := range kills(t, seed, o) {
					h, d, err := begin(seed, o, n)
					if !errors.Is(err, faultdisk.ErrKilled) {
						t.Fatalf("change %d: %v", n, err)
					}
					if err := h.goOn(d.Restart(), o, false); err != nil {
						t.Fatalf("killed at change %d of seed %d: %v", n, seed, err)
					}
				}
			})
		}
	}
}

// What a process that was killed has written is answered for by the next one, and synced by that first.
func TestCrash_OfTheMachineAfterOneOfTheProcessLosesNothingThatWasFound(t *testing.T) {
	o := small(filejournal.Options{Durability: filejournal.Opportunistic})
	for _, seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			for _, n := range kills(t, seed, o) {
				h, d, err := begin(seed, o, n)
				if !errors.Is(err, faultdisk.ErrKilled) {
					t.Fatal(err)
				}
				d = d.Restart()
				if _, err := filejournal.OpenLayer(d, o); err != nil {
					t.Fatal(err)
				}
				if err := h.goOn(d.Crash(fates(nil)["nothing"]), o, false); err != nil {
					t.Fatalf("killed at change %d of seed %d: %v", n, seed, err)
				}
			}
		})
	}
}

// A crash while the journal is opened after a crash leaves what the next one finds.
func TestCrash_WhileOpeningLosesNoMore(t *testing.T) {
	o := small(filejournal.Options{})
	for _, seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 2))
			most := changes(t, seed, o)
			for again := 1; again <= 12; again++ {
				for range 20 {
					n := 1 + random.IntN(most)
					h, d, err := begin(seed, o, n)
					if !errors.Is(err, faultdisk.ErrKilled) {
						t.Fatal(err)
					}
					fate := fates(random)["bytes, sectors"]
					second := d.Crash(fate)
					second.KillAt(again)
					if j, err := filejournal.OpenLayer(second, o); err == nil {
						_ = j.Close() // it came through, or was killed while it was closed
					}
					if err := h.goOn(second.Crash(fate), o, false); err != nil {
						t.Fatalf("killed at change %d of seed %d, and at change %d of opening: %v", n, seed, again, err)
					}
				}
			}
		})
	}
}

// Every length between what was synced and what was written is tried, not drawn.
func TestCrash_EveryPrefixOfTheLastWriteIsCutOrKept(t *testing.T) {
	t.Parallel()
	o := small(filejournal.Options{Durability: filejournal.Opportunistic})
	o.SegmentBytes = 1 << 20
	build := func() (*history, *faultdisk.Disk) {
		h, d := newHistory(7), faultdisk.New()
		j, err := filejournal.OpenLayer(d, o)
		if err != nil {
			t.Fatal(err)
		}
		h.journal = j
		if err := h.run(6); err != nil {
			t.Fatal(err)
		}
		return h, d
	}
	h, d := build()
	longest := 0
	for _, data := range d.Contents() {
		longest = max(longest, len(data))
	}
	if err := h.journal.Close(); err != nil {
		t.Fatal(err)
	}
	var lengths []int
	for length := range longest + 1 {
		lengths = append(lengths, length)
	}
	for _, length := range testkit.Some(lengths, 7) {
		h, d := build()
		after := d.Crash(faultdisk.Fate{
			Names:  func(n int) int { return n },
			Length: func(synced, written int) int { return max(synced, min(written, length)) },
			Sector: func() bool { return true },
		})
		if err := h.journal.Close(); err != nil {
			t.Fatal(err)
		}
		if err := h.goOn(after, o, true); err != nil {
			t.Fatalf("%d bytes are left: %v", length, err)
		}
	}
}
