package engine_test

import (
	"errors"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/task"
)

// submitters returns the ways to submit a job.
func submitters(t *testing.T, n *modelledNode, j *job) map[string]func(o task.SubmitOptions) (*engine.Future, error) {
	t.Helper()
	many := func(o task.SubmitOptions) (*engine.Future, error) {
		r := n.SubmitMany(within(t), []task.Request{{Behavior: j, SubmitOptions: o}}, task.ManyOptions{})[0]
		return r.Future, r.Err
	}
	return map[string]func(o task.SubmitOptions) (*engine.Future, error){
		"typed": func(o task.SubmitOptions) (*engine.Future, error) { return n.Submit(within(t), j, nil, o) },
		"name":  func(o task.SubmitOptions) (*engine.Future, error) { return n.SubmitRaw(within(t), "job", nil, o) },
		"many":  many,
	}
}

func TestSubmit_OptionsOverrideThePolicyForOneTask(t *testing.T) {
	policy := task.Policy{MaxAttempts: 3, Timeout: time.Hour, Retain: time.Hour}
	inService(t, policy, func(t *testing.T, c *modelled, j *job) {
		n := c.start("submitter", 0, func(config *cfg) { config.Name, config.Owner = "service", new(bool) })
		for name, submit := range submitters(t, n, j) {
			id := events.TaskID("one/" + name)
			f, err := submit(task.SubmitOptions{ID: id, MaxAttempts: 1, Timeout: time.Minute})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r := j.next(t)
			began := time.Now()
			<-r.ctx.Done()
			if took := time.Since(began); took < 59*time.Second || took > time.Minute {
				t.Errorf("%s: an attempt may take %s, want a minute", name, took)
			}
			if _, err := f.Wait(within(t)); err == nil {
				t.Errorf("%s: it has succeeded", name)
			}
			is, err := n.GetLinear(within(t), id)
			if err != nil || !is.Final() || is.Attempt != 1 || is.Error.Code != events.CodeTimeout {
				t.Errorf("%s: %+v, %v", name, is, err)
			}
		}
		for name, submit := range submitters(t, n, j) {
			id := events.TaskID("two/" + name)
			if _, err := submit(task.SubmitOptions{ID: id, Retain: 10 * time.Minute}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			j.next(t).succeed("1")
			time.Sleep(9 * time.Minute)
			if _, err := n.GetLinear(within(t), id); err != nil {
				t.Errorf("%s: within its retention: %v", name, err)
			}
			time.Sleep(2 * time.Minute)
			// A shard forgets with its next entry.
			if _, err := submit(task.SubmitOptions{ID: id + "-next", Retain: time.Minute}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			j.next(t).succeed("1")
			if _, err := n.GetLinear(within(t), id); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%s: after its retention: %v", name, err)
			}
		}
	})
}

func TestSubmit_ARequestOfAKeyIsAnotherOneWithOtherOverrides(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		n := c.start("submitter", 0, func(config *cfg) { config.Name, config.Owner = "service", new(bool) })
		for name, submit := range submitters(t, n, j) {
			o := task.SubmitOptions{ID: events.TaskID("keyed/" + name), RequestKey: "k", MaxAttempts: 2}
			for range 2 {
				if _, err := submit(o); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			o.MaxAttempts = 3
			if _, err := submit(o); !errors.Is(err, task.ErrOtherRequest) {
				t.Errorf("%s: with other attempts: %v", name, err)
			}
			o.RequestKey, o.MaxAttempts = "", -1
			if _, err := submit(o); err == nil {
				t.Errorf("%s: -1 attempts are taken", name)
			}
			j.next(t).succeed("1")
		}
	})
}
