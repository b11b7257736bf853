package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// failedAs returns the error of a task that has failed for good.
func failedAs(t *testing.T, err error) *task.Error {
	t.Helper()
	failure, is := errors.AsType[*task.Error](err)
	if !is {
		t.Fatalf("%v, want the failure of the task", err)
	}
	return failure
}

func TestDeadline_EndsARunThatWaits(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		n := c.start("submitter", 0, func(config *cfg) { config.Name, config.Owner = "service", new(bool) })
		for name, submit := range submitters(t, n, j) {
			id := events.TaskID("waits/" + name)
			by := time.Now().Add(time.Minute)
			f, err := submit(task.SubmitOptions{ID: id, Delay: 50 * time.Second, Deadline: by})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := n.Operations().Suspend(within(t), id, ""); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_, err = f.Wait(within(t))
			if e := failedAs(t, err); e.Code != events.CodeDeadline || !strings.Contains(e.Message, "has passed") {
				t.Errorf("%s: %+v", name, e)
			}
			if late := time.Since(by); late < 0 || late > time.Second {
				t.Errorf("%s: it ended %s after its deadline", name, late)
			}
			is, err := n.GetLinear(within(t), id)
			if err != nil || !is.Final() || is.Attempt != 0 || is.Deadline != 0 {
				t.Errorf("%s: %+v, %v", name, is, err)
			}
		}
	})
}

func TestDeadline_EndsAnAttemptThatRuns(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		n := c.nodes[0]
		by := time.Now().Add(time.Minute)
		f, err := n.Submit(within(t), j, nil, task.SubmitOptions{ID: "runs", Deadline: by})
		if err != nil {
			t.Fatal(err)
		}
		r := j.next(t)
		if is, err := n.GetLinear(within(t), "runs"); err != nil || is.Deadline != events.MillisOf(by) {
			t.Errorf("it shows the deadline %s, %v; want %s", is.Deadline.Text(), err, by)
		}
		<-r.ctx.Done()
		latest := time.Second
		if c.bus == nil { // another node than the owner's learns of it by its reconciliation, every 2 s
			latest = 2 * time.Second
		}
		if late := time.Since(by); late < 0 || late > latest {
			t.Errorf("its context ended %s after its deadline, want %s at most", late, latest)
		}
		_, err = f.Wait(within(t))
		if e := failedAs(t, err); e.Code != events.CodeDeadline {
			t.Errorf("%+v", e)
		}
		wantHistory(t, n.Client, "runs", "Created Described Started Failed")

		// A retry is another run, and has no deadline.
		if _, err := n.Operations().Retry(within(t), "runs"); err != nil {
			t.Fatal(err)
		}
		again := j.next(t)
		time.Sleep(2 * time.Minute)
		again.succeed(`"late"`)
		want(t, n.Attach("runs"), `"late"`)
	})
}

func TestDeadline_OfAnEarlierNextAttemptMakesAFailureTheLast(t *testing.T) {
	policy := task.Policy{Backoff: task.Backoff{Base: 10 * time.Hour, Max: 10 * time.Hour}, MaxAttempts: 1_000_000}
	inService(t, policy, func(t *testing.T, c *modelled, j *job) {
		f, err := c.nodes[0].Submit(within(t), j, nil, task.SubmitOptions{ID: "fails", Deadline: time.Now().Add(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		j.next(t).ends <- task.Outcome{Err: &events.Error{Code: "no", Message: "not yet"}}
		_, err = f.Wait(within(t))
		if e := failedAs(t, err); e.Code != "no" && e.Code != events.CodeDeadline {
			t.Errorf("%+v", e)
		}
		if is, err := c.nodes[0].GetLinear(within(t), "fails"); err != nil || !is.Final() || is.Attempt != 1 {
			t.Errorf("%+v, %v", is, err)
		}
	})
}

func TestDeadline_HoldsAtTheNextOwner(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		n, by := c.nodes[0], time.Now().Add(time.Hour)
		var all []events.TaskID
		for shard := range modelledShards {
			id := idIn(shard, modelledShards)
			all = append(all, id)
			if _, err := n.Submit(within(t), j, nil, task.SubmitOptions{ID: id, Delay: 59 * time.Minute, Deadline: by}); err != nil {
				t.Fatal(err)
			}
			if err := n.Operations().Suspend(within(t), id, ""); err != nil {
				t.Fatal(err)
			}
		}
		c.nodes[1].crash()
		time.Sleep(70 * time.Minute)
		for _, id := range all {
			if is, err := n.GetLinear(within(t), id); err != nil || !is.Final() || is.Error.Code != events.CodeDeadline {
				t.Errorf("%s: %+v, %v", id, is, err)
			}
		}
	})
}

func TestDeadline_OfAFurtherRunThatHasNotBegunLeavesTheOutcomeBefore(t *testing.T) {
	inService(t, task.Policy{Existing: task.RunAgain}, func(t *testing.T, c *modelled, j *job) {
		n := c.nodes[0]
		f := j.submit(t, n, "again")
		j.next(t).succeed(`1`)
		want(t, f, `1`)
		o := task.SubmitOptions{ID: "again", Delay: time.Minute, Deadline: time.Now().Add(2 * time.Minute)}
		if _, err := n.Submit(within(t), j, nil, o); err != nil {
			t.Fatal(err)
		}
		if err := n.Operations().Suspend(within(t), "again", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		is, err := n.GetLinear(within(t), "again")
		if err != nil || !is.Final() || is.Status != task.Success || is.Deadline != 0 || is.Runs != 1 {
			t.Errorf("%+v, %v", is, err)
		}
	})
}

func TestDeadline_RequestIsRepeatedWhateverTheTime(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		n := c.nodes[0]
		o := task.SubmitOptions{RequestKey: "k", Delay: time.Hour, Deadline: time.Now().Add(2 * time.Hour)}
		f, err := n.Submit(within(t), j, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, later := range []time.Duration{70 * time.Minute, 2 * time.Hour} { // it ends after an hour
			time.Sleep(later)
			again, err := n.Submit(within(t), j, nil, o)
			if err != nil || !again.Repeated() || again.ID() != f.ID() {
				t.Errorf("after %s: %v", later, err)
			}
			if later < 2*time.Hour {
				j.next(t).succeed(`1`)
			}
		}
		want(t, f, `1`)
	})
}

func TestDeadline_NothingStartsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, j := newModelled(t, true), newJob(task.Policy{})
		n := c.start("one", 0, func(config *cfg) { config.Slots = 1 }, j)
		n.ready(t)
		by := time.Now().Add(time.Minute)
		requests := make([]task.Request, 1000)
		for i := range requests {
			id := events.TaskID(fmt.Sprintf("of-one-shard/%d", i))
			requests[i] = task.Request{Behavior: j, SubmitOptions: task.SubmitOptions{ID: id, Deadline: by}}
		}
		var all []*engine.Future
		for _, r := range n.SubmitMany(within(t), requests, task.ManyOptions{}) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			all = append(all, r.Future)
		}
		for _, f := range all {
			if _, err := f.Wait(within(t)); failedAs(t, err).Code != events.CodeDeadline {
				t.Errorf("%s: %v", f.ID(), err)
			}
		}
		if started := j.count.Load(); started != 1 {
			t.Errorf("%d attempts started, want the one that ran until the deadline", started)
		}
	})
}

func TestTags_AreFoundByLists(t *testing.T) {
	inService(t, task.Policy{Existing: task.RunAgain}, func(t *testing.T, c *modelled, j *job) {
		n := c.nodes[0]
		put := func(id events.TaskID, tags ...string) {
			t.Helper()
			f, err := n.Submit(within(t), j, nil, task.SubmitOptions{ID: id, Tags: tags})
			if err != nil {
				t.Fatal(err)
			}
			j.next(t).succeed(`1`)
			want(t, f, `1`)
		}
		found := func(tag string, ids ...events.TaskID) {
			t.Helper()
			var got []events.TaskID
			for is, err := range n.List(within(t), task.Filter{Tag: tag}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, is.ID)
			}
			slices.Sort(got)
			if !slices.Equal(got, ids) {
				t.Errorf("tag %q: %v, want %v", tag, got, ids)
			}
		}
		put("one", "nightly", "customer=ada", "nightly")
		put("two", "nightly")
		put("three")
		found("nightly", "one", "two")
		found("customer=ada", "one")
		if is, err := n.GetLinear(within(t), "one"); err != nil || !slices.Equal(is.Tags, []string{"customer=ada", "nightly"}) {
			t.Errorf("%v, %v", is.Tags, err)
		}
		put("one") // another run without tags keeps those
		found("customer=ada", "one")
		put("one", "weekly")
		found("nightly", "two")
		found("weekly", "one")
		found("daily")
	})
}

func TestSubmit_RefusesTagsAndDeadlinesByName(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		now := time.Now()
		for name, of := range map[string]struct {
			field string
			o     task.SubmitOptions
		}{
			"that has passed":        {"deadline", task.SubmitOptions{Deadline: now.Add(-time.Second)}},
			"in eleven years":        {"deadline", task.SubmitOptions{Deadline: now.AddDate(11, 0, 0)}},
			"before its time":        {"deadline", task.SubmitOptions{Deadline: now.Add(time.Hour), NotBefore: now.Add(2 * time.Hour)}},
			"before its delay":       {"deadline", task.SubmitOptions{Deadline: now.Add(time.Hour), Delay: 2 * time.Hour}},
			"an empty tag":           {"tags", task.SubmitOptions{Tags: []string{""}}},
			"a tag with a space":     {"tags", task.SubmitOptions{Tags: []string{"a b"}}},
			"a tag of 65 bytes":      {"tags", task.SubmitOptions{Tags: []string{strings.Repeat("x", 65)}}},
			"a tag that is no ASCII": {"tags", task.SubmitOptions{Tags: []string{"ä"}}},
		} {
			for way, submit := range submitters(t, c.nodes[0], j) {
				_, err := submit(of.o)
				if invalid, is := errors.AsType[*store.InvalidError](err); !is || invalid.Field != of.field {
					t.Errorf("%s, %s: %v, want the field %s", name, way, err, of.field)
				}
			}
		}
		_, err := c.nodes[0].Submit(within(t), j, nil, task.SubmitOptions{Tags: strings.Split("a b c d e f g h i j k", " ")})
		if limit, is := errors.AsType[*task.LimitError](err); !is || limit.Field != "tags" || limit.Limit != events.MaxTags {
			t.Errorf("eleven tags: %v", err)
		}
		if j.count.Load() != 0 {
			t.Errorf("%d attempts have run", j.count.Load())
		}
	})
}

func TestSubmit_ARequestOfAKeyIsAnotherOneWithOtherTagsOrAnotherDeadline(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		by := time.Now().Add(time.Hour)
		for name, submit := range submitters(t, c.nodes[0], j) {
			o := task.SubmitOptions{ID: events.TaskID("keyed/" + name), RequestKey: "k", Tags: []string{"b", "a"}, Deadline: by}
			for range 2 {
				if _, err := submit(o); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			other := o
			other.Tags = []string{"a"}
			if _, err := submit(other); !errors.Is(err, task.ErrOtherRequest) {
				t.Errorf("%s: with other tags: %v", name, err)
			}
			other = o
			other.Deadline = by.Add(time.Second)
			if _, err := submit(other); !errors.Is(err, task.ErrOtherRequest) {
				t.Errorf("%s: with another deadline: %v", name, err)
			}
			j.next(t).succeed("1")
		}
	})
}
