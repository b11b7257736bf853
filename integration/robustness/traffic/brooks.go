package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/task"
	works "taskledger/work"
)

// BrookID is the behavior of streams: a brook has no end, and each run has the changes up to the next bend.
const BrookID = history.Brook

// bend is the number of changes of a run of a brook.
const bend = 24

// drop is the value of a change of a brook.
type drop struct {
	Place  int64 `json:"place"`
	Millis int   `json:"millis,omitempty"`
	Fails  int   `json:"fails,omitempty"` // attempts on it that fail where it is held
}

type brook = works.Change[drop]

// newBrook returns the behavior of a process.
func newBrook(begin int64, report func(Report)) *errand[brook] {
	think := works.Stream[Params, drop]{
		ID:      "think",
		Mode:    works.Simulate,
		Changes: drops,
		Process: catch,
		Threads: 2,
		Rules: []works.Rule{
			{Code: "later", React: works.RetryLater},
			{Code: "goon", React: works.GoOn},
		},
	}
	do := think
	do.ID, do.Mode, do.Threads = "do", works.Full, 3
	policy := &works.Options{Policy: workPolicy()}
	return &errand[brook]{works.DefineStream(BrookID, policy, think, do), begin, report}
}

// drops returns the changes behind a token. Sources fail in the first attempts of a task, as often as its parameters say,
// once a few changes came.
func drops(ctx context.Context, p Params, token string) iter.Seq2[brook, error] {
	info, _ := works.Run(ctx)
	from, _ := strconv.ParseInt(token, 10, 64)
	return func(yield func(brook, error) bool) {
		for place := from + 1; place <= from+bend-from%bend; place++ {
			if place == from+4 && info.Attempt <= p.Fails {
				yield(brook{}, errors.New("as planned"))
				return
			}
			c := brook{
				Key:   history.BrookKey(uint64(place)),
				Token: strconv.FormatInt(place, 10),
				Value: drop{
					Place:  place,
					Millis: p.Millis,
					Fails:  p.Fails,
				},
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// catch works on a change: some of them fail, some are left out, and some fail until they are retried later.
func catch(ctx context.Context, c brook) error {
	timer := time.NewTimer(time.Duration(c.Value.Millis) * time.Millisecond / 4)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch c.Value.Place % 11 {
	case 3:
		if tries := heldTries(ctx); tries <= c.Value.Fails {
			return behaviors.Code("later", errors.New("as planned"), nil)
		}
	case 6:
		return behaviors.Code("goon", errors.New("as planned"), nil)
	case 9:
		return works.Skip("as planned")
	}
	return nil
}

type triesKey struct{}

// heldTries returns the number of an attempt on changes that are held; 0 = the stream makes it.
func heldTries(ctx context.Context) int {
	tries, _ := ctx.Value(triesKey{}).(int)
	return tries
}

// withTries has heldTries know of an attempt.
func withTries(ctx context.Context, a task.Attempt) context.Context {
	var told struct {
		Hold events.TaskID `json:"hold_of"`
	}
	if json.Unmarshal(a.Params, &told) != nil || told.Hold == "" {
		return ctx
	}
	return context.WithValue(ctx, triesKey{}, a.Failures+1)
}
