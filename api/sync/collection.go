package sync

import (
	"context"
	"encoding/json"
	"errors"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/collections"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
)

// pair names a collection. Its id does not tell the two apart, since both may contain "_".
type pair struct{ source, collection string }

func (p pair) id() string { return p.source + "_" + p.collection }

// pairOf returns the collection that a schedule is of; false = it is of none.
func pairOf(s *schedule.Schedule) (pair, bool) {
	if s.Definition.Behavior != collections.Behavior {
		return pair{}, false
	}
	of, err := collections.Of(s.Definition)
	p := pair{of.Source, of.Name}
	return p, err == nil && p.id() == s.Name
}

// isFor reports whether a token is for a collection.
func isFor(by *token.Token, id string) bool {
	return by.MayBehavior(collections.Behavior) && by.MayTask(events.ScheduleRecord(id))
}

// find returns the schedule of a collection; false = there is no such collection, or the token is not for it.
func (f *front) find(ctx context.Context, by *token.Token, p pair) (schedule.Schedule, bool, error) {
	if p.source == "" || p.collection == "" || events.ValidateSchedule(p.id()) != nil || !isFor(by, p.id()) {
		return schedule.Schedule{}, false, nil
	}
	s, err := f.schedules.Get(ctx, p.id())
	if errors.Is(err, schedule.ErrNotFound) {
		return s, false, nil
	}
	is, ok := pairOf(&s)
	return s, ok && is == p, err
}

// pageOf calls do with a page of the collections whose ids begin with a prefix and that the token is for, by id: those
// after a name, "" being before all. The next page comes after next, "" = there is none.
func (f *front) pageOf(
	ctx context.Context, by *token.Token, prefix, after string, do func(pair, *schedule.Schedule),
) (next string, err error) {
	filter := schedule.Filter{Prefix: prefix, Behavior: collections.Behavior}
	some, more, err := f.schedules.List(ctx, filter, after, maxSchedules)
	for i := range some {
		s := &some[i]
		if p, is := pairOf(s); is && isFor(by, s.Name) {
			do(p, s)
		}
	}
	if more && len(some) > 0 {
		next = some[len(some)-1].Name
	}
	return next, err
}

// maxSchedules bounds the schedules of one question.
const maxSchedules = 100

// pairs returns the collections whose ids begin like those of a source, by id. It is an error if nothing is of it.
func (f *front) pairs(c *api.Call, source string) (map[string]pair, error) {
	all, found := map[string]pair{}, false
	if events.ValidateSchedule(source+"_c") != nil {
		return nil, unknown("source", source)
	}
	ctx, cancel := c.Ask()
	defer cancel()
	for after, more := "", true; more; more = after != "" {
		var err error
		after, err = f.pageOf(ctx, c.Token(), source+"_", after, func(p pair, _ *schedule.Schedule) {
			all[p.id()] = p
			found = found || p.source == source
		})
		if err != nil {
			return nil, err
		}
	}
	if found {
		return all, nil
	}
	found, err := f.kept(ctx, c.Token(), all, task.Filter{AffinityPrefix: source + "_"}, func(p pair) bool {
		return p.source == source
	})
	if err == nil && !found {
		err = unknown("source", source)
	}
	return all, err
}

// known reports whether a collection is there, or has been and has runs that are kept. It must be one of pairs, if it
// is there.
func (f *front) known(c *api.Call, pairs map[string]pair, p pair) (bool, error) {
	if pairs[p.id()] == p || events.ValidateSchedule(p.id()) != nil {
		return pairs[p.id()] == p, nil
	}
	ctx, cancel := c.Ask()
	defer cancel()
	return f.kept(ctx, c.Token(), pairs, task.Filter{Affinity: p.id()}, func(of pair) bool { return of == p })
}

// kept reports whether one of the newest runs that a filter selects is of a collection that is looked for.
func (f *front) kept(
	ctx context.Context, by *token.Token, pairs map[string]pair, filter task.Filter, is func(pair) bool,
) (bool, error) {
	filter.Behavior = collections.Behavior
	page, err := f.runs.ListPage(ctx, filter, "")
	if err != nil {
		return false, err
	}
	for i := range page.Tasks {
		t := &page.Tasks[i]
		p, err := f.pairIn(ctx, pairs, t)
		if err != nil || is(p) && isFor(by, p.id()) {
			return err == nil, err
		}
	}
	return false, silent(&page)
}

// pairIn returns the collection of a run: the one of pairs that has its affinity, or else the one that its parameters
// name, which it adds. Lists show no parameters of a run that has ended. The source is "" if nothing tells any more.
func (f *front) pairIn(ctx context.Context, pairs map[string]pair, t *task.Task) (pair, error) {
	affinity := t.ID.Affinity()
	if p, is := pairs[affinity]; is {
		return p, nil
	}
	params := t.Params
	if t.Details.ParamsElided {
		whole, err := f.runs.Get(ctx, t.ID)
		if err != nil && !errors.Is(err, task.ErrNotFound) {
			return pair{}, err
		}
		params = whole.Params
	}
	var of collections.Params
	p := pair{}
	if json.Unmarshal(params, &of) == nil && (pair{of.Source, of.Collection}).id() == affinity {
		p = pair{of.Source, of.Collection}
	}
	pairs[affinity] = p
	return p, nil
}

// present returns the collection that has an affinity now.
func (f *front) present(ctx context.Context, affinity string) (pair, error) {
	s, err := f.schedules.Get(ctx, affinity)
	p, is := pairOf(&s)
	if errors.Is(err, schedule.ErrNotFound) || err == nil && !is {
		return p, problem.New(problem.NotKept, "the parameters of the run are not kept, and no collection is %s", affinity)
	}
	return p, err
}

// unknown returns the error of a parameter that names no collection, or no source.
func unknown(name, value string) error { return invalid(name, "there is no %.64q", value) }
