package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// requests are n of a job, each with its number as parameters.
func requests(j task.Behavior, n int, o task.SubmitOptions) []task.Request {
	all := make([]task.Request, n)
	for i := range all {
		all[i] = task.Request{Behavior: j, Params: fmt.Append(nil, i), SubmitOptions: o}
	}
	return all
}

func TestSubmitMany_TellsWhatBecameOfEach(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		other := &renamed{j, "other-job"}
		rows := []struct {
			task.Request
			joined bool
			wrong  any // what the error is
		}{
			{task.Request{Behavior: j}, false, nil},
			{task.Request{Name: "job"}, false, nil},
			{task.Request{Name: "no-such"}, false, task.ErrUnknownBehavior},
			{task.Request{Name: "No Such"}, false, new(*store.InvalidError)},
			{task.Request{Behavior: j, SubmitOptions: task.SubmitOptions{ID: "a b"}}, false, new(*store.InvalidError)},
			{task.Request{Behavior: j, Params: make([]byte, events.MaxPayloadBytes+1)}, false, new(*task.LimitError)},
			{task.Request{Behavior: j, SubmitOptions: task.SubmitOptions{ID: "x/1"}}, false, nil},
			{task.Request{Behavior: j, SubmitOptions: task.SubmitOptions{ID: "x/1"}}, true, nil},
			{task.Request{Behavior: other, SubmitOptions: task.SubmitOptions{ID: "x/1"}}, false, new(*task.StateError)},
			{task.Request{Behavior: j, SubmitOptions: task.SubmitOptions{Priority: -1}}, false, new(*task.LimitError)},
		}
		asked := make([]task.Request, len(rows))
		for i := range rows {
			asked[i] = rows[i].Request
		}
		all := c.nodes[0].SubmitMany(within(t), asked, task.ManyOptions{})
		if len(all) != len(rows) {
			t.Fatalf("%d results of %d requests", len(all), len(rows))
		}
		for range 3 {
			j.next(t).succeed("1")
		}
		for i, r := range all {
			if is, _ := rows[i].wrong.(error); is != nil && !errors.Is(r.Err, is) || is == nil && rows[i].wrong != nil && !errors.As(r.Err, rows[i].wrong) {
				t.Errorf("request %d: %v, want %T", i, r.Err, rows[i].wrong)
			}
			if rows[i].wrong != nil {
				if _, err := r.Wait(within(t)); err != r.Err {
					t.Errorf("request %d: its future says %v, want %v", i, err, r.Err)
				}
				continue
			}
			if r.Err != nil || r.Joined() != rows[i].joined || rows[i].ID != "" && r.ID() != rows[i].ID {
				t.Errorf("request %d: task %s, joined %t, %v", i, r.ID(), r.Joined(), r.Err)
				continue
			}
			want(t, r.Future, "1")
		}
		wantHistory(t, c.nodes[0].Client, "x/1", "Created Started Succeeded")
	})
}

func TestSubmitMany_OfOneKeyIsOneRequest(t *testing.T) {
	t.Parallel()
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		later := task.SubmitOptions{Delay: time.Hour}
		asked := requests(j, events.MaxRequestTasks, later)
		under := task.ManyOptions{RequestKey: "import 7"}
		id := events.TaskOfRequest("service", "job", under.RequestKey)
		for try := range 2 {
			for i, r := range c.nodes[try].SubmitMany(within(t), asked, under) {
				if named := id + events.TaskID(fmt.Sprint("/", i)); r.Err != nil || r.ID() != named || r.Repeated() != (try > 0) {
					t.Fatalf("try %d: request %d is task %s, repeated %t, %v; want %s", try, i, r.ID(), r.Repeated(), r.Err, named)
				}
			}
		}
		entries := map[uint64]bool{}
		for i := range asked {
			created, err := c.nodes[0].GetLinear(within(t), id+events.TaskID(fmt.Sprint("/", i)))
			if err != nil || created.Details.Seq != 1 {
				t.Fatalf("task %d has %d events, want one: %v", i, created.Details.Seq, err)
			}
			entries[created.Details.Life.Entry()] = true
		}
		if len(entries) > 2 { // a batch has room for most of them
			t.Errorf("the tasks are in %d entries, want 2 at most", len(entries))
		}
		for name, change := range map[string]func() []task.Request{
			"fewer":         func() []task.Request { return asked[1:] },
			"one":           func() []task.Request { return asked[:1] },
			"another order": func() []task.Request { all := slices.Clone(asked); slices.Reverse(all); return all },
			"another one":   func() []task.Request { all := slices.Clone(asked); all[999].Priority = 3; return all },
			"after fewer":   func() []task.Request { return asked[:999] },
		} {
			for i, r := range c.nodes[1].SubmitMany(within(t), change(), under) {
				if !errors.Is(r.Err, task.ErrOtherRequest) || !strings.Contains(r.Err.Error(), `"import 7"`) {
					t.Fatalf("%s: request %d: %v, want it refused with the key", name, i, r.Err)
				}
			}
		}
		if s := request(t, j, c.nodes[0].Client, "0", task.SubmitOptions{RequestKey: under.RequestKey, Delay: time.Hour}); !errors.Is(s.err, task.ErrOtherRequest) {
			t.Errorf("a single request of the key: %s, want it refused", s)
		}
		single := request(t, j, c.nodes[0].Client, "0", task.SubmitOptions{RequestKey: "single", Delay: time.Hour})
		wantTask(t, single, events.TaskOfRequest("service", "job", "single"), false)
		for i, r := range c.nodes[1].SubmitMany(within(t), asked[:3], task.ManyOptions{RequestKey: "single"}) {
			if !errors.Is(r.Err, task.ErrOtherRequest) {
				t.Errorf("request %d of many with the key of a single one: %v, want it refused", i, r.Err)
			}
		}
	})
}

func TestSubmitMany_SubmitsNoneThatAreTooManyOrOfOneKeyOrAllValidWhenOneIsNot(t *testing.T) {
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		good := requests(j, 3, task.SubmitOptions{})
		with := func(q task.Request) []task.Request { return append(slices.Clone(good), q) }
		for name, row := range map[string]struct {
			all  []task.Request
			o    task.ManyOptions
			says string
		}{
			"too many":      {requests(j, 1001, task.SubmitOptions{}), task.ManyOptions{}, "requests: 1001 exceeds the limit of 1000"},
			"all valid":     {with(task.Request{Behavior: j, SubmitOptions: task.SubmitOptions{ID: "a b"}}), task.ManyOptions{AllValid: true}, "none is submitted: request 3: id"},
			"no UTF-8":      {with(task.Request{Behavior: j, Params: []byte("\"\xff\"")}), task.ManyOptions{AllValid: true}, "none is submitted: request 3: parameters: no UTF-8"},
			"of a key":      {with(task.Request{Name: "no-such"}), task.ManyOptions{RequestKey: "k"}, "none is submitted: request 3: unknown behavior"},
			"two keys":      {with(task.Request{Behavior: j, SubmitOptions: task.SubmitOptions{RequestKey: "own"}}), task.ManyOptions{RequestKey: "k"}, "request 3 has one of its own"},
			"twice a task":  {requests(j, 2, task.SubmitOptions{ID: "x"}), task.ManyOptions{RequestKey: "k"}, "requests 0 and 1 of one key name task x"},
			"too long":      {good, task.ManyOptions{RequestKey: strings.Repeat("k", events.MaxKeyBytes+1)}, "request key: 240 exceeds the limit of 239"},
			"no text":       {good, task.ManyOptions{RequestKey: "\xff"}, "request key: no UTF-8"},
			"wrong caller":  {good, task.ManyOptions{}, ""},
			"nobody at all": {nil, task.ManyOptions{}, ""},
			"none of a key": {[]task.Request{}, task.ManyOptions{RequestKey: "k", AllValid: true}, ""},
		} {
			ctx := within(t)
			if name == "wrong caller" {
				ctx = engine.WithCaller(ctx, events.Caller{Principal: strings.Repeat("p", 257)})
				row.says = "caller: principal of 257 bytes"
			}
			results := c.nodes[0].SubmitMany(ctx, row.all, row.o)
			if len(results) != len(row.all) {
				t.Errorf("%s: %d results of %d", name, len(results), len(row.all))
			}
			for i, r := range results {
				if i == 3 && strings.HasPrefix(row.says, "none is submitted: request 3: ") { // it is to blame
					if _, says, _ := strings.Cut(row.says, "request 3: "); errors.Is(r.Err, task.ErrNoneSubmitted) || r.Err == nil || !strings.HasPrefix(r.Err.Error(), says) {
						t.Errorf("%s: request %d: %v, want %q", name, i, r.Err, says)
					}
					continue
				}
				if r.Err == nil || !strings.Contains(r.Err.Error(), row.says) {
					t.Fatalf("%s: request %d: %v, want %q", name, i, r.Err, row.says)
				}
			}
		}
		j.nothing(t)
	})
}

// The tasks were made, and who asked for them gave up before it heard of that. Meanwhile one goroutine waits for all.
func TestSubmitMany_WaitsInOneGoroutineAndTellsWhatIsNotKnown(t *testing.T) {
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
		const n = 500
		asked, under := requests(j, n, task.SubmitOptions{Delay: time.Hour}), task.ManyOptions{RequestKey: "k"}
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		done := make(chan []engine.Result, 1)
		running := engine.StartedBy(t, func() {
			go func() { done <- lost.SubmitMany(ctx, asked, under) }()
		})
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if got := running(); got != 1 {
			t.Errorf("%d goroutines while %d requests wait, want the one that submits", got, n)
		}
		cancel()
		for i, r := range <-done {
			if !errors.Is(r.Err, task.ErrUnknown) || r.ID() == "" {
				t.Fatalf("request %d: task %q, %v; want its name, and that its fate is unknown", i, r.ID(), r.Err)
			}
		}
		for i, r := range c.nodes[0].SubmitMany(within(t), asked, under) {
			if r.Err != nil || !r.Repeated() {
				t.Fatalf("request %d again: repeated %t, %v", i, r.Repeated(), r.Err)
			}
		}
	})
}

func TestSubmitMany_CombinesParametersInTurn(t *testing.T) {
	t.Parallel()
	inService(t, task.Policy{}, func(t *testing.T, c *modelled, j *job) {
		a := &adder{j}
		c.start("adding", 0, func(config *cfg) { config.Name = "service" }, &renamedAdder{a}).ready(t)
		all := requests(&renamedAdder{a}, 40, task.SubmitOptions{ID: "sum", Delay: time.Minute})
		for i, r := range c.nodes[0].SubmitMany(within(t), all, task.ManyOptions{}) {
			if r.Err != nil {
				t.Errorf("request %d: %v", i, r.Err)
			}
		}
		r := j.next(t)
		if want := "780"; string(r.Params) != want { // 0 + 1 + ... + 39
			t.Errorf("the parameters are %s, want %s", r.Params, want)
		}
		r.succeed("1")
	})
}

// renamedAdder is an adder of another id.
type renamedAdder struct{ *adder }

func (r *renamedAdder) ID() string { return "adder" }
