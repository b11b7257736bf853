package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/task"
)

// inService runs a test in a cluster of two nodes of one name, which is the principal of their requests, with and
// without a bus.
func inService(t *testing.T, p task.Policy, test func(t *testing.T, c *modelled, j *job)) {
	for _, bus := range []bool{true, false} {
		t.Run(fmt.Sprintf("bus %t", bus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, j := newModelled(t, bus), newJob(p)
				for _, name := range []string{"a", "b"} {
					c.startService(name, j).ready(t)
				}
				test(t, c, j)
			})
		})
	}
}

func (c *modelled) startService(name string, j *job) *modelledNode {
	return c.start(name, 0, func(config *cfg) { config.Name = "service" }, j)
}

// submitted is the result of a request.
type submitted struct {
	*engine.Future
	err error
}

func (s submitted) String() string {
	return fmt.Sprintf("task %s, joined %t, repeated %t, %v", s.ID(), s.Joined(), s.Repeated(), s.err)
}

func request(t *testing.T, j *job, to *engine.Client, params string, o task.SubmitOptions) submitted {
	f, err := to.Submit(within(t), j, []byte(params), o)
	return submitted{f, err}
}

// wantTask asserts which task a request has, and whether it made it or repeats what did.
func wantTask(t *testing.T, s submitted, id events.TaskID, repeated bool) {
	t.Helper()
	if s.err != nil || s.ID() != id || s.Joined() != repeated || s.Repeated() != repeated {
		t.Errorf("%s; want task %s, repeated %t", s, id, repeated)
	}
}

func TestRequest_RepeatedAtOnceFromManyPlacesIsOneTaskAndOneOutcome(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		const key = "order 4711 / Größe \"L\"\n"
		id := events.TaskOfRequest("service", "job", key)
		all := make([]submitted, 20)
		var asking sync.WaitGroup
		for i := range all {
			asking.Go(func() {
				to, o := c.nodes[i%2].Client, task.SubmitOptions{RequestKey: key}
				if i%3 == 0 {
					f, err := to.SubmitRaw(within(t), "job", []byte("1"), o)
					all[i] = submitted{f, err}
				} else {
					all[i] = request(t, j, to, "1", o)
				}
			})
		}
		asking.Wait()
		made := 0
		for _, s := range all {
			if s.err == nil && !s.Repeated() {
				made++
			}
			wantTask(t, s, id, s.Repeated())
		}
		if made != 1 {
			t.Errorf("%d of %d submits have made the task", made, len(all))
		}
		j.next(t).succeed("1")
		for _, s := range all {
			want(t, s.Future, "1")
		}
		wantHistory(t, c.nodes[0].Client, id, "Created Started Succeeded")
	})
}

func TestRequest_OfAnotherPrincipalBehaviorOrKeyIsAnotherTask(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		other := &renamed{j, "other-job"}
		stranger := c.start("stranger", 0, nil, j, other)
		stranger.ready(t)
		seen := map[events.TaskID]bool{}
		for _, row := range []struct {
			to  *engine.Client
			b   task.Behavior
			key string
			by  string
		}{{c.nodes[0].Client, j, "1", ""}, {c.nodes[1].Client, j, "2", ""}, {stranger.Client, j, "1", ""}, {c.nodes[0].Client, other, "1", ""},
			{c.nodes[0].Client, j, "1", "ada"}} {
			ctx := within(t)
			if row.by != "" {
				ctx = engine.WithCaller(ctx, events.Caller{Principal: row.by})
			}
			f, err := row.to.Submit(ctx, row.b, nil, task.SubmitOptions{RequestKey: row.key})
			if err != nil || f.Joined() || seen[f.ID()] {
				t.Errorf("%s of key %s: task %s, joined %t, %v; want one of its own", row.b.ID(), row.key, f.ID(), f.Joined(), err)
			}
			seen[f.ID()] = true
		}
	})
}

// renamed is a job of another id.
type renamed struct {
	*job
	id string
}

func (n *renamed) ID() string { return n.id }

// The task was made, and who asked for it gave up before it heard of that.
func TestRequest_RepeatedAfterItsAnswerWasLostFindsItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, j := newModelled(t, true), newJob(task.Policy{})
		c.startService("a", j).ready(t)
		var deaf atomic.Bool
		lost := c.start("b", 0, func(config *cfg) {
			noShards(config)
			config.Name, config.Bus = "service", &wiredBus{config.Bus, &wire{heard: only(&deaf, laneSubmit, drop)}}
		}, j)
		lost.ready(t)
		deaf.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		f, err := lost.Submit(ctx, j, []byte("1"), task.SubmitOptions{RequestKey: "k"})
		if id := events.TaskOfRequest("service", "job", "k"); !errors.Is(err, task.ErrUnknown) || f.ID() != id {
			t.Fatalf("task %s: %v, want task %s and that its fate is unknown", f.ID(), err, id)
		}
		j.next(t).succeed("1")
		again := request(t, j, c.nodes[0].Client, "1", task.SubmitOptions{RequestKey: "k"})
		wantTask(t, again, f.ID(), true)
		want(t, again.Future, "1")
		wantHistory(t, c.nodes[0].Client, f.ID(), "Created Started Succeeded")
	})
}

// The first run of the task has ended, its owner has gone, and a behavior that runs again would begin another run
// for another request.
func TestRequest_RepeatedAfterTheEndAndARestartGetsTheRecordedOutcome(t *testing.T) {
	inService(t, task.Policy{Existing: events.RunAgain}, func(t *testing.T, c *modelled, j *job) {
		o := task.SubmitOptions{RequestKey: "k", Delay: time.Second, Priority: 3}
		first := request(t, j, c.nodes[0].Client, "1", o)
		wantTask(t, first, first.ID(), false)
		j.next(t).succeed("1")
		want(t, first.Future, "1")
		c.nodes[0].stop()
		c.nodes[0].end()
		c.nodes[1].crash()
		restarted := c.startService("c", j)
		restarted.ready(t)
		again := request(t, j, restarted.Client, "1", o)
		wantTask(t, again, first.ID(), true)
		want(t, again.Future, "1")
		j.nothing(t)
	})
}

func TestRequest_WithTheKeyOfAnotherIsRefusedAndChangesNothing(t *testing.T) {
	inService(t, task.Policy{Existing: events.RunAgain}, func(t *testing.T, c *modelled, j *job) {
		at := time.Now().Add(time.Hour)
		asked := task.SubmitOptions{RequestKey: "k", NotBefore: at, Priority: 1}
		for _, given := range []events.TaskID{"", "given"} {
			asked.ID = given
			first := request(t, j, c.nodes[0].Client, "1", asked)
			wantTask(t, first, first.ID(), false)
			for name, change := range map[string]func(o *task.SubmitOptions){
				"parameters": nil,
				"priority":   func(o *task.SubmitOptions) { o.Priority = 2 },
				"time":       func(o *task.SubmitOptions) { o.NotBefore = at.Add(time.Second) },
				"no time":    func(o *task.SubmitOptions) { o.NotBefore = time.Time{} },
				"delay":      func(o *task.SubmitOptions) { o.NotBefore, o.Delay = time.Time{}, time.Minute },
			} {
				params, o := "2", asked
				if change != nil {
					params = "1"
					change(&o)
				}
				s := request(t, j, c.nodes[1].Client, params, o)
				if !errors.Is(s.err, task.ErrOtherRequest) || !strings.Contains(s.err.Error(), `"k"`) || !strings.Contains(s.err.Error(), string(first.ID())) {
					t.Errorf("other %s: %s, want it refused, with the key and the task", name, s)
				}
				if _, err := s.Wait(within(t)); !errors.Is(err, task.ErrOtherRequest) {
					t.Errorf("other %s: its future says %v", name, err)
				}
			}
			wantTask(t, request(t, j, c.nodes[1].Client, "1", asked), first.ID(), true)
			wantHistory(t, c.nodes[0].Client, first.ID(), "Created")
		}
	})
}

// Its policy keeps one task for a minute. Whatever else ends, the task is there for ten minutes; then its key is
// forgotten with it.
func TestRequest_IsRememberedForTenMinutesAfterTheEndAndThenMakesANewTask(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	inService(t, task.Policy{Retain: time.Minute, RetainCount: 1}, func(t *testing.T, c *modelled, j *job) {
		node := c.nodes[0].Client
		run := func(o task.SubmitOptions) *engine.Future {
			s := request(t, j, node, "1", o)
			wantTask(t, s, s.ID(), false)
			j.next(t).succeed("1")
			want(t, s.Future, "1")
			return s.Future
		}
		o := task.SubmitOptions{RequestKey: "k"}
		first := run(o)
		beside := func(i int) task.SubmitOptions { // in the shard of the first
			id, err := events.TaskInRequest(first.ID(), i)
			if err != nil {
				t.Fatal(err)
			}
			return task.SubmitOptions{ID: id}
		}
		for i := range 3 {
			run(beside(i))
			time.Sleep(3 * time.Minute)
			wantTask(t, request(t, j, node, "1", o), first.ID(), true)
		}
		for i := range 15 { // of the time between two entries a minute counts
			time.Sleep(time.Minute)
			run(beside(3 + i))
		}
		second := run(o)
		if second.ID() != first.ID() {
			t.Errorf("the key names task %s, and named %s", second.ID(), first.ID())
		}
	})
}

func TestRequest_OfADeletedTaskMakesANewOne(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		o := task.SubmitOptions{RequestKey: "k", Delay: time.Hour}
		first := request(t, j, c.nodes[0].Client, "1", o)
		if err := c.nodes[1].Operations().Delete(within(t), first.ID()); err != nil {
			t.Fatal(err)
		}
		wantTask(t, request(t, j, c.nodes[0].Client, "2", o), first.ID(), false)
		got, err := c.nodes[0].GetLinear(within(t), first.ID())
		if err != nil || got.Status != task.Created || string(got.Params) != "2" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Of two requests for one task each is remembered: a rule of the behavior, or the caller, says which task they are
// about.
func TestRequest_CountsWithinTheTaskThatARuleOrItsCallerNames(t *testing.T) {
	inService(t, task.Policy{Existing: events.RunAgain}, func(t *testing.T, c *modelled, j *job) {
		node := c.nodes[0].Client
		ruled := &planned{j, task.Plan{ID: "ruled"}}
		for _, row := range []struct {
			b    task.Behavior
			o    task.SubmitOptions
			want events.TaskID
		}{{ruled, task.SubmitOptions{}, "ruled"}, {ruled, task.SubmitOptions{ID: "given"}, "given"}} {
			for i, key := range []string{"k1", "k1", "k2", "k1", "k2"} {
				row.o.RequestKey = key
				f, err := node.Submit(within(t), row.b, []byte("1"), row.o)
				if repeats := i == 1 || i > 2; err != nil || f.ID() != row.want || f.Repeated() != repeats || f.Joined() != (i > 0) {
					t.Fatalf("submit %d: %s; want task %s, repeated %t", i, submitted{f, err}, row.want, repeats)
				}
				if i == 0 || i == 2 {
					j.next(t).succeed("1")
					want(t, f, "1")
				}
			}
			j.nothing(t)
		}
	})
}

// planned is a job whose rules say what is planned.
type planned struct {
	*job
	plan task.Plan
}

func (p *planned) Plan([]byte, time.Time) (task.Plan, error) { return p.plan, nil }
