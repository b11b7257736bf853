package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
	"taskledger/tasklog/tasklogtest"
)

// logged is a cluster whose client reads logs that the test writes.
type logged struct {
	t       *testing.T
	store   *memlog.Store
	cluster *testcluster.Cluster
	node    *testcluster.Node
	client  *testcluster.Client
	job     *job
}

func newLogged(t *testing.T, p task.Policy) *logged {
	t.Helper()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	l := &logged{
		t:       t,
		store:   memlog.New(),
		cluster: c,
		job:     newJob(p),
	}
	l.node = c.StartNode("a", nil, l.job)
	l.client = c.StartClient("reader", func(c *engine.ClientConfig) { c.Logs = l.store })
	return l
}

// begin submits a task, and returns its attempt of a number, which runs; those before were released.
func (l *logged) begin(id events.TaskID, attempt int) *run {
	l.t.Helper()
	l.job.submit(l.t, l.node, id).Close()
	r := l.job.next(l.t)
	for r.Number < attempt {
		r.ends <- task.Outcome{Release: true}
		r = l.job.next(l.t)
	}
	return r
}

// attempt names the log of an attempt of a task that is there.
func (l *logged) attempt(id events.TaskID, number uint32) tasklog.Attempt {
	l.t.Helper()
	got, err := l.node.Client.Get(within(l.t), id)
	if err != nil {
		l.t.Fatal(err)
	}
	return tasklog.Attempt{Shard: got.Version.Shard, Life: got.Details.Life, Number: number}
}

// write has an attempt write lines.
func (l *logged) write(id events.TaskID, attempt uint32, lines ...string) {
	l.t.Helper()
	w, err := tasklog.NewWriter(l.store, l.attempt(id, attempt))
	if err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	log := slog.New(w.Handler())
	for _, line := range lines {
		log.Info(line)
	}
	w.Close()
	if err := <-ended; err != nil {
		l.t.Fatal(err)
	}
}

// read returns what is told on all pages: attempt and number of each line, "gap" for a gap.
func (l *logged) read(id events.TaskID, s tasklog.Selection) (all string, last tasklog.Told) {
	l.t.Helper()
	var words []string
	for more := true; more; more = last.More {
		var err error
		if last, err = l.client.Log(within(l.t), id, s); err != nil {
			l.t.Fatal(err)
		}
		if s.Limit > 0 && len(last.Lines) > s.Limit {
			l.t.Errorf("%d lines on a page of %d", len(last.Lines), s.Limit)
		}
		for _, line := range last.Lines {
			word := fmt.Sprintf("%d:%d", line.Attempt, line.Number)
			if line.Missing > 0 {
				word = fmt.Sprintf("%d:gap", line.Attempt)
			}
			words = append(words, word)
		}
		s.Cursor = last.Cursor
	}
	return strings.Join(words, " "), last
}

func (l *logged) want(id events.TaskID, s tasklog.Selection, want string) tasklog.Told {
	l.t.Helper()
	got, last := l.read(id, s)
	if got != want {
		l.t.Errorf("%+v of %s: %s, want %s", s, id, got, want)
	}
	return last
}

func TestLog_PagesJoinWithoutLossOrRepetitionUnderEveryLimit(t *testing.T) {
	t.Parallel()
	l := newLogged(t, task.Policy{})
	r := l.begin("a/b", 3)
	l.begin("other", 1)
	l.write("a/b", 1, "one", "two")
	l.write("a/b", 3, "one", "two", "three")
	l.write("other", 1, "one")
	for limit := range 7 { // 0 = as many as there may be
		l.want("a/b", tasklog.Selection{Limit: limit}, "1:1 1:2 3:1 3:2 3:3")
		l.want("a/b", tasklog.Selection{Limit: limit, Attempt: 1}, "1:1 1:2")
		l.want("a/b", tasklog.Selection{Limit: limit, Attempt: 2}, "")
	}
	at := l.want("a/b", tasklog.Selection{}, "1:1 1:2 3:1 3:2 3:3").Cursor
	at = l.want("a/b", tasklog.Selection{Cursor: at}, "").Cursor
	r.ends <- task.Outcome{Release: true}
	l.job.next(t)
	l.write("a/b", 4, "one")
	l.want("a/b", tasklog.Selection{Cursor: at}, "4:1")
}

// The writer of an attempt has seconds to store what is left, and the next attempt may begin at once.
func TestLog_FollowsAttemptsWhoseLinesComeLate(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{0: "1:1", time.Minute: ""} {
		l := newLogged(t, task.Policy{})
		now := time.Now().Add(after)
		l.client = l.cluster.StartClient("follower", func(c *engine.ClientConfig) {
			c.Logs, c.Now = l.store, func() time.Time { return now }
		})
		l.begin("x", 2)
		l.write("x", 2, "one")
		at := l.want("x", tasklog.Selection{}, "2:1").Cursor
		l.write("x", 1, "late")
		l.want("x", tasklog.Selection{Cursor: at}, want)
	}
}

func TestLog_FollowsAWriterWithoutLossOrRepetition(t *testing.T) {
	t.Parallel()
	const lines = 5000
	l := newLogged(t, task.Policy{})
	l.begin("x", 1)
	w, err := tasklog.NewWriter(l.store, l.attempt("x", 1))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	go func() {
		out := w.Output(tasklog.Info, true)
		for i := range lines {
			fmt.Fprintln(out, i)
		}
		w.Close()
	}()
	pages, next := 0, 0
	for s := (tasklog.Selection{Limit: 300}); next < lines && !t.Failed(); pages++ {
		told, err := l.client.Log(within(t), "x", s)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range told.Lines {
			if line.Text != fmt.Sprint(next) {
				t.Fatalf("line %d reads %q", next, line.Text)
			}
			next++
		}
		s.Cursor = told.Cursor
	}
	if err := <-ended; err != nil || pages <= lines/300 {
		t.Errorf("%d pages, %v", pages, err)
	}
}

func TestLog_TellsOfATaskThatIsNotThere(t *testing.T) {
	t.Parallel()
	l := newLogged(t, task.Policy{Retain: 1})
	log := func(c *engine.Client, id events.TaskID, s tasklog.Selection) error {
		_, err := c.Log(within(t), id, s)
		return err
	}
	if err := log(l.client.Client, "nobody", tasklog.Selection{}); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("never there: %v", err)
	}
	if err := log(l.node.Client, "nobody", tasklog.Selection{}); !errors.Is(err, tasklog.ErrNone) ||
		!errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without a store: %v", err)
	}

	r := l.begin("x", 1)
	l.write("x", 1, "one")
	of := l.attempt("x", 1)
	r.succeed("1")
	l.awaitForgotten("x")
	l.want("x", tasklog.Selection{}, "1:1")
	if err := l.store.Forget(t.Context(), of.Shard, of.Life, 0); err != nil {
		t.Fatal(err)
	}
	got, err := l.client.Log(within(t), "x", tasklog.Selection{})
	if !errors.Is(err, tasklog.ErrGone) || !errors.Is(err, store.ErrTrimmed) || got.Behavior != "job" {
		t.Errorf("forgotten, of behavior %q: %v", got.Behavior, err)
	}
}

// searched is a store that counts how often a journal is read.
type searched struct {
	store.Store
	reads atomic.Int64
}

// Read implements store.Journal.
func (s *searched) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	s.reads.Add(1)
	return s.Store.Read(ctx, shard, from)
}

// Backward implements store.Journal.
func (s *searched) Backward(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	s.reads.Add(1)
	return s.Store.Backward(ctx, shard, from)
}

// A log has many pages, and the history of a forgotten task may be long.
func TestLog_OfATaskThatIsForgottenIsSearchedForOnce(t *testing.T) {
	t.Parallel()
	l := newLogged(t, task.Policy{Retain: 1})
	var journal *searched
	l.client = l.cluster.StartClient("searcher", func(c *engine.ClientConfig) {
		journal = &searched{Store: c.Store}
		c.Store, c.Logs = journal, l.store
	})
	r := l.begin("x", 1)
	l.write("x", 1, "one", "two", "three")
	r.succeed("1")
	l.awaitForgotten("x")
	one := tasklog.Selection{Limit: 1}
	first, err := l.client.Log(within(t), "x", one)
	if err != nil || journal.reads.Load() == 0 {
		t.Fatalf("%v after %d reads of the journal", err, journal.reads.Load())
	}
	was := journal.reads.Load()
	one.Cursor = first.Cursor
	if got := l.want("x", one, "1:2 1:3"); !got.Ended || got.Behavior != "job" || journal.reads.Load() != was {
		t.Errorf("further pages took %d reads: %+v", journal.reads.Load()-was, got)
	}
	l.begin("x", 1) // another life
	if _, err := l.client.Log(within(t), "x", one); err == nil || !strings.Contains(err.Error(), "another life") {
		t.Errorf("once the task lives again: %v", err)
	}
}

// awaitForgotten waits until a task that has ended is forgotten.
func (l *logged) awaitForgotten(id events.TaskID) {
	l.t.Helper()
	others := 0
	testcluster.Await(l.t, "the task is forgotten", func() bool {
		others++
		l.begin(events.TaskID(fmt.Sprint("y", others)), 1).succeed("1") // an entry of a later time
		_, err := l.client.Get(within(l.t), id)
		return errors.Is(err, task.ErrNotFound)
	})
}

// The cursor of a log whose last attempt was silent stands behind all lines that there are.
func TestLog_OfATaskThatIsForgottenIsNotGoneBehindItsLastLine(t *testing.T) {
	t.Parallel()
	l := newLogged(t, task.Policy{Retain: 1})
	r := l.begin("x", 2)
	l.write("x", 1, "one")
	of := l.attempt("x", 1)
	r.succeed("1")
	l.awaitForgotten("x")
	behind := tasklog.Selection{Cursor: l.want("x", tasklog.Selection{}, "1:1").Cursor}
	l.want("x", behind, "")
	if err := l.store.Forget(t.Context(), of.Shard, of.Life, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := l.client.Log(within(t), "x", behind); !errors.Is(err, tasklog.ErrGone) {
		t.Errorf("once it is gone: %v", err)
	}
}

func TestLog_HasTheNewestAttempts(t *testing.T) {
	t.Parallel()
	l := newLogged(t, task.Policy{})
	l.begin("x", tasklog.MaxAttempts+2)
	var want []string
	for n := range uint32(tasklog.MaxAttempts + 2) {
		l.write("x", n+1, "one")
		if want = append(want, fmt.Sprintf("%d:1", n+1)); n+1 == 2 {
			want = nil
		}
	}
	l.want("x", tasklog.Selection{}, strings.Join(want, " "))
	l.want("x", tasklog.Selection{Attempt: 3}, "3:1")
	l.want("x", tasklog.Selection{Attempt: tasklog.MaxAttempts + 3}, "")
	if _, err := l.client.Log(within(t), "x", tasklog.Selection{Attempt: 2}); !errors.Is(err, tasklog.ErrGone) {
		t.Errorf("an earlier one: %v", err)
	}
}

func TestLog_SaysWhetherMoreIsToCome(t *testing.T) {
	t.Parallel()
	l := newLogged(t, task.Policy{})
	r := l.begin("x", 2)
	l.write("x", 1, "one")
	l.write("x", 2, "one", "two")
	now := l.want("x", tasklog.Selection{Attempt: 1}, "1:1")
	for _, c := range []struct {
		s     tasklog.Selection
		want  string
		ended bool
	}{
		{tasklog.Selection{}, "1:1 2:1 2:2", false},
		{tasklog.Selection{Attempt: 1}, "1:1", true},
		{tasklog.Selection{Attempt: 2}, "2:1 2:2", false},
		{tasklog.Selection{Attempt: 3}, "", false},
		{tasklog.Selection{Until: now.Lines[0].At - 1}, "", true},
		{tasklog.Selection{Since: now.Lines[0].At + 1e9, Until: now.Lines[0].At + 1e9}, "", false},
		{tasklog.Selection{Since: now.Lines[0].At + 1, Until: now.Lines[0].At}, "", true},
	} {
		if got := l.want("x", c.s, c.want); got.Ended != c.ended {
			t.Errorf("%+v: ended %t, want %t", c.s, got.Ended, c.ended)
		}
	}
	r.succeed("1")
	awaitTask(t, l.client.Client, "x", "has ended", func(x task.Task) bool { return x.Final() })
	if got := l.want("x", tasklog.Selection{}, "1:1 2:1 2:2"); !got.Ended {
		t.Error("of a task that has ended more is to come")
	}
}

func TestLog_HasTheLinesOfBothEndsOfItsTime(t *testing.T) {
	t.Parallel()
	l := newLogged(t, task.Policy{})
	l.begin("x", 1)
	if _, err := l.store.Append(t.Context(), l.attempt("x", 1), tasklog.End{}, tasklogtest.Lines(1, 5)); err != nil {
		t.Fatal(err)
	}
	const begin = tasklogtest.Begin
	l.want("x", tasklog.Selection{Since: begin + 2, Until: begin + 4}, "1:2 1:3 1:4")
	l.want("x", tasklog.Selection{Since: begin + 2, Until: begin + 4, Level: tasklog.Error}, "1:3")
	l.want("x", tasklog.Selection{Since: begin + 5, Until: begin + 4}, "")
	l.want("x", tasklog.Selection{Since: begin + 5}, "1:5")
}

// An attempt without output is no loss, whatever the bounds of the store have removed before it began.
func TestLog_SaysThatLinesMayBeMissingWhereAnAttemptBeganBeforeTheOldestOnes(t *testing.T) {
	t.Parallel()
	l := newLogged(t, task.Policy{})
	l.begin("x", 3)
	var began []events.Millis
	for e, err := range l.client.Ledger().History(within(t), "x") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind() == events.KindStarted {
			began = append(began, e.At)
		}
	}
	if len(began) != 3 {
		t.Fatalf("%d attempts", len(began))
	}
	for _, oldest := range append([]events.Millis{began[0] - 1000, began[2] + 1000}, began...) {
		var want []string
		for i, at := range began {
			one := ""
			if at < oldest {
				one = fmt.Sprintf("%d:gap", i+1)
			}
			l.store.Empty(l.attempt("x", 1), oldest)
			l.want("x", tasklog.Selection{Attempt: uint32(i + 1)}, one)
		}
		if began[0] < oldest { // of several it is said once
			want = append(want, "1:gap")
		}
		l.store.Empty(l.attempt("x", 1), oldest)
		l.want("x", tasklog.Selection{}, strings.Join(want, " "))
		l.want("x", tasklog.Selection{Limit: 1}, strings.Join(want, " "))
		told, err := l.client.Log(within(t), "x", tasklog.Selection{})
		for _, line := range told.Lines {
			if err != nil || line.At != began[line.Attempt-1] || line.Level != tasklog.Error {
				t.Errorf("%+v, %v, want %d", line, err, began)
			}
		}
	}
}

func TestLog_RefusesWhatBreaksARuleAndNamesIt(t *testing.T) {
	t.Parallel()
	l := newLogged(t, task.Policy{})
	l.begin("x", 1)
	l.begin("y", 1)
	_, ofY := l.read("y", tasklog.Selection{})
	for field, all := range map[string][]tasklog.Selection{
		"limit":  {{Limit: -1}, {Limit: tasklog.MaxPageLines + 1}},
		"level":  {{Level: 2}},
		"cursor": {{Cursor: "x"}, {Cursor: ofY.Cursor}},
	} {
		for _, s := range all {
			_, err := l.client.Log(within(t), "x", s)
			if invalid, is := errors.AsType[*store.InvalidError](err); !is || invalid.Field != field {
				t.Errorf("%+v: %v, want the field %s", s, err, field)
			}
		}
	}
}
