package work_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"taskledger/store"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/workledger"
)

// streamRecord is the record of a stream in memory, beside that of its work. Tokens are numbers, and it complains of
// one that goes back and of what no engine would take.
type streamRecord struct {
	*record
	token     string
	simulated string        // the end of the simulation of the run
	counted   map[int]int64 // changes of the run, by partition
	moves     []workledger.Move
	movedAt   []time.Time
	holds     []*hold

	slow     time.Duration // of each Move
	failMove error         // of each Move
	full     bool          // there is no room for holds
	ended    bool          // for want of that
	endFirst *hold         // ends before the next Move, as if its task had processed it
	fence    uint64        // of the last attempt of a hold, which ends a hold
	asked    int           // how often the position was
}

// hold is a hold of the record.
type hold struct {
	key     string
	parked  bool
	passed  bool
	changes []workledger.HeldChange
	ended   bool
	of      string // id of the partition; "" = the full one
}

func newStreamRecord() *streamRecord {
	return &streamRecord{
		record:  newRecord(),
		counted: map[int]int64{},
	}
}

// streamAttempt is the record for an attempt of the work, or of a hold.
type streamAttempt struct {
	*attempt
	all  *streamRecord
	hold *hold
	told bool // a move of it is recorded
}

func (r *streamRecord) attempt() *streamAttempt {
	return &streamAttempt{
		attempt: r.record.attempt(),
		all:     r,
	}
}

// again ends the run, so that the next attempt begins another one.
func (r *streamRecord) again() {
	r.partition, r.begun, r.plan, r.simulated = 0, false, nil, ""
	clear(r.done)
	clear(r.permits)
	clear(r.counts)
	clear(r.counted)
}

func keyHash(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])
}

// simulates reports whether the partition under way leaves the token as it is.
func (a *streamAttempt) simulates() bool {
	p := a.plan.Partitions[a.partition]
	return p.Mode != work.Full && !p.MovesToken
}

func (a *streamAttempt) Position(context.Context) (p workledger.Position, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bucket != 1 {
		a.complain("an attempt with bucket %d asks for the position", a.bucket)
	}
	p.Token, p.Fence = a.all.token, a.all.fence
	p.Open, p.Counted = a.all.lastOpen(), a.all.counted[a.partition]
	a.all.asked++
	if a.simulates() && a.all.simulated != "" {
		p.Token = a.all.simulated
	}
	if !a.simulates() {
		p.Until = a.all.simulated
	}
	for _, h := range a.all.holds {
		if !h.ended && !h.passed {
			p.Held = append(p.Held, keyHash(h.key))
		}
	}
	return p, nil
}

func number(token string) int {
	n, _ := strconv.Atoi(token)
	return n
}

func (a *streamAttempt) Move(ctx context.Context, m workledger.Move) (to workledger.Moved, err error) {
	time.Sleep(a.all.slow)
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.all
	if r.failMove != nil {
		return to, r.failMove
	}
	if h := r.endFirst; h != nil {
		h.ended, h.changes, r.endFirst = true, nil, nil
		r.fence += 10
	}
	a.check(ctx, &m)
	switch full := r.full && len(m.Holds) > 0; {
	case full && (m.Token != "" || m.Items != work.Counts{}):
		return to, &store.InvalidError{Field: workledger.FieldHolds, Problem: "there is no room"}
	case full:
		r.ended = true
		return to, workledger.ErrOver
	}
	bytes := 0
	for _, h := range m.Holds {
		bytes += len(h.Change.Data)
		if is := r.open(h.Key); h.Append && (is == nil || is.passed) {
			to.Freed, to.Fence = append(to.Freed, h.Key), r.fence
		}
	}
	if bytes > work.MaxHeldBytes {
		a.complain("%d bytes to be held", bytes)
	}
	if len(to.Freed) > 0 {
		return to, nil
	}
	for _, h := range m.Holds {
		r.append(h)
	}
	r.moves, r.movedAt, a.told = append(r.moves, m), append(r.movedAt, time.Now()), true
	r.counted[a.partition] += m.Items.Done + m.Items.Failed + m.Items.Skipped
	if m.Token != "" && a.simulates() {
		r.simulated = m.Token
	} else if m.Token != "" {
		r.token = m.Token
	}
	return to, nil
}

func (a *streamAttempt) check(ctx context.Context, m *workledger.Move) {
	before := a.all.token
	if a.simulates() && a.all.simulated != "" {
		before = a.all.simulated
	}
	switch {
	case a.bucket != 1:
		a.complain("an attempt with bucket %d moves", a.bucket)
	case ctx.Err() != nil:
		a.complain("a move by a context that has ended")
	case m.Token != "" && number(m.Token) < number(before):
		a.complain("the token goes back from %s to %s", before, m.Token)
	case len(m.Errors) > work.MaxErrors || int64(len(m.Errors)) > m.Items.Failed:
		a.complain("%d errors of %d", len(m.Errors), m.Items.Failed)
	case m.Open > 0 && m.Oldest.IsZero() || m.Open < 0:
		a.complain("%d changes are open since %s", m.Open, m.Oldest)
	case m.Token == "" && m.Items == work.Counts{} && len(m.Holds) == 0 && !a.tells(m):
		a.complain("a move tells nothing")
	}
	for _, h := range m.Holds {
		c := &h.Change
		if h.Key == "" || !h.Append == (c.Code == "") || h.Append && (h.Parked || h.Passed || c.Message != "") {
			a.complain("a hold %+v", h)
		}
	}
}

// tells reports whether it is new that changes are open, as far as the attempt has told, or how many are that were told
// ten seconds ago.
func (a *streamAttempt) tells(m *workledger.Move) bool {
	n := len(a.all.moves)
	switch {
	case !a.told && m.Open > 0:
		return true
	case n == 0:
		return false
	}
	last := &a.all.moves[n-1]
	if (last.Open > 0) != (m.Open > 0) {
		return true
	}
	again := last.Open != m.Open || !last.Oldest.Equal(m.Oldest)
	return again && time.Since(a.all.movedAt[n-1]) >= 10*time.Second
}

// open returns the hold of a key that has not ended.
func (r *streamRecord) open(key string) *hold {
	for _, h := range r.holds {
		if h.key == key && !h.ended {
			return h
		}
	}
	return nil
}

func (r *streamRecord) append(w workledger.Hold) {
	h := r.open(w.Key)
	if w.Passed && slices.ContainsFunc(r.holds, func(h *hold) bool { return h.passed && h.key == w.Key && h.changes[0].At == w.Change.At }) {
		return
	}
	if h == nil || h.passed {
		h = &hold{
			key:    w.Key,
			parked: w.Parked,
			passed: w.Passed,
		}
		r.holds = append(r.holds, h)
	}
	if at := w.Change.At; at != "" && slices.ContainsFunc(h.changes, func(c workledger.HeldChange) bool { return c.At == at }) {
		return
	}
	h.changes = append(h.changes, w.Change)
}

func (a *streamAttempt) Held(_ context.Context, processed int) ([]workledger.HeldChange, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.hold
	if h == nil || processed > len(h.changes) {
		a.complain("%d changes of hold %+v are processed", processed, h)
		return nil, nil
	}
	h.changes = h.changes[processed:]
	h.ended = len(h.changes) == 0
	bytes := 0
	for i, c := range h.changes {
		if bytes += len(c.Data); bytes > work.MaxHeldBytes {
			return h.changes[:i], nil
		}
	}
	return h.changes, nil
}

// items sums up what moves told.
func (r *streamRecord) items() (c work.Counts) {
	for _, m := range r.moves {
		c.Done += m.Items.Done
		c.Failed += m.Items.Failed
		c.Skipped += m.Items.Skipped
	}
	return c
}

// access returns the context of an attempt of the work, or of a hold.
func (a *streamAttempt) access(ctx context.Context) context.Context {
	open := func(_ context.Context, of task.Attempt) (workledger.Access, error) {
		is := workledger.Access{Ledger: a, Stream: a, Params: of.Params}
		if a.hold != nil {
			is.Hold, is.Partition = true, a.hold.of
		}
		return is, nil
	}
	return context.WithValue(ctx, workledger.Key{}, workledger.Opener(open))
}

// retry makes an attempt of the task of a hold, and returns what comes after it.
func (r *streamRecord) retry(ctx context.Context, of task.Behavior, h *hold) string {
	a := r.attempt()
	a.hold = h
	policy, _ := task.Policy{}.Complete()
	out := of.Run(a.access(ctx), task.Attempt{
		Task:   "a/p.h1",
		Number: 1,
		Policy: policy,
		Params: []byte("0"),
	})
	return said(&out)
}

// held tells what a hold has, as "at:code" of each change, without the time of a message.
func (h *hold) String() string {
	var b bytes.Buffer
	for _, c := range h.changes {
		at, _, _ := strings.Cut(c.At, "@")
		fmt.Fprintf(&b, "%s:%s ", at, c.Code)
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
