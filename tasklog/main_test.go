package tasklog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/events"
	"taskledger/store"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// of is the log of most tests.
var of = tasklog.Attempt{Shard: 3, Life: events.RefOf(7, 1), Number: 1}

// fate says what becomes of a batch.
type fate int

const (
	fine     fate = iota
	away          // it is not stored
	unheard       // it is stored, and nobody hears of it
	hanging       // it is not stored, and nobody answers
	refusing      // it is refused
)

// unsteady is a store in memory whose answers take a while, and that has faults.
type unsteady struct {
	*memlog.Store
	mu    sync.Mutex
	delay time.Duration
	fate  fate
	sent  []tasklog.Batch // all calls of Append
	trims []tasklog.Attempt

	forgets int
}

func newUnsteady(delay time.Duration) *unsteady {
	return &unsteady{Store: memlog.New(), delay: delay}
}

func (u *unsteady) become(f fate) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fate = f
}

// calls returns the batches that were sent.
func (u *unsteady) calls() []tasklog.Batch {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sent
}

// Append implements tasklog.Store.
func (u *unsteady) Append(
	ctx context.Context, of tasklog.Attempt, after tasklog.End, b tasklog.Batch,
) (tasklog.End, error) {
	u.mu.Lock()
	u.sent = append(u.sent, b)
	now, delay := u.fate, u.delay
	u.mu.Unlock()
	answer := time.After(delay)
	if now == hanging {
		answer = nil
	}
	select {
	case <-answer:
	case <-ctx.Done():
		return tasklog.End{}, ctx.Err()
	}
	switch now {
	case away:
		return tasklog.End{}, store.ErrUnavailable
	case refusing:
		return tasklog.End{}, store.ErrRefused
	}
	end, err := u.Store.Append(ctx, of, after, b)
	if now == unheard {
		return tasklog.End{}, store.ErrUnavailable
	}
	return end, err
}

// Trim implements tasklog.Store.
func (u *unsteady) Trim(ctx context.Context, of tasklog.Attempt, upTo tasklog.End) error {
	u.mu.Lock()
	u.trims = append(u.trims, of)
	u.mu.Unlock()
	return u.Store.Trim(ctx, of, upTo)
}

// Forget implements tasklog.Store.
func (u *unsteady) Forget(ctx context.Context, shard uint16, life events.Ref, before uint32) error {
	u.mu.Lock()
	u.forgets++
	u.mu.Unlock()
	return u.Store.Forget(ctx, shard, life, before)
}

// writing is a writer that runs.
type writing struct {
	*tasklog.Writer
	ended chan error
}

func startWriter(t testing.TB, to tasklog.Store, of tasklog.Attempt) *writing {
	t.Helper()
	w, err := tasklog.NewWriter(to, of)
	if err != nil {
		t.Fatal(err)
	}
	running := &writing{w, make(chan error, 1)}
	go func() { running.ended <- w.Run(context.Background()) }()
	return running
}

// close closes the writer and returns what Run does, and the time that this took.
func (w *writing) close() (time.Duration, error) {
	began := time.Now()
	w.Close()
	err := <-w.ended
	return time.Since(began), err
}

// readAll returns all lines of a task with one attempt, page by page.
func readAll(from tasklog.Reader, q tasklog.Query) (all []tasklog.TaskLine, err error) {
	q.Shard, q.Life = of.Shard, of.Life
	if q.Attempts == nil {
		q.Attempts = []tasklog.Begun{{Number: of.Number}}
	}
	for {
		p, err := tasklog.ReadTask(context.Background(), from, q)
		if err != nil {
			return all, err
		}
		all = append(all, p.Lines...)
		if !p.More {
			return all, nil
		}
		q.After = p.Next
	}
}

// texts returns the lines of a log as one writes them down, of a gap its size.
func texts(t testing.TB, from tasklog.Reader) (all []string) {
	t.Helper()
	lines, err := readAll(from, tasklog.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if l.Missing > 0 {
			all = append(all, fmt.Sprintf("gap of %d", l.Missing))
		} else {
			all = append(all, l.Text)
		}
	}
	return all
}
