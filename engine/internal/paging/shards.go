package paging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/projection/taskview"
	"taskledger/store"
	"taskledger/task"
)

// silentAfter bounds the wait for a shard, silentAgain the wait for one that was missing in the page before.
const (
	silentAfter = 3 * time.Second
	silentAgain = 300 * time.Millisecond
	// atLeast is the time for a page that begins just before ctx ends: it asks, and is not empty for lack of time
	// alone.
	atLeast = time.Millisecond
)

var errSilent = errors.New("nobody has answered in time")

// Shards asks questions that concern all shards.
type Shards struct {
	Count   int
	Cluster string // its id; "" = not known
	Now     func() time.Time
	Ready   func(ctx context.Context) error // waits until Ask can be called
	Ask     func(ctx context.Context, shard int, q command.Command) (command.Answer, error)
}

// List returns a page of the tasks that match, from a cursor on. When ctx ends before the list is through, it
// returns the page as it is, and an error: so no page of an ended ctx asks for another one.
func (s Shards) List(ctx context.Context, f task.Filter, cursor string) (page task.Page, err error) {
	if f.Limit < 0 || f.Limit > command.MaxPage {
		return page, &task.LimitError{Field: "limit", Limit: command.MaxPage, Got: int64(f.Limit)}
	}
	if field, problem := f.Problem(); problem != "" {
		return page, &store.InvalidError{Field: field, Problem: problem}
	}
	at, err := listing.ParseCursor(cursor, f, s.Count, s.Cluster)
	if err != nil {
		return page, &store.InvalidError{Field: "cursor", Problem: err.Error()}
	}
	if err := s.Ready(ctx); err != nil {
		return page, err
	}
	soon, stop := answerTimeout(ctx)
	defer stop()
	var mu sync.Mutex
	cluster := cmp.Or(s.Cluster, at.Cluster) // which a page without answers has, too
	ask := func(ctx context.Context, shard int, from listing.Place, limit, scan int) (listing.Part, error) {
		if at.Behind(shard) {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeoutCause(ctx, silentAgain, errSilent)
			defer stop()
		}
		a, err := s.ask(ctx, shard, command.ListOf(f, from, limit, scan, at.Cluster))
		if err != nil {
			return listing.Part{}, err
		}
		p, err := command.DecodePage(a.Data)
		mu.Lock()
		defer mu.Unlock()
		cluster = cmp.Or(p.Cluster, cluster)
		return p.Part, err
	}
	found := Page(soon, at.From, cmp.Or(f.Limit, 100), ask)
	page = task.Page{
		Tasks:   s.view(found.Tasks),
		Missing: found.Missing,
		Through: found.Through,
		Nexts:   found.Nexts,
		Cluster: cluster,
	}
	if found.Next != nil {
		page.Cursor = listing.Cursor{Cluster: cluster, From: found.Next}.Text(f)
	}
	if err := refusal(page.Missing); err != nil {
		return task.Page{}, err
	}
	if ctx.Err() != nil && page.Cursor != "" {
		return page, fmt.Errorf("the list is not through: %w: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	return page, nil
}

// view returns tasks as they are now for the caller.
func (s Shards) view(tasks []projection.Task) []task.Task {
	now := events.MillisOf(s.Now())
	shown := make([]task.Task, len(tasks))
	for i := range tasks {
		shown[i] = taskview.Of(&tasks[i], s.Count, now)
	}
	return shown
}

// Counts returns how many tasks of a behavior, or of each where that is "", have each status and substatus.
func (s Shards) Counts(ctx context.Context, behavior string) (all task.Counts, err error) {
	if err := s.Ready(ctx); err != nil {
		return all, err
	}
	soon, stop := answerTimeout(ctx)
	defer stop()
	counts, errs := make([][]task.Count, s.Count), make([]error, s.Count)
	var asked sync.WaitGroup
	for shard := range s.Count {
		asked.Go(func() {
			var a command.Answer
			if a, errs[shard] = s.ask(soon, shard, &command.Tally{Behavior: behavior}); errs[shard] == nil {
				counts[shard], errs[shard] = command.DecodeTallies(a.Data)
			}
		})
	}
	asked.Wait()
	for shard, err := range errs {
		if err != nil {
			all.Missing = append(all.Missing, missing(shard, err))
		}
	}
	all.Rows = task.SumCounts(slices.Concat(counts...))
	return all, refusal(all.Missing)
}

// answerTimeout bounds the wait for answers to half of the time that ctx leaves, so that the caller can still use
// what was found.
func answerTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	most := silentAfter
	if end, limited := ctx.Deadline(); limited {
		most = min(most, max(time.Until(end)/2, atLeast))
	}
	return context.WithTimeoutCause(ctx, most, errSilent)
}

// ask asks the owner of a shard. Its error names the shard.
func (s Shards) ask(ctx context.Context, shard int, q command.Command) (command.Answer, error) {
	a, err := s.Ask(ctx, shard, q)
	switch {
	case err == nil:
		err = a.Err("")
	case errors.Is(err, task.ErrNoNode):
		return a, err
	case ctx.Err() != nil:
		return a, fmt.Errorf("shard %d does not answer: %w: %w", shard, store.ErrUnavailable, context.Cause(ctx))
	}
	if err != nil {
		err = fmt.Errorf("shard %d: %w", shard, err)
	}
	return a, err
}

func missing(shard int, err error) task.Missing {
	return task.Missing{Shard: shard, Err: err, Silent: errors.Is(err, errSilent)}
}

// refusal is the error that concerns the question, and not the shards that are missing; nil for none.
func refusal(missing []task.Missing) error {
	for _, m := range missing {
		_, invalid := errors.AsType[*store.InvalidError](m.Err)
		_, limit := errors.AsType[*task.LimitError](m.Err)
		if invalid || limit || errors.Is(m.Err, task.ErrClosed) || errors.Is(m.Err, task.ErrNoNode) {
			return m.Err
		}
	}
	return nil
}
