package local_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine/local"
	"taskledger/filestore/journal"
	"taskledger/filestore/memjournal"
	"taskledger/item"
	port "taskledger/store"
	"taskledger/task"
)

// flaky is a journal of which one write has an outcome that nobody knows.
type flaky struct {
	memjournal.Journal
	fails atomic.Bool
}

var errReset = errors.New("connection reset")

// Append implements journal.Journaler.
func (f *flaky) Append(e journal.Entry) error {
	if f.fails.CompareAndSwap(true, false) {
		return errReset
	}
	return f.Journal.Append(e)
}

// Without an end of the node its calls would wait for ever, and nobody would learn why.
func TestNode_EndsWhenItsStoreWritesNothingAnyMoreAndCallsSayWhy(t *testing.T) {
	j := new(flaky)
	n, err := local.StartWith(t.Context(), local.Config{Journal: j, Node: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	s := store(t, n)
	add(t, s, 1)
	if err := n.Err(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	select {
	case <-n.Done():
		t.Fatal("it is done while it runs")
	default:
	}
	waits := make(chan error, 1)
	go func() {
		run := n.Attach("nobody-makes-it")
		defer run.Close()
		_, err := run.Wait(t.Context())
		waits <- err
	}()
	told := func(of string, err error) {
		t.Helper()
		if !errors.Is(err, port.ErrBroken) || !errors.Is(err, errReset) {
			t.Errorf("%s: %v", of, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	update := func() error {
		_, err := s.Update(ctx, item.Update{Adds: []item.Add{{Group: "group"}}})
		return err
	}
	j.fails.Store(true)
	err = update()
	told("the call whose write failed", err)
	if !errors.Is(err, task.ErrUnknown) {
		t.Errorf("nobody knows whether it was written: %v", err)
	}
	<-n.Done()
	told("Err", n.Err())
	err = update()
	told("a call afterwards", err)
	if !errors.Is(err, task.ErrClosed) {
		t.Errorf("it was not accepted: %v", err)
	}
	_, err = n.Get(ctx, "task")
	told("a question afterwards", err)
	if err := <-waits; !errors.Is(err, task.ErrNotFound) { // it ended before, or does now
		told("a wait", err)
	}
	told("Close", n.Close())
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestNode_IsDoneWithoutAnErrorAfterClose(t *testing.T) {
	n, err := local.StartWith(t.Context(), local.Config{Node: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, n)
	<-n.Done()
	if err := n.Err(); err != nil {
		t.Error(err)
	}
}
