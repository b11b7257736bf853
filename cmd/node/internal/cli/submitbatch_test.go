package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"taskledger/cmd/node/internal/operations"
	"taskledger/cmd/node/internal/requests"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/task"
)

// picky is a cluster that refuses requests by their ids, and submits none of one key while it refuses one of them.
type picky struct {
	operations.Submitter
	refuses  map[events.TaskID]error
	asked    [][]events.TaskID
	deadline time.Time
}

type submitted struct {
	operations.Handle
	id events.TaskID
}

func (s submitted) ID() events.TaskID { return s.id }
func (submitted) Joined() bool        { return false }
func (submitted) Repeated() bool      { return false }

func (p *picky) SubmitMany(ctx context.Context, all []task.Request, o task.ManyOptions) (results []operations.Submitted) {
	p.deadline, _ = ctx.Deadline()
	var ids []events.TaskID
	var first error
	for _, q := range all {
		ids = append(ids, q.ID)
		if err := p.refuses[q.ID]; first == nil && err != nil {
			first = fmt.Errorf("%w: %w", task.ErrNoneSubmitted, err)
		}
	}
	for _, q := range all {
		err := p.refuses[q.ID]
		if err == nil && o.RequestKey != "" {
			err = first
		}
		results = append(results, operations.Submitted{Handle: submitted{id: q.ID}, Err: err})
	}
	p.asked = append(p.asked, ids)
	return results
}

// lines are requests with the ids a, b and c.
func lines() (all []requests.Line) {
	for i, id := range []events.TaskID{"a", "b", "c"} {
		all = append(all, requests.Line{Number: i + 1, Request: task.Request{Name: "noop", SubmitOptions: engine.SubmitOptions{ID: id}}})
	}
	return all
}

func TestSubmit_OfABatchWithAKeyLeavesOutWhatIsWrong(t *testing.T) {
	refused := &engine.InvalidError{Field: "params", Problem: "none"}
	for name, row := range map[string]struct {
		refuses map[events.TaskID]error
		want    [][]events.TaskID
	}{
		"refused":                  {map[events.TaskID]error{"b": refused}, [][]events.TaskID{{"a", "b", "c"}, {"a", "c"}}},
		"of no behavior":           {map[events.TaskID]error{"a": engine.ErrUnknownBehavior}, [][]events.TaskID{{"a", "b", "c"}, {"b", "c"}}},
		"all":                      {map[events.TaskID]error{"a": refused, "b": refused, "c": refused}, [][]events.TaskID{{"a", "b", "c"}}},
		"none":                     {nil, [][]events.TaskID{{"a", "b", "c"}}},
		"not to be planned by now": {map[events.TaskID]error{"b": &engine.OverloadError{}}, [][]events.TaskID{{"a", "b", "c"}}},
	} {
		var out bytes.Buffer
		a, p := &app{Program: Program{Out: &out}, output: "table"}, &picky{refuses: row.refuses}
		if err := a.submitBatch(t.Context(), p, submitOptions{key: "k", skipBad: true}, lines()); (err == nil) != (row.refuses == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.EqualFunc(p.asked, row.want, slices.Equal) {
			t.Errorf("%s: submitted %v, want %v", name, p.asked, row.want)
		}
	}
}

func TestSubmit_OfABatchTakesAsLongAsTheTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: answerWithin, time.Second: time.Second, 5 * time.Minute: 5 * time.Minute} {
		var out bytes.Buffer
		a, p := &app{Program: Program{Out: &out}, output: "table"}, &picky{}
		a.access.timeout = timeout
		began := time.Now()
		if err := a.submitBatch(t.Context(), p, submitOptions{}, lines()); err != nil {
			t.Fatal(err)
		}
		if got := p.deadline.Sub(began); got < want || got > want+time.Minute {
			t.Errorf("with --timeout %s it may take %s", timeout, got)
		}
	}
}
