package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// echo is a behavior that returns its parameters; the task "held" waits until it is let go.
type echo struct {
	policy task.Policy
	held   chan []byte // parameters of attempts of the task "held"
	let    chan struct{}
}

func newEcho(p task.Policy) *echo {
	return &echo{policy: p, held: make(chan []byte, 10), let: make(chan struct{}, 10)}
}

func (e *echo) ID() string { return "echo" }

func (e *echo) Types() string { return "" }

func (e *echo) Policy() task.Policy { return e.policy }

func (e *echo) Plan([]byte, time.Time) (task.Plan, error) { return task.Plan{}, nil }

func (e *echo) Run(ctx context.Context, a task.Attempt) task.Outcome {
	if a.Task == "held" {
		e.held <- a.Params
		select {
		case <-e.let:
		case <-ctx.Done():
			return task.Outcome{Err: &events.Error{Code: events.CodeFailed, Message: "ended"}}
		}
	}
	if a.Task == "fails" {
		return task.Outcome{Err: &events.Error{Code: "broken", Message: longText, Properties: map[string]string{"stderr": "no"}}}
	}
	return task.Outcome{Result: a.Params}
}

// longText is longer than what memory keeps of an error.
var longText = strings.Repeat("x", projection.MaxKeptError) + "end"

// aged is a cluster of one shard whose journal is trimmed past what happened first, unless it is kept.
type aged struct {
	*testcluster.Cluster
	t       *testing.T
	mode    string
	archive *shelf
	store   store.Store
	node    *testcluster.Node
	client  *testcluster.Client
	echo    *echo
	filled  int
}

func newAged(t *testing.T, mode string, policy task.Policy) *aged {
	t.Helper()
	p := &aged{Cluster: testcluster.New(t, testcluster.Options{Shards: 1}), t: t, mode: mode, archive: newShelf(), echo: newEcho(policy)}
	p.start("a")
	p.client = p.StartClient("caller", nil)
	return p
}

func (p *aged) start(name string) {
	p.t.Helper()
	p.node = p.StartNode(name, func(c *cfg) {
		p.store = c.Store
		c.Store = small{c.Store}
		c.Grace = -1
		switch p.mode {
		case "drop":
			c.Trimming = engine.TrimAll
		case "archive":
			c.Archive = p.archive
		case "kept":
			c.Archive, c.Trimming = p.archive, engine.TrimNothing
		}
	}, p.echo)
}

func (p *aged) submit(id events.TaskID, params []byte) *engine.Future {
	p.t.Helper()
	f, err := p.client.Submit(within(p.t), p.echo, params, task.SubmitOptions{ID: id})
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

// awaitHeld returns the parameters of the next attempt of the task "held".
func (p *aged) awaitHeld() []byte {
	p.t.Helper()
	select {
	case params := <-p.echo.held:
		return params
	case <-p.client.Attach("held").Done():
		p.t.Fatal("the task has ended before its attempt has started")
	case <-time.After(soon):
		p.t.Fatalf("no attempt has started within %s", soon)
	}
	return nil
}

// pass lets so much happen that what has happened until now is trimmed.
func (p *aged) pass() {
	p.t.Helper()
	infos, err := p.client.Operations().Shards(within(p.t))
	if err != nil {
		p.t.Fatal(err)
	}
	for range 10 {
		p.filled++
		fill(p.t, p.client.Client, p.echo, fmt.Sprint("filled", p.filled, "/"), 300)
		first, err := p.store.First(within(p.t), 0)
		if err != nil {
			p.t.Fatal(err)
		}
		if p.mode == "keep" || first > infos[0].Entries {
			return
		}
	}
	p.t.Fatal("the journal is not trimmed")
}

var modes = []string{"keep", "archive", "drop"}

// A future that is first watched after its task was forgotten, and the entries trimmed.
func TestFuture_OfAForgottenTaskResolvesFromWhatIsKept(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newAged(t, mode, task.Policy{RetainCount: 1})
			f := p.submit("early", bulk)
			want(t, p.client.Attach("early"), string(bulk))
			p.pass()
			if _, err := p.client.GetLinear(within(t), "early"); !errors.Is(err, task.ErrNotFound) {
				t.Fatalf("got %v, want it forgotten", err)
			}
			last, err := p.node.GetForgotten(within(t), "early")
			if mode == "drop" {
				if !errors.Is(err, store.ErrTrimmed) {
					t.Errorf("get of what is not kept: %+v, %v; want ErrTrimmed", last, err)
				}
			} else if err != nil || !last.Forgotten || !bytes.Equal(last.Params, bulk) || !bytes.Equal(last.Result, bulk) {
				t.Errorf("get: %.20s, %.20s, forgotten %t, %v; want its last state", last.Params, last.Result, last.Forgotten, err)
			}
			if mode != "drop" {
				wantHistory(t, p.node.Client, "early", "Created Started Succeeded")
				if then, err := p.node.Ledger().StateAfter(within(t), "early", 2); err != nil || then.Status != task.Running || !bytes.Equal(then.Params, bulk) {
					t.Errorf("after its second event: %s of %.20s, %v", then.Status, then.Params, err)
				}
				if then, err := p.node.Ledger().StateAt(within(t), "early", last.EndedAt.Time()); err != nil || then.Status != task.Success {
					t.Errorf("at its end: %s, %v", then.Status, err)
				}
			}
			for name, c := range map[string]*engine.Client{"node": p.node.Client, "client": p.client.Client} {
				wantAttachAsGet(t, name, c, "early")
			}
			got, err := f.Wait(within(t))
			if mode == "drop" {
				if !errors.Is(err, task.ErrNotKept) {
					t.Errorf("got %.20s, %v; want ErrNotKept", got, err)
				}
			} else if err != nil || string(got) != string(bulk) {
				t.Errorf("got %.20s, %v; want its result", got, err)
			}
		})
	}
}

// wantAttachAsGet checks that a future of whoever comes late has what GetForgotten has of a task that has ended.
func wantAttachAsGet(t *testing.T, who string, c *engine.Client, id events.TaskID) {
	t.Helper()
	then, unread := c.GetForgotten(within(t), id)
	got, err := c.Attach(id).Wait(within(t))
	var failure *task.Error
	switch {
	case unread != nil:
		never := errors.Is(unread, task.ErrNotFound) && errors.Is(err, task.ErrNotFound)
		if gone := errors.Is(unread, store.ErrTrimmed) && errors.Is(err, task.ErrNotKept); !never && !gone {
			t.Errorf("%s: attached to %s: %.20s, %v; get: %v", who, id, got, err, unread)
		}
	case then.Status == task.Failure:
		if !errors.As(err, &failure) || failure.Code != then.Error.Code || failure.Attempt != int(then.Attempt) {
			t.Errorf("%s: attached to %s: %.20s, %v; get: %+v", who, id, got, err, then.Error)
		}
	case err != nil || !bytes.Equal(got, then.Result):
		t.Errorf("%s: attached to %s: %.20s, %v; get: %.20s", who, id, got, err, then.Result)
	}
}

func TestAttach_FindsHowAForgottenTaskHasEnded(t *testing.T) {
	t.Parallel()
	p := newAged(t, "keep", task.Policy{RetainCount: 1, Existing: events.RunAgain})
	want(t, p.submit("again", []byte("1")), "1")
	want(t, p.submit("again", []byte("2")), "1")
	p.submit("held", nil)
	p.awaitHeld()
	if err := p.client.Operations().Cancel(within(t), "held", "enough"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Attach("held").Wait(within(t)); !errors.Is(err, task.ErrCancelled) {
		t.Fatalf("the cancelled task ended with %v", err)
	}
	want(t, p.submit("deleted", []byte("3")), "3")
	if err := p.client.Operations().Delete(within(t), "deleted"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		want(t, p.submit(events.TaskID(fmt.Sprint("other", i)), nil), "")
	}
	if task, err := p.client.GetForgotten(within(t), "again"); err != nil || !task.Forgotten {
		t.Fatalf("%+v, %v; want it forgotten", task, err)
	}
	for _, id := range []events.TaskID{"again", "held", "deleted", "never"} {
		wantAttachAsGet(t, "client", p.client.Client, id)
	}
}

// What a finished task has left to the journal is served, and runs again, from where it is kept; where it is not,
// that is said.
func TestTask_FinishedBeforeATrimIsServedAndRunsAgain(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newAged(t, mode, task.Policy{})
			want(t, p.submit("early", bulk), string(bulk))
			p.pass()
			early, err := p.client.Get(within(t), "early")
			if err != nil {
				t.Fatal(err)
			}
			params, result := early.Params, early.Result
			_, err = p.client.Operations().Retry(within(t), "early")
			if mode == "drop" {
				if params != nil || result != nil || !early.Details.ParamsElided || !early.Details.ResultElided {
					t.Errorf("got %.20s and %.20s, want none, and both elided", params, result)
				}
				var state *task.StateError
				if !errors.As(err, &state) {
					t.Errorf("retry: got %v, want a *StateError", err)
				}
				return
			}
			if string(params) != string(bulk) || string(result) != string(bulk) || err != nil {
				t.Errorf("got %.20s and %.20s, retry %v; want both, and a retry", params, result, err)
			}
			want(t, p.client.Attach("early"), string(bulk))
			wantHistory(t, p.node.Client, "early", "Created Started Succeeded Rescheduled Started Succeeded")
		})
	}
}

// Memory keeps the beginning of a long error: who asks for the task, or comes late, gets the whole as long as it is
// kept anywhere.
func TestFailure_WithALongErrorIsToldWholeAsLongAsItIsKept(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newAged(t, mode, task.Policy{RetainCount: 1})
			if f := wantTaskError(t, p.submit("fails", nil)); f.Message != longText || f.Properties["stderr"] != "no" {
				t.Errorf("%d bytes and %v are told at once", len(f.Message), f.Properties)
			}
			p.pass()
			var listed []task.Task
			testcluster.Await(t, "a list", func() bool {
				listed = nil
				for task, err := range p.client.List(within(t), task.Filter{Status: task.Failure}) {
					if errors.Is(err, store.ErrUnavailable) { // the owner of so many tasks may not answer in time
						return false
					}
					if err != nil {
						t.Fatal(err)
					}
					listed = append(listed, task)
				}
				return true
			})
			if len(listed) != 1 || listed[0].Error.Message != longText[:projection.MaxKeptError] || !listed[0].ErrorCut {
				t.Errorf("%+v are listed; want the failure, with the beginning of its error", listed)
			}
			message, properties := longText, "no"
			if mode == "drop" {
				message, properties = longText[:projection.MaxKeptError], ""
			}
			if task, err := p.client.Get(within(t), "fails"); err != nil || task.Error.Message != message || task.Error.Properties["stderr"] != properties {
				t.Errorf("get: %v, %+v", err, task.Error)
			}
			if f := wantTaskError(t, p.client.Attach("fails")); f.Message != message || f.Properties["stderr"] != properties {
				t.Errorf("late: %d bytes of %q and %v", len(f.Message), f.Code, f.Properties)
			}
		})
	}
}

func wantTaskError(t *testing.T, f *engine.Future) task.Error {
	t.Helper()
	var failure *task.Error
	if _, err := f.Wait(within(t)); !errors.As(err, &failure) {
		t.Fatalf("got %v, want the failure of the task", err)
	}
	return *failure
}

func TestRetry_OfAForgottenTaskBeginsANewLifeWithWhatIsRecordedOfIt(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newAged(t, mode, task.Policy{RetainCount: 1, MaxAttempts: 7})
			want(t, p.submit("early", bulk), string(bulk))
			before, err := p.client.Get(within(t), "early")
			if err != nil {
				t.Fatal(err)
			}
			p.pass()
			if stale := before; mode != "drop" {
				stale.Version.Ref--
				_, err := p.node.Operations().RetrySeen(within(t), &stale)
				if state, refused := errors.AsType[*task.StateError](err); !refused || !state.Changed {
					t.Errorf("got %v of the task as it was never seen, want that it has changed", err)
				}
			}
			anew, err := p.node.Operations().RetrySeen(within(t), &before)
			if mode == "drop" {
				if _, says := errors.AsType[*task.StateError](err); !says || !strings.Contains(err.Error(), "no longer kept") {
					t.Errorf("got %v, want a StateError that says why", err)
				}
				return
			}
			if err != nil || !anew {
				t.Fatalf("a new life %t, %v; want one", anew, err)
			}
			want(t, p.node.Attach("early"), string(bulk))
			wantHistory(t, p.node.Client, "early", "Created Started Succeeded")
			after, err := p.node.Get(within(t), "early")
			if err != nil || after.Details.Life == before.Details.Life || after.Details.Policy != before.Details.Policy || after.Behavior != before.Behavior {
				t.Errorf("got %+v, %v; want another life of %+v", after, err, before)
			}
			if _, err := p.node.Operations().Retry(within(t), "never"); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("retry of no task: %v, want ErrNotFound", err)
			}
		})
	}
}

// Where journals are trimmed without an archive a task that is retried takes its parameters along: no trim takes
// them from it, however long it waits, and whoever runs it then.
func TestRetry_TakesTheParametersAlongWhereJournalsAreDropped(t *testing.T) {
	t.Parallel()
	p := newAged(t, "drop", task.Policy{})
	f := p.submit("held", bulk)
	p.awaitHeld()
	p.echo.let <- struct{}{}
	want(t, f, string(bulk))
	if _, err := p.client.Operations().Retry(within(t), "held"); err != nil {
		t.Fatal(err)
	}
	p.awaitHeld()
	p.pass()
	p.node.Stop()
	p.start("b")
	if params := p.awaitHeld(); string(params) != string(bulk) {
		t.Errorf("the attempt has %.20s", params)
	}
	p.echo.let <- struct{}{}
	want(t, p.client.Attach("held"), string(bulk))
}

// Where journals are trimmed without an archive a submit that runs a finished task again brings its own parameters.
func TestSubmit_OfAFinishedTaskBringsItsParametersWhereJournalsAreDropped(t *testing.T) {
	t.Parallel()
	p := newAged(t, "drop", task.Policy{Existing: events.RunAgain})
	want(t, p.submit("early", bulk), string(bulk))
	p.pass()
	want(t, p.submit("early", []byte(`"other"`)), `"other"`)
}

// A node that is told to keep the journals still knows what was archived before, and archives no more.
func TestKeep_ServesWhatWasArchivedBefore(t *testing.T) {
	t.Parallel()
	p := newAged(t, "archive", task.Policy{})
	want(t, p.submit("early", bulk), string(bulk))
	p.pass()
	p.node.Stop()
	p.mode = "kept"
	p.start("b")
	first, err := p.store.First(within(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	archived := len(p.archive.held.Records(0))
	if _, err := p.client.Operations().Retry(within(t), "early"); err != nil {
		t.Fatal(err)
	}
	want(t, p.client.Attach("early"), string(bulk))
	wantHistory(t, p.node.Client, "early", "Created Started Succeeded Rescheduled Started Succeeded")
	before, err := p.store.Pointer(within(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	testcluster.Await(t, "two further snapshots", func() bool {
		p.filled++
		fill(t, p.client.Client, p.echo, fmt.Sprint("filled", p.filled, "/"), 300)
		now, err := p.store.Pointer(within(t), 0)
		return err == nil && now.Kept[1].Entry > before.Kept[0].Entry
	})
	if now, err := p.store.First(within(t), 0); err != nil || now != first || len(p.archive.held.Records(0)) != archived {
		t.Errorf("the journal begins with entry %d, %v, and %d are archived; before, %d and %d", now, err, len(p.archive.held.Records(0)), first, archived)
	}
}

// While the archive is away, what only it holds is waited for: no question fails, and no task for want of its
// parameters. A journal that was trimmed tells that there was an archive, where none is to be seen.
func TestTask_WaitsForAnArchiveThatIsAway(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]error{"no answer": errAway, "none to be seen": fmt.Errorf("no JetStream: %w", store.ErrNoArchive)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waitsForTheArchive(t, why)
		})
	}
}

func waitsForTheArchive(t *testing.T, why error) {
	p := newAged(t, "archive", task.Policy{RetainCount: 1000})
	p.archive.why = why
	f := p.submit("early", bulk)
	want(t, p.client.Attach("early"), string(bulk))
	p.pass()
	p.archive.away.Store(true)
	t.Cleanup(func() { p.archive.away.Store(false) }) // before the cluster is verified
	if _, err := p.client.Operations().Retry(within(t), "early"); err != nil {
		t.Fatal(err)
	}
	testcluster.Await(t, "the attempt given back", func() bool {
		for found, err := range p.client.List(within(t), task.Filter{Affinity: events.TaskID("early").Affinity()}) {
			switch {
			case err != nil || found.ID != "early":
			case found.Status == task.Failure:
				t.Fatalf("the task has failed: %+v", found.Error)
			case found.Status == task.Running && !found.OnNode():
				return true
			}
		}
		return false
	})
	for _, err := range p.node.Ledger().History(within(t), "forgotten") {
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, errAway) {
			t.Errorf("history of a task that only the archive may know: %v", err)
		}
	}
	if all, err := p.node.Ledger().Verify(within(t), ledger.VerifyOptions{}); err == nil {
		t.Errorf("verified without the archive: %+v", all)
	}
	asked := f.Done()
	select {
	case <-asked:
		t.Error("resolved without the archive")
	case <-time.After(quiet):
	}
	p.archive.away.Store(false)
	want(t, f, string(bulk))
	want(t, p.client.Attach("early"), string(bulk))
	again := "Started Snoozed " // once at least, and more often where this goroutine was slow
	got := history(t, p.node.Client, "early")
	before, after, _ := strings.Cut(got, again)
	for strings.HasPrefix(after, again) {
		after = after[len(again):]
	}
	if before != "Created Started Succeeded Rescheduled " || after != "Started Succeeded" {
		t.Errorf("history is %s", got)
	}
}

// The task is forgotten before anybody waits for it: the journal still knows its end.
func TestFuture_OfAForgottenTaskIsAnsweredFromTheJournal(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	j := newJob(task.Policy{Retain: 1})
	c.StartNode("a", nil, j)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	j.next(t).succeed("1")
	others := 0
	testcluster.Await(t, "the task is forgotten", func() bool {
		others++
		other := j.submit(t, client, events.TaskID(fmt.Sprint("y", others))) // an entry of a later time
		j.next(t).succeed("2")
		want(t, other, "2")
		_, err := client.GetLinear(within(t), "x")
		return err != nil
	})
	want(t, f, "1")
}
