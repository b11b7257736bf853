package guides_test

import (
	"context"
	"iter"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine/local"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/feed"
	"taskledger/work/feed/memfeed"
)

// Directory is the parameter of the stream.
type Directory struct{ Name string }

// Account holds what a change has brought.
type Account struct{ Name string }

// changed yields what has changed behind a token. A database selects it by a sequence that grows with each change.
func changed(_ context.Context, _ Directory, token string) iter.Seq2[work.Change[Account], error] {
	return func(yield func(work.Change[Account], error) bool) {
		seen, _ := strconv.Atoi(token) // "" at first
		for n := seen + 1; n <= 10; n++ {
			name := "account-" + strconv.Itoa(n%3)
			if !yield(work.Change[Account]{Key: name, Token: strconv.Itoa(n), Value: Account{name}}, nil) {
				return
			}
		}
	}
}

// directory applies changes to a target, which may have each of them already.
type directory struct{ applied atomic.Int64 }

func (d *directory) apply(_ context.Context, _ work.Change[Account]) error {
	d.applied.Add(1)
	return nil
}

func (d *directory) accounts() *work.Work[Directory, work.Change[Account]] {
	return work.DefineStream("accounts", nil, work.Stream[Directory, Account]{
		Changes: changed,
		Process: d.apply,
		Threads: 8,
		Rules:   []work.Rule{{Code: "locked", React: work.RetryLater}},
	})
}

func TestStreams_TheGuideAppliesEveryChange(t *testing.T) {
	d := &directory{}
	accounts := d.accounts()
	node, err := local.Memory(t.Context(), accounts)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	run, err := accounts.Submit(t.Context(), node, Directory{"people"}, task.SubmitOptions{ID: "accounts"})
	if err == nil {
		_, err = run.Wait(t.Context())
	}
	if err != nil || d.applied.Load() != 10 {
		t.Errorf("%v, %d changes", err, d.applied.Load())
	}
}

func TestStreams_TheGuideAppliesEveryMessage(t *testing.T) {
	var applied atomic.Int64
	queue := memfeed.New(memfeed.Config{})
	queue.Publish("accounts", []byte("anna"))
	queue.Publish("accounts", []byte("otto"))
	open := func(context.Context, Directory) (feed.Source, error) { return queue.Open(), nil }
	convert := func(_ context.Context, _ Directory, m feed.Message) ([]work.Change[Account], error) {
		return []work.Change[Account]{{Key: string(m.Data), Value: Account{string(m.Data)}}}, nil
	}
	apply := func(context.Context, work.Change[Account]) error {
		applied.Add(1)
		return nil
	}
	events := work.DefineStream("events", nil, work.Stream[Directory, Account]{
		Source:  open,    // func(context.Context, Directory) (feed.Source, error)
		Convert: convert, // func(context.Context, Directory, feed.Message) ([]work.Change[Account], error)
		Process: apply,
		Threads: 8,
		Idle:    2 * time.Second, // it ends when nothing comes; without it, never
	})
	node, err := local.Memory(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	run, err := events.Submit(t.Context(), node, Directory{}, task.SubmitOptions{})
	if err == nil {
		_, err = run.Wait(t.Context())
	}
	if err != nil || applied.Load() != 2 {
		t.Errorf("%v, %d changes", err, applied.Load())
	}
}
