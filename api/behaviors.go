package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"taskledger/api/operations"
	"taskledger/api/problem"

	"taskledger/events"
	"taskledger/task"
)

// Behaviors counts the tasks, and lists the behaviors that are paused.
type Behaviors struct {
	Counts  []task.Count `json:"counts"`
	Paused  []task.Pause `json:"paused"`
	Missing []Missing    `json:"missing,omitempty"` // shards whose tasks are not counted
	// Partial says that only the newest tasks are counted: all are too many for a token with a prefix.
	Partial bool `json:"partial,omitempty"`
}

// behaviors serves the routes that count and pause behaviors.
type behaviors struct {
	reader   operations.Reader
	observer operations.Observer
	operator operations.Operator
	kept     *keptCounts
}

func (s behaviors) list(c *Call) error {
	var counts task.Counts
	var partial bool
	of := c.Param("behavior")
	err := atMost("behavior", len(of), events.MaxBehaviorBytes)
	switch {
	case err != nil:
	case c.by.Prefix == "":
		counts, err = s.reader.Counts(c.ctx, of)
	default:
		counts, partial, err = s.countListed(c, of)
	}
	if err != nil {
		return err
	}
	paused, err := s.observer.Settings(c.ctx)
	if err != nil {
		return err
	}
	answer := Behaviors{
		Counts:  []task.Count{},
		Paused:  []task.Pause{},
		Missing: missing(counts.Missing),
		Partial: partial,
	}
	its := map[string]bool{}
	for _, n := range counts.Rows {
		if c.by.MayBehavior(n.Behavior) && (of == "" || n.Behavior == of) {
			its[n.Behavior] = true
			answer.Counts = append(answer.Counts, n)
		}
	}
	for _, p := range paused.Paused {
		if !c.by.MayBehavior(p.Behavior) || of != "" && p.Behavior != of || c.by.Prefix != "" && !its[p.Behavior] {
			continue
		}
		if c.by.Limited() { // the operator and the reason concern the whole cluster
			p.By, p.Reason = "", ""
		}
		answer.Paused = append(answer.Paused, p)
	}
	return c.JSON(http.StatusOK, answer)
}

const (
	// maxCounted bounds the pages that are listed to count tasks. After countWithin, or half of the time that the request
	// has left, no further page is asked for: an answer has time for one that waits for a shard.
	maxCounted  = 200
	countWithin = 1500 * time.Millisecond
)

// countListed lists the tasks of the token's prefix, and of one behavior where that is not "", to count them: owners
// keep no counts by prefix. A slow count is kept for a moment. It reports whether it has left some tasks out.
func (s behaviors) countListed(c *Call, behavior string) (counts task.Counts, partial bool, err error) {
	if is, found := s.kept.get(c.by, behavior); found {
		return is.counts, is.partial, nil
	}
	f, _ := narrowed(task.Filter{Behavior: behavior, Limit: 1000}, c.by.Prefix, c.by.Behaviors)
	begun := time.Now()
	within := countWithin
	if last, ends := c.ctx.Deadline(); ends {
		within = min(within, time.Until(last)/2)
	}
	counting, cancel := context.WithTimeout(c.ctx, within)
	defer cancel()
	cursor := ""
	for n := range maxCounted {
		waiting := counting
		if n == 0 { // without a first page there is no answer
			waiting = c.ctx
		}
		switch err := c.enter(waiting); { // a page is large, though the counts are not
		case err != nil && n == 0:
			return counts, false, err
		case err != nil:
			return counts, true, nil
		}
		page, err := s.reader.ListPage(c.ctx, f, cursor)
		c.leave()
		if err != nil {
			return counts, false, err
		}
		addPage(&counts, &page)
		cursor = page.Cursor
		if partial = !page.Through && cursor != ""; !partial || counting.Err() != nil {
			break
		}
	}
	s.kept.put(c.by, behavior, counts, partial, begun)
	return counts, partial, nil
}

// addPage counts the tasks of a page.
func addPage(counts *task.Counts, page *task.Page) {
	for i := range page.Tasks {
		t := &page.Tasks[i]
		counts.Rows = append(counts.Rows, task.Count{
			Behavior:  t.Behavior,
			Status:    t.Status,
			Substatus: t.Substatus,
			Tasks:     1,
		})
	}
	counts.Rows = task.SumCounts(counts.Rows)
	for _, m := range page.Missing {
		same := func(other task.Missing) bool { return other.Shard == m.Shard }
		if !slices.ContainsFunc(counts.Missing, same) {
			counts.Missing = append(counts.Missing, m)
		}
	}
}

// PauseRequest gives the reason to pause a behavior.
type PauseRequest struct {
	Reason
	Force bool `json:"force,omitempty"` // also a behavior that no node runs yet
}

// pause returns the handler that pauses a behavior, or lets it go on.
func (s behaviors) pause(verb operations.Verb) func(*Call) error {
	return func(c *Call) error {
		var p PauseRequest
		if err := c.ReadOptional(&p); err != nil {
			return err
		}
		if err := checkReason(p.Reason.Reason); err != nil {
			return err
		}
		behavior := c.r.PathValue("behavior")
		if err := checkBehavior(behavior); err != nil {
			return err
		}
		if !p.Force { // a mistyped name must not be taken silently
			if err := s.known(c, verb, behavior); err != nil {
				return err
			}
		}
		if _, err := s.operator.Operate(c.ctx, verb, behavior, p.Reason.Reason); err != nil {
			return err
		}
		return c.Done()
	}
}

// known refuses a behavior that no node runs. One that is paused goes on nevertheless.
func (s behaviors) known(c *Call, verb operations.Verb, behavior string) error {
	nodes, err := s.observer.Nodes(c.ctx)
	if err != nil || operations.Runs(nodes, behavior) {
		return err
	}
	if verb == operations.Pause {
		return problem.New(problem.UnknownBehavior,
			"no node runs %s; with force it is paused before it is deployed", behavior)
	}
	now, err := s.observer.Settings(c.ctx)
	is := func(p task.Pause) bool { return p.Behavior == behavior }
	if err != nil || slices.ContainsFunc(now.Paused, is) {
		return err
	}
	return problem.New(problem.UnknownBehavior, "no node runs %s, and it is not paused", behavior)
}
