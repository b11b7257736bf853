package integration_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// probe asserts that others go on as ever.
func probe(t *testing.T, to behaviors.Client) {
	t.Helper()
	f, err := builtin.Noop().Submit(within(t, soon), to, behaviors.None{})
	if err != nil {
		t.Fatalf("a harmless submit: %v", err)
	}
	want(t, f, behaviors.None{})
}

func TestBadInput_IsRefusedWithFieldAndLimitAndHarmsNobody(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		byID := behaviors.Define("by-id", &behaviors.Rules[string, string]{TaskID: idFromParams})
		late := behaviors.Define("late", &behaviors.Rules[time.Duration, string]{Delay: func(d time.Duration) time.Duration { return d }})
		echo := func(_ context.Context, p string) (string, error) { return p, nil }
		n := c.StartNode("a", nil, byID.Bind(echo), builtin.Noop(), builtin.Sleep(),
			late.Bind(func(context.Context, time.Duration) (string, error) { return "", nil }))
		client := c.StartClient("caller", nil)
		ctx := within(t, 3*soon)
		submit := func(params string, o task.SubmitOptions) error {
			return second(byID.SubmitWith(ctx, client, params, o))
		}
		raw := func(behavior, params string) (err error) {
			testcluster.Await(t, "an answer to a raw submit", func() bool {
				err = second(client.SubmitRaw(ctx, behavior, []byte(params), task.SubmitOptions{}))
				return !errors.Is(err, store.ErrUnavailable)
			})
			return err
		}
		long := strings.Repeat("x", events.MaxPayloadBytes)
		for name, test := range map[string]struct {
			err   error
			field string
			limit int64 // 0: an InvalidError
		}{
			"id with two slashes":         {submit("a/b/c", task.SubmitOptions{}), "id", 0},
			"id that is empty":            {submit("", task.SubmitOptions{}), "id", 0},
			"id that is too long":         {submit(strings.Repeat("x", 129), task.SubmitOptions{}), "id", 0},
			"id with a space, by option":  {submit("x", task.SubmitOptions{ID: "a b"}), "id", 0},
			"reserved id":                 {submit("x", task.SubmitOptions{ID: events.Settings}), "id", 0},
			"reserved affinity":           {submit("x", task.SubmitOptions{ID: "store:orders/1"}), "id", 0},
			"reserved affinity by rule":   {submit("store:orders/1", task.SubmitOptions{}), "id", 0},
			"reserved affinity, raw":      {raw("by-id", `"store:orders/1"`), "id", 0},
			"parameters over the limit":   {submit(long, task.SubmitOptions{ID: "x"}), "parameters", events.MaxPayloadBytes},
			"raw parameters over":         {raw("by-id", `"`+long+`"`), "parameters", events.MaxPayloadBytes},
			"negative priority":           {submit("x", task.SubmitOptions{Priority: -1}), "priority", events.MaxPriority},
			"absurd priority":             {submit("x", task.SubmitOptions{Priority: 1 << 62}), "priority", events.MaxPriority},
			"long request key":            {submit("x", task.SubmitOptions{RequestKey: long[:240]}), "request key", events.MaxKeyBytes},
			"request key in Latin-1":      {submit("x", task.SubmitOptions{RequestKey: "Stra\xdfe"}), "request key", 0},
			"start in a hundred years":    {submit("x", task.SubmitOptions{NotBefore: time.Now().AddDate(100, 0, 0)}), "not before", 0},
			"negative delay":              {second(late.Submit(ctx, client, -time.Second)), "delay", 0},
			"absurd delay":                {second(late.Submit(ctx, client, 1<<63-1)), "delay", 0},
			"raw behavior that is no id":  {raw("No Behavior", "1"), "behavior", 0},
			"raw parameters of the wrong": {raw("by-id", "7"), "parameters", 0},
			"raw text that is no JSON":    {raw("by-id", "{"), "parameters", 0},
			"parameters that Validate":    {second(builtin.Sleep().Submit(ctx, client, builtin.SleepParams{Duration: -1})), "parameters", 0},
			"attach to no id":             {second(byID.Attach(client, "a b").Wait(ctx)), "id", 0},
			"get of no id":                {second(client.Get(ctx, "a b")), "id", 0},
			"pause of no behavior":        {client.Operations().Pause(ctx, "No Behavior", ""), `behavior id "No Behavior"`, 0},
		} {
			invalid, isInvalid := errors.AsType[*store.InvalidError](test.err)
			limit, isLimit := errors.AsType[*task.LimitError](test.err)
			switch {
			case test.limit != 0 && (!isLimit || limit.Field != test.field || limit.Limit != test.limit):
				t.Errorf("%s: %v, want a LimitError of %s, %d", name, test.err, test.field, test.limit)
			case test.limit == 0 && (!isInvalid || invalid.Field != test.field):
				t.Errorf("%s: %v, want an InvalidError of %s", name, test.err, test.field)
			}
		}
		if err := raw("unheard-of", "1"); !errors.Is(err, task.ErrUnknownBehavior) {
			t.Errorf("raw submit of an unknown behavior: %v, want ErrUnknownBehavior", err)
		}
		for task, err := range client.List(ctx, task.Filter{}) {
			t.Errorf("task %s, %v: nothing should have been accepted", task.ID, err)
		}
		probe(t, client)
		probe(t, n)
	})
}

func TestBadInput_IDOfAnotherBehaviorIsRefused(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w, other := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams}), defineWork("other", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"), other.on("a"))
		f := w.submit(t, n, "x")
		_, err := other.Submit(within(t, soon), n, "x")
		if _, is := errors.AsType[*task.StateError](err); !is || !strings.Contains(err.Error(), "work") {
			t.Errorf("got %v, want a StateError that names the behavior", err)
		}
		w.next(t).succeed("done")
		want(t, f, "done")
	})
}

func TestUnknownBehavior_TypedSubmitWaitsForANodeThatHasIt(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, builtin.Noop())
		f := w.submit(t, n, "x")
		awaitExplained(t, n.Client, "x", task.WhyNoNode)
		probe(t, n)
		c.StartNode("b", noShards, w.on("b"))
		w.next(t).succeed("done")
		want(t, f, "done")
	})
}

func TestRawSubmit_IsPlannedByANodeThatHasTheBehavior(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{MaxAttempts: 1}})
		c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		f := submitRaw(t, client.Client, "work", `"x"`, task.SubmitOptions{})
		if f.ID() != "x" {
			t.Errorf("task %s, want that of the behavior's rule", f.ID())
		}
		w.next(t).succeed("done")
		if result, err := f.Wait(within(t, soon)); err != nil || string(result) != `"done"` {
			t.Errorf("result %s, %v", result, err)
		}
	})
}

func TestHandler_ThatMisbehavesFailsItsAttemptAndHarmsNobody(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		bad := behaviors.Define("bad", &behaviors.Rules[string, string]{Policy: task.Policy{MaxAttempts: 1}})
		n := c.StartNode("a", nil, builtin.Noop(), bad.Bind(func(_ context.Context, how string) (string, error) {
			switch how {
			case "panic":
				panic("out of order")
			case "goexit":
				runtime.Goexit()
			case "bad index":
				var none []int
				return strconv.Itoa(none[len(how)]), nil
			case "large result":
				return strings.Repeat("x", 300<<10), nil
			case "large error":
				return "", errors.New(strings.Repeat("e", 300<<10))
			case "broken text":
				return "", errors.New("\xff\xfe")
			}
			return "", errNoLuck
		}))
		client := c.StartClient("caller", nil)
		for how, code := range map[string]string{"panic": events.CodePanic, "goexit": events.CodePanic, "bad index": events.CodePanic,
			"large result": events.CodeRejected, "large error": events.CodeFailed, "broken text": events.CodeFailed} {
			f, err := bad.Submit(within(t, soon), client, how)
			ok(t, err)
			e := wantFailure(t, f, code)
			if len(e.Message) > events.MaxPayloadBytes || e.Message == "" {
				t.Errorf("%s: a message of %d bytes", how, len(e.Message))
			}
			if how == "large result" && (!strings.Contains(e.Message, "result") || !strings.Contains(e.Message, strconv.Itoa(events.MaxPayloadBytes))) {
				t.Errorf("large result: message %q, want field and limit", e.Message)
			}
			if how == "panic" && (!strings.Contains(e.Message, "out of order") || !strings.Contains(e.Message, "badinput_test.go")) {
				t.Errorf("panic: message %q, want reason and stack", e.Message)
			}
		}
		probe(t, client)
		probe(t, n)
	})
}

func TestHandler_ThatIgnoresItsContextKeepsItsSlotButNotItsTask(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	deaf := behaviors.Define("deaf", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{MaxAttempts: 1, Timeout: 50 * time.Millisecond}})
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	end := make(chan struct{})
	n := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Slots = 2 }, builtin.Noop(), w.on("a"), deaf.Bind(func(context.Context, string) (string, error) {
		<-end
		return "too late", nil
	}))
	f, err := deaf.Submit(within(t, soon), n, "x")
	ok(t, err)
	wantFailure(t, f, events.CodeTimeout)
	probe(t, n)
	other := w.submit(t, n, "y") // takes the other slot
	busy := w.next(t)
	waits, err := builtin.Noop().SubmitWith(within(t, soon), n, behaviors.None{}, task.SubmitOptions{ID: "z"})
	ok(t, err)
	awaitExplained(t, n.Client, "z", task.WhyWaiting)
	pending(t, waits)
	close(end)
	want(t, waits, behaviors.None{})
	busy.succeed("done")
	want(t, other, "done")
	wantFailure(t, deaf.Attach(n, "x"), events.CodeTimeout)
}

func TestBadInput_StoredParametersThatDoNotFitFailAsRejected(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		newer := behaviors.Define[int, string]("work", nil)
		older := behaviors.Define[string, string]("work", nil)
		n := c.StartNode("a", nil, builtin.Noop(), newer.Bind(func(context.Context, int) (string, error) { return "", nil }))
		f, err := older.Submit(within(t, soon), n, "not a number")
		ok(t, err)
		if e := wantFailure(t, f, events.CodeRejected); e.Attempt != 1 {
			t.Errorf("error %+v, want that of the first attempt: no retry can help", e)
		}
		probe(t, n)
	})
}
