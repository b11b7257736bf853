package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/store"
)

// crashShards counts the shards of a history.
const crashShards = 2

// history holds what one caller has asked of a store, and what was answered.
type history struct {
	t       *testing.T
	random  *rand.Rand
	store   *filestore.Store
	journal *filejournal.Journal
	own     [crashShards]*store.Ownership // nil = it is to be taken
	told    [crashShards]told
	parts   map[store.SnapshotInfo][]byte // of each snapshot that was put
	raised  uint64                        // answered
	raising uint64                        // asked last
	given   int64                         // the highest revision that was answered
}

// told holds what was answered of a shard, and what may have become of a call that was not.
type told struct {
	entries  []store.Record // from the first one on
	last     *events.Entry
	durable  int    // so many entries were answered before the last sync
	asked    []byte // the entry behind them; nil = there is none
	pointer  store.SnapshotPointer
	pointing store.SnapshotPointer
	first    uint64
	trimming uint64
	loss     store.Loss
	losing   store.Loss
}

// small makes segments so small that a short history has several.
func small(d filejournal.Durability) filejournal.Options {
	o := filejournal.Options{
		Durability:   d,
		SegmentBytes: 4000,
		Boot:         "first",
	}
	if d == filejournal.Opportunistic {
		o.Lag = time.Hour // nothing is synced but what has to be
	}
	return o
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, random: rand.New(rand.NewPCG(seed, 3)), parts: map[store.SnapshotInfo][]byte{}}
	for i := range h.told {
		h.told[i].last = &events.Entry{Time: 1}
	}
	return h
}

// open opens the store on a disk.
func (h *history) open(d *faultdisk.Disk, o filejournal.Options) (err error) {
	if h.journal, err = filejournal.OpenLayer(d, o); err != nil {
		return err
	}
	h.own = [crashShards]*store.Ownership{}
	h.store, err = filestore.New(h.journal, filestore.Config{Shards: crashShards})
	return err
}

// within bounds a call, which waits where there is no room.
func (h *history) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(h.t.Context(), 2*time.Second)
}

// run makes steps until one fails.
func (h *history) run(steps int) error {
	for range steps {
		if err := h.step(); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) step() error {
	ctx, cancel := h.within()
	defer cancel()
	shard := h.random.IntN(crashShards)
	at := &h.told[shard]
	if h.own[shard] == nil {
		return h.take(ctx, shard)
	}
	switch h.random.IntN(20) {
	case 0, 1:
		return h.publish(ctx, shard)
	case 2:
		return h.trim(ctx, shard)
	case 3:
		h.raising = h.raised + 1
		return h.noted(h.store.Raise(ctx, store.Reads{Entry: 100 + h.raising}), func() { h.raised = h.raising })
	case 4:
		at.losing = store.Loss{Shard: shard, Entry: 7, Reason: fmt.Sprint("loss ", h.random.Uint32())}
		return h.noted(h.store.GiveUp(ctx, at.losing), func() { at.loss = h.lost(shard) })
	case 5, 6:
		return h.recover(ctx, shard)
	case 7:
		if err := h.store.Leave(ctx, h.own[shard].Session); err != nil {
			return err
		}
		h.own[shard] = nil
		return nil
	}
	return h.append(ctx, shard)
}

// noted returns the error of a call that makes everything durable which was answered before; then says what it has
// done.
func (h *history) noted(err error, then func()) error {
	if err != nil {
		return err
	}
	for i := range h.told {
		h.told[i].durable = len(h.told[i].entries)
	}
	then()
	return nil
}

func (h *history) answered(revision int64) { h.given = max(h.given, revision) }

// take makes a new session the owner of a shard.
func (h *history) take(ctx context.Context, shard int) error {
	m, err := h.store.ReadMembers(ctx)
	if err != nil {
		return err
	}
	reads := store.Reads{Kind: written.Kind, Entry: 1 << 30}
	session, err := h.store.Join(ctx, store.NodeInfo{Name: "node", Reads: reads}, 1000*time.Hour)
	if err != nil {
		return err
	}
	if session.Revision <= h.given {
		return fmt.Errorf("session %s has revision %d, and %d was given before", session.ID, session.Revision, h.given)
	}
	h.answered(session.Revision)
	own, err := h.store.Take(ctx, session, shard, m.Owners[shard])
	if err != nil {
		return err
	}
	h.own[shard] = &own
	h.answered(own.Revision)
	return nil
}

// entry makes the next entry of a shard.
func (h *history) entry(shard int) []byte {
	at := &h.told[shard]
	var b events.Builder
	b.Reset(events.Entry{
		Shard:  uint16(shard),
		Number: uint64(len(at.entries)) + 1,
		Epoch:  h.own[shard].Revision,
		Owner:  h.own[shard].Session.ID,
		Time:   at.last.Time,
		Prev:   at.last.Hash,
	})
	id := fmt.Sprint("task-", h.random.Uint64())
	created := &events.Created{Behavior: "noop", Params: make([]byte, h.random.IntN(700))}
	b.Add(events.Event{Task: events.TaskID(id), Seq: 1, Body: created})
	data, err := b.Seal()
	if err != nil {
		h.t.Fatal(err)
	}
	return data
}

// head returns the end of a shard.
func (at *told) head() store.Head {
	if len(at.entries) == 0 {
		return store.Head{}
	}
	return at.entries[len(at.entries)-1].Head
}

func (h *history) append(ctx context.Context, shard int) error {
	at := &h.told[shard]
	at.asked = h.entry(shard)
	revision, err := h.store.Append(ctx, *h.own[shard], at.head(), at.asked)
	if err != nil {
		return err
	}
	return h.appended(shard, revision)
}

func (h *history) appended(shard int, revision int64) (err error) {
	at := &h.told[shard]
	h.answered(revision)
	head := store.Head{Number: uint64(len(at.entries)) + 1, Revision: revision}
	at.entries = append(at.entries, store.Record{Head: head, Data: at.asked})
	at.last, err = events.Decode(at.asked)
	at.asked = nil
	return err
}

func (h *history) publish(ctx context.Context, shard int) error {
	at := &h.told[shard]
	end := uint64(len(at.entries))
	if end == 0 || len(at.pointer.Kept) > 0 && at.pointer.Kept[0].Entry >= end {
		return h.append(ctx, shard)
	}
	state := bytes.Repeat([]byte{byte(end)}, int(end*977+uint64(h.own[shard].Revision))%1500)
	s := store.SnapshotInfo{
		Entry: end,
		Epoch: h.own[shard].Revision,
		Parts: 2,
		Bytes: int64(len(state)),
	}
	h.parts[s] = state
	half := len(state) / 2
	for part, data := range [][]byte{state[:half], state[half:]} {
		if err := h.store.PutPart(ctx, *h.own[shard], end, part, data); err != nil {
			return err
		}
	}
	at.pointing = store.SnapshotPointer{Kept: append([]store.SnapshotInfo{s}, at.pointer.Kept[:min(1, len(at.pointer.Kept))]...)}
	p, err := h.store.Publish(ctx, *h.own[shard], at.pointer, s)
	return h.noted(err, func() {
		at.pointer = p
		h.answered(p.Revision)
	})
}

func (h *history) trim(ctx context.Context, shard int) error {
	at := &h.told[shard]
	if len(at.pointer.Kept) < 2 || at.pointer.Kept[1].Entry <= at.first {
		return h.append(ctx, shard)
	}
	at.trimming = at.pointer.Kept[1].Entry
	err := h.store.Trim(ctx, *h.own[shard], at.pointer, max(at.first, 1), at.trimming)
	return h.noted(err, func() { at.first = at.trimming })
}

// recover notes in an entry that a loss is recorded. Every second time it takes the snapshots away.
func (h *history) recover(ctx context.Context, shard int) error {
	at := &h.told[shard]
	if at.loss.Revision == 0 {
		return h.append(ctx, shard)
	}
	var left store.SnapshotPointer
	if h.random.IntN(2) == 0 && len(at.entries) > 0 {
		left.Revision = at.pointer.Revision
		at.pointing = store.SnapshotPointer{}
	}
	at.losing, at.asked = store.Loss{}, h.entry(shard)
	revision, err := h.store.Recover(ctx, *h.own[shard], at.head(), at.asked, at.loss, left)
	if err != nil {
		return err
	}
	err = h.appended(shard, revision)
	return h.noted(err, func() {
		at.loss = store.Loss{}
		if left.Revision != 0 {
			at.pointer = store.SnapshotPointer{}
		}
	})
}

func (h *history) lost(shard int) store.Loss {
	h.t.Helper()
	l, err := h.store.Loss(h.t.Context(), shard)
	if err != nil {
		h.t.Fatal(err)
	}
	h.answered(l.Revision)
	return l
}

// check compares what the store holds with what was answered. Where entries may be lost, those that were answered after
// the last sync may be missing at the end; then others without events have their numbers, and the loss is told.
func (h *history) check(mayLose bool) error {
	for shard := range h.told {
		if err := h.checkShard(shard, mayLose); err != nil {
			return fmt.Errorf("shard %d: %w", shard, err)
		}
	}
	m, err := h.store.ReadMembers(h.t.Context())
	if err != nil {
		return err
	}
	if is := m.Written.Entry; is != 100+h.raised && is != 100+h.raising && h.raised > 0 {
		return fmt.Errorf("raised is %d, and %d was answered", is, 100+h.raised)
	}
	return nil
}

func (h *history) checkShard(shard int, mayLose bool) error {
	at := &h.told[shard]
	first, err := h.store.First(h.t.Context(), shard)
	if err != nil {
		return err
	}
	if first != max(at.first, 1) && first != at.trimming && (first != 0 || len(at.entries) > 0) {
		return fmt.Errorf("the first entry is %d, and trimmed was up to %d", first, at.first)
	}
	last, lost, err := h.checkEntries(shard, first)
	if err != nil {
		return err
	}
	is := h.lost(shard)
	switch {
	case last < uint64(len(at.entries)):
		return fmt.Errorf("it ends with entry %d, and %d were answered", last, len(at.entries))
	case lost > 0 && (!mayLose || lost <= uint64(at.durable)):
		return fmt.Errorf("entry %d is lost, and %d were synced", lost, at.durable)
	case lost > 0 && (is.Entry != last || is.Reason == ""):
		return fmt.Errorf("entries from %d to %d are lost, and the loss says %+v", lost, last, is)
	case lost == 0 && is.Reason != at.loss.Reason && is.Reason != at.losing.Reason && is.Entry != last:
		return fmt.Errorf("the loss is %+v, and %+v was answered", is, at.loss)
	}
	return h.checkPointer(shard)
}

// checkEntries returns the last entry of a shard, and the first one that stands for one that was lost; 0 = none does.
func (h *history) checkEntries(shard int, first uint64) (last, lost uint64, err error) {
	at := &h.told[shard]
	for r, err := range h.store.Read(h.t.Context(), shard, max(first, 1)) {
		if err != nil {
			return last, lost, err
		}
		last = r.Number
		e, err := events.Decode(r.Data)
		if err != nil {
			return last, lost, err
		}
		was := at.asked
		if r.Number <= uint64(len(at.entries)) {
			was = at.entries[r.Number-1].Data
			if bytes.Equal(was, r.Data) && r.Head != at.entries[r.Number-1].Head {
				return last, lost, fmt.Errorf("entry %d has the revision %d", r.Number, r.Revision)
			}
		}
		same := was != nil && bytes.Equal(was, r.Data) && r.Number <= uint64(len(at.entries))+1
		switch {
		case lost == 0 && !same && len(e.Events) == 0:
			lost = r.Number
		case lost == 0 && !same, lost > 0 && len(e.Events) > 0:
			return last, lost, fmt.Errorf("entry %d is another one than was asked for", r.Number)
		}
	}
	return last, lost, nil
}

func (h *history) checkPointer(shard int) error {
	at := &h.told[shard]
	p, err := h.store.Pointer(h.t.Context(), shard)
	if err != nil {
		return err
	}
	same := p.Revision == at.pointer.Revision && slices.Equal(p.Kept, at.pointer.Kept)
	if !same && !slices.Equal(p.Kept, at.pointing.Kept) {
		return fmt.Errorf("the pointer is %+v, and %+v was answered", p, at.pointer)
	}
	for _, kept := range p.Kept {
		var state []byte
		for part, err := range h.store.Parts(h.t.Context(), shard, kept) {
			if err != nil {
				return err
			}
			state = append(state, part...)
		}
		if !bytes.Equal(state, h.parts[kept]) {
			return fmt.Errorf("snapshot %d has %d other bytes", kept.Entry, len(state))
		}
	}
	return nil
}

// adopt takes what is there for what was answered, after check.
func (h *history) adopt() error {
	m, err := h.store.ReadMembers(h.t.Context())
	if err != nil {
		return err
	}
	if m.Written.Entry > 100 {
		h.raised = m.Written.Entry - 100
	}
	h.raising = h.raised
	for shard := range h.told {
		at := &h.told[shard]
		first, err := h.store.First(h.t.Context(), shard)
		if err == nil {
			at.pointer, err = h.store.Pointer(h.t.Context(), shard)
		}
		if err != nil {
			return err
		}
		at.first, at.loss, at.asked = max(first, 1), h.lost(shard), nil
		at.trimming, at.pointing, at.losing = at.first, at.pointer, at.loss
		at.entries = at.entries[:min(at.first-1, uint64(len(at.entries)))]
		for r, err := range h.store.Read(h.t.Context(), shard, at.first) {
			if err != nil {
				return err
			}
			at.entries = append(at.entries, r)
		}
		at.last, at.durable = &events.Entry{Time: 1}, len(at.entries)
		if n := len(at.entries); n > 0 {
			if at.last, err = events.Decode(at.entries[n-1].Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// goOn opens the store of a disk, checks it, and makes some more steps, which must be there after a clean end.
func (h *history) goOn(d *faultdisk.Disk, o filejournal.Options, mayLose bool) error {
	if err := h.open(d, o); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	err := h.check(mayLose)
	if err == nil {
		err = h.adopt()
	}
	if err == nil {
		err = h.run(12)
	}
	if err := errors.Join(err, h.journal.Close()); err != nil {
		return err
	}
	if err := h.open(d, o); err != nil {
		return fmt.Errorf("open after a clean end: %w", err)
	}
	return errors.Join(h.check(false), h.journal.Close())
}
