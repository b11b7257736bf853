package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/task"
)

// The clocks of those who submit are wrong, by less than what they are refused for. A request of a key is the same
// from all of them.
func TestDelay_IsSoLongAfterTheSubmitWhateverTheClockOfTheSubmitterShows(t *testing.T) {
	const delay = 4 * time.Second
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		ruled := &planned{j, task.Plan{Delay: delay}}
		o := task.SubmitOptions{Delay: delay}
		named := func(name string, n *modelledNode) events.TaskID {
			return events.TaskID(fmt.Sprint(name, "-", n.ahead.Load()))
		}
		for _, ahead := range []time.Duration{-10 * time.Second, 10 * time.Second} {
			n := c.start(fmt.Sprint("wrong", ahead.Seconds()), ahead, func(config *cfg) { config.Name, config.Owner = "service", new(bool) })
			for name, submit := range map[string]func(id events.TaskID) (*engine.Future, error){
				"option": func(id events.TaskID) (*engine.Future, error) {
					return n.Submit(within(t), j, nil, task.SubmitOptions{ID: id, Delay: delay})
				},
				"rule": func(id events.TaskID) (*engine.Future, error) {
					return n.Submit(within(t), ruled, nil, task.SubmitOptions{ID: id})
				},
				"name": func(id events.TaskID) (*engine.Future, error) {
					return n.SubmitRaw(within(t), "job", nil, task.SubmitOptions{ID: id, Delay: delay})
				},
				"many": func(id events.TaskID) (*engine.Future, error) {
					r := n.SubmitMany(within(t), []task.Request{{Behavior: j, SubmitOptions: task.SubmitOptions{ID: id, Delay: delay}}}, task.ManyOptions{})[0]
					return r.Future, r.Err
				},
			} {
				id := named(name, n)
				if _, err := submit(id); err != nil {
					t.Fatalf("%s: %v", id, err)
				}
				got, err := n.GetLinear(context.Background(), id)
				if wait := got.Due() - got.CreatedAt; err != nil || time.Duration(wait)*time.Millisecond != delay {
					t.Errorf("%s waits for %d ms, want %s; %v", id, wait, delay, err)
				}
			}
			o.RequestKey = "k"
			again := request(t, j, n.Client, "1", o)
			wantTask(t, again, again.ID(), ahead > 0)
		}
	})
}

// A submit by name is planned where the behavior is: what its rule says is a wait there, too.
func TestDelay_OfARuleIsAWaitWhereANodePlans(t *testing.T) {
	for _, bus := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := newModelled(t, bus)
			c.start("a", -10*time.Second, func(config *cfg) { config.Owner = new(bool) }, &planned{newJob(task.Policy{}), task.Plan{Delay: time.Minute}})
			owner := c.start("owner", 0, nil)
			owner.ready(t)
			if _, err := owner.SubmitRaw(within(t), "job", nil, task.SubmitOptions{ID: "x"}); err != nil {
				t.Fatal(err)
			}
			got, err := owner.GetLinear(within(t), "x")
			if wait := got.Due() - got.CreatedAt; err != nil || wait != 60_000 {
				t.Errorf("waits for %d ms, want a minute; %v", wait, err)
			}
		})
	}
}
