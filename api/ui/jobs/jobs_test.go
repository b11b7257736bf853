package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/ui/jobs"
	"taskledger/bulk"
)

// changes answers as the API does: a line for each report, and more of them once it is let on.
type changes struct {
	asked []api.Question
	lines []string
	on    chan struct{} // each lets it tell a line; closed = all. nil = it is never held up
	fails error
}

func (c *changes) Lines(ctx context.Context, q api.Question, take func([]byte) error) error {
	c.asked = append(c.asked, q)
	for _, line := range c.lines {
		if c.on != nil {
			select {
			case <-c.on:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := take([]byte(line)); err != nil {
			return err
		}
	}
	return c.fails
}

func reportOf(matched, changed, left int64, done bool) string {
	line, err := json.Marshal(api.ChangeReport{
		Report: bulk.Report{Matched: matched, Changed: changed, Left: left},
		Done:   done,
	})
	if err != nil {
		panic(err)
	}
	return string(line)
}

var cancelAll = jobs.Order{ChangeMatching: api.ChangeMatching{
	Operation: operations.Cancel,
	Filter:    map[string]string{"behavior": "noop"},
}}

// running runs a test in a bubble with jobs, which end before it.
func running(t *testing.T, test func(t *testing.T, j *jobs.Jobs, end func())) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := jobs.New(nil)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- j.Run(ctx) }()
		synctest.Wait()
		test(t, j, func() { end(); synctest.Wait() })
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func begin(t *testing.T, j *jobs.Jobs, principal string, by jobs.Caller, o jobs.Order) string {
	t.Helper()
	id, err := j.Begin(principal, by, o)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return id
}

func want(t *testing.T, j *jobs.Jobs, principal, id string, state jobs.State, matched int64) jobs.Job {
	t.Helper()
	is, has := j.Get(principal, id)
	if !has || is.State != state || is.Report.Matched != matched || is.Ended.IsZero() != (state == jobs.Runs) {
		t.Errorf("%t %+v, want that it %s with %d tasks", has, is, state, matched)
	}
	return is
}

func TestJob_TellsHowFarItIsUntilItIsDone(t *testing.T) {
	running(t, func(t *testing.T, j *jobs.Jobs, _ func()) {
		c := &changes{on: make(chan struct{}), lines: []string{reportOf(0, 0, 0, false), reportOf(5, 4, 1, false), reportOf(7, 5, 2, true)}}
		id := begin(t, j, "ada", c, cancelAll)
		want(t, j, "ada", id, jobs.Runs, 0)
		c.on <- struct{}{}
		c.on <- struct{}{}
		synctest.Wait()
		want(t, j, "ada", id, jobs.Runs, 5)
		close(c.on)
		synctest.Wait()
		if is := want(t, j, "ada", id, jobs.Done, 7); is.Report.Left != 2 || is.Why != "" || is.Order.Operation != operations.Cancel {
			t.Errorf("%+v", is)
		}
		if q := c.asked[0]; q.Method != "POST" || q.Path != "/v1/tasks:change-matching" || len(c.asked) != 1 {
			t.Errorf("asked %+v", c.asked)
		}
	})
}

func TestJob_IsStoppedByItsPrincipalAlone(t *testing.T) {
	running(t, func(t *testing.T, j *jobs.Jobs, _ func()) {
		c := &changes{on: make(chan struct{}), lines: []string{reportOf(3, 3, 0, false), reportOf(4, 4, 0, false), reportOf(5, 5, 0, true)}}
		id := begin(t, j, "ada", c, cancelAll)
		c.on <- struct{}{}
		synctest.Wait()
		if j.Stop("bob", id) {
			t.Error("another one stops it")
		}
		if _, has := j.Get("bob", id); has || len(j.List("bob")) > 0 {
			t.Error("another one sees it")
		}
		synctest.Wait()
		if is := want(t, j, "ada", id, jobs.Runs, 3); is.Stopping {
			t.Error("another one stops it")
		}
		for range 2 {
			if !j.Stop("ada", id) {
				t.Error("nobody stops it")
			}
		}
		synctest.Wait()
		if is := want(t, j, "ada", id, jobs.Runs, 3); !is.Stopping {
			t.Error("it does not say that it is being stopped")
		}
		c.on <- struct{}{} // the tasks that it changes are done
		synctest.Wait()
		want(t, j, "ada", id, jobs.Stopped, 4)
		stuck := begin(t, j, "ada", c, cancelAll)
		if !j.Stop("ada", stuck) {
			t.Error("nobody stops it")
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if is := want(t, j, "ada", stuck, jobs.Stopped, 0); is.Stopping {
			t.Error("it is still being stopped")
		}
		if j.Stop("ada", "none") {
			t.Error("none is stopped")
		}
	})
}

func TestJob_ThatItsNodeEndsSaysSo(t *testing.T) {
	running(t, func(t *testing.T, j *jobs.Jobs, end func()) {
		c := &changes{on: make(chan struct{}), lines: []string{reportOf(3, 3, 0, false), reportOf(5, 5, 0, true)}}
		id := begin(t, j, "ada", c, cancelAll)
		c.on <- struct{}{}
		synctest.Wait()
		end()
		if is := want(t, j, "ada", id, jobs.NodeEnds, 3); !strings.Contains(is.Why, "node") {
			t.Errorf("%+v", is)
		}
		if _, err := j.Begin("ada", c, cancelAll); !errors.Is(err, jobs.ErrNotRunning) {
			t.Errorf("another one begins: %v", err)
		}
	})
}

func TestJob_ThatFailsSaysWhy(t *testing.T) {
	running(t, func(t *testing.T, j *jobs.Jobs, _ func()) {
		refused := &changes{fails: problem.New(problem.OtherCount, "8 tasks match, expected are 7: none is changed")}
		if is := want(t, j, "ada", begin(t, j, "ada", refused, cancelAll), jobs.Failed, 0); !strings.Contains(is.Why, "8 tasks") {
			t.Errorf("%+v", is)
		}
		line, err := json.Marshal(api.ChangeReport{Report: bulk.Report{Matched: 2}, Problem: problem.New(problem.Unauthorized, "revoked")})
		if err != nil {
			t.Fatal(err)
		}
		ended := &changes{lines: []string{string(line)}}
		if is := want(t, j, "ada", begin(t, j, "ada", ended, cancelAll), jobs.Failed, 2); is.Why != "revoked" {
			t.Errorf("%+v", is)
		}
		cut := &changes{lines: []string{reportOf(2, 2, 0, false)}}
		if is := want(t, j, "ada", begin(t, j, "ada", cut, cancelAll), jobs.Failed, 2); is.Why == "" {
			t.Errorf("%+v", is)
		}
	})
}

// A form that is sent twice begins one job.
func TestBegin_WithAKeyAgainIsTheSameJob(t *testing.T) {
	running(t, func(t *testing.T, j *jobs.Jobs, _ func()) {
		c := &changes{lines: []string{reportOf(1, 1, 0, true)}}
		o := cancelAll
		o.Key = "once"
		first := begin(t, j, "ada", c, o)
		if again := begin(t, j, "ada", c, o); again != first || len(c.asked) != 1 {
			t.Errorf("%s and %s, asked %d times", first, again, len(c.asked))
		}
		if other := begin(t, j, "bob", c, o); other == first || len(c.asked) != 2 {
			t.Error("another principal has the same job")
		}
	})
}

func TestBegin_BoundsTheJobsOfOneAndOfAll(t *testing.T) {
	running(t, func(t *testing.T, j *jobs.Jobs, _ func()) {
		c := &changes{on: make(chan struct{}), lines: []string{reportOf(1, 1, 0, true)}}
		for i := range 4 {
			begin(t, j, fmt.Sprint("p", i), c, cancelAll)
		}
		for _, who := range []string{"p0", "p9"} {
			if _, err := j.Begin(who, c, cancelAll); !errors.Is(err, jobs.ErrTooMany) {
				t.Errorf("%s: %v", who, err)
			}
		}
		close(c.on)
		synctest.Wait()
		for range 100 {
			begin(t, j, "p0", c, cancelAll)
		}
		if n := len(j.List("p0")); n > 20 {
			t.Errorf("%d are kept", n)
		}
		if n := len(j.List("p1")); n != 1 {
			t.Errorf("%d of another one are kept", n)
		}
	})
}

func TestBegin_LeavesAPrincipalAStreamForItsPages(t *testing.T) {
	running(t, func(t *testing.T, j *jobs.Jobs, _ func()) {
		c := &changes{on: make(chan struct{}), lines: []string{reportOf(1, 1, 0, true)}}
		begin(t, j, "ada", c, cancelAll)
		if _, err := j.Begin("ada", c, cancelAll); !errors.Is(err, jobs.ErrTooMany) {
			t.Errorf("a second one begins beside it: %v", err)
		}
		close(c.on)
		synctest.Wait()
		begin(t, j, "ada", c, cancelAll)
	})
}

// cursorOf is a line of a change that has come as far as a cursor.
func cursorOf(matched int64, cursor string) string {
	line, err := json.Marshal(api.ChangeReport{Report: bulk.Report{Matched: matched, Changed: matched, Cursor: cursor}})
	if err != nil {
		panic(err)
	}
	return string(line)
}

func TestJob_ThatEndsInTheMiddleGoesOnFromItsCursor(t *testing.T) {
	for name, ends := range map[string]struct {
		how   func(j *jobs.Jobs, id string, end func())
		fails error
		state jobs.State
	}{
		"stopped":   {func(j *jobs.Jobs, id string, _ func()) { j.Stop("ada", id); time.Sleep(5 * time.Second) }, nil, jobs.Stopped},
		"its node":  {func(_ *jobs.Jobs, _ string, end func()) { end() }, nil, jobs.NodeEnds},
		"a refusal": {func(*jobs.Jobs, string, func()) {}, problem.New(problem.Unavailable, "the store is away"), jobs.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			running(t, func(t *testing.T, j *jobs.Jobs, end func()) {
				c := &changes{on: make(chan struct{}), fails: ends.fails, lines: []string{cursorOf(0, "c0"), cursorOf(3, "c3"), reportOf(5, 5, 0, true)}}
				if ends.fails != nil {
					c.lines = c.lines[:2]
				}
				o, counted, expected := cancelAll, int64(5), int64(5)
				o.Counted, o.Expected, o.Reason = &counted, &expected, "no more"
				id := begin(t, j, "ada", c, o)
				c.on <- struct{}{}
				c.on <- struct{}{}
				synctest.Wait()
				if is, _ := j.Get("ada", id); ends.fails == nil {
					if _, left := is.GoesOn(); left {
						t.Error("it goes on while it runs")
					}
				}
				ends.how(j, id, end)
				synctest.Wait()
				is := want(t, j, "ada", id, ends.state, 3)
				next, left := is.GoesOn()
				if !left || next.Cursor != "c3" || next.Expected != nil || next.Counted == nil || *next.Counted != 2 || next.Reason != "no more" ||
					next.Operation != o.Operation || next.Filter["behavior"] != "noop" || next.Key == "" {
					t.Errorf("%t %+v", left, next)
				}
				if again, _ := is.GoesOn(); again.Key != next.Key {
					t.Error("a repetition is another order")
				}
			})
		})
	}
	running(t, func(t *testing.T, j *jobs.Jobs, _ func()) {
		c := &changes{lines: []string{cursorOf(3, "c3"), reportOf(5, 5, 0, true)}}
		is := want(t, j, "ada", begin(t, j, "ada", c, cancelAll), jobs.Done, 5)
		if _, left := is.GoesOn(); left {
			t.Error("a job that is done goes on")
		}
	})
}

// A job that goes on from a cursor, and ends before it comes further, goes on from there again.
func TestJob_ThatEndsBeforeItsFirstLineIsWhereItBegan(t *testing.T) {
	failed, err := json.Marshal(api.ChangeReport{Problem: problem.New(problem.Unavailable, "the store is away")})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*changes{
		"refused":           {fails: problem.New(problem.TooMany, "two streams are under way")},
		"a line of nothing": {lines: []string{string(failed)}},
	} {
		t.Run(name, func(t *testing.T) {
			running(t, func(t *testing.T, j *jobs.Jobs, _ func()) {
				o := cancelAll
				o.Cursor, o.Key = "c3", "after another"
				id := begin(t, j, "ada", c, o)
				is := want(t, j, "ada", id, jobs.Failed, 0)
				if next, left := is.GoesOn(); !left || next.Cursor != "c3" {
					t.Errorf("%t %+v", left, next)
				}
				again := begin(t, j, "ada", &changes{lines: []string{cursorOf(1, "c4"), cursorOf(2, "")}}, o)
				if again == id {
					t.Fatal("the order is never tried again")
				}
				is = want(t, j, "ada", again, jobs.Failed, 2)
				if next, _ := is.GoesOn(); next.Cursor != "c4" || begin(t, j, "ada", c, o) != again {
					t.Errorf("%+v, and what it has done is done again", next)
				}
			})
		})
	}
}

func TestJobs_ThatEndedFirstGoFirstWhateverBeganFirst(t *testing.T) {
	running(t, func(t *testing.T, j *jobs.Jobs, _ func()) {
		long := &changes{on: make(chan struct{}), lines: []string{reportOf(1, 1, 0, true)}}
		short := &changes{lines: long.lines}
		id := begin(t, j, "ada", long, cancelAll)
		first := begin(t, j, "p0", short, cancelAll)
		for i := range 198 {
			time.Sleep(time.Second)
			begin(t, j, fmt.Sprint("p", i%18), short, cancelAll)
		}
		close(long.on)
		synctest.Wait()
		begin(t, j, "bob", short, cancelAll)
		want(t, j, "ada", id, jobs.Done, 1)
		if _, has := j.Get("p0", first); has {
			t.Error("the one that ended first is kept")
		}
	})
}

func TestJob_ThatHasEndedIsKeptForAnHour(t *testing.T) {
	running(t, func(t *testing.T, j *jobs.Jobs, _ func()) {
		c := &changes{lines: []string{reportOf(1, 1, 0, true)}}
		id := begin(t, j, "ada", c, cancelAll)
		time.Sleep(jobs.Keeps - time.Second)
		want(t, j, "ada", id, jobs.Done, 1)
		time.Sleep(time.Second)
		if _, has := j.Get("ada", id); has || len(j.List("ada")) > 0 {
			t.Error("it is kept")
		}
	})
}

func TestJobs_ThatNobodyRunsBeginNothing(t *testing.T) {
	t.Parallel()
	if _, err := jobs.New(nil).Begin("ada", &changes{}, cancelAll); !errors.Is(err, jobs.ErrNotRunning) {
		t.Error(err)
	}
}
