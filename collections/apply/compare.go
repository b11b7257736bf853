package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"taskledger/collections"
	"taskledger/schedule"
)

// Comparison says what becomes of the collections of a cluster by a file, as they were when it was made.
type Comparison struct {
	File     File
	Changes  []collections.Change // of each id that is there or wanted, in their order
	Warnings []string             // of the removal of all, of what nodes lack, and of schedules that are left as they are

	seen map[string]schedule.Version // by id; schedule.Absent for one that was not there
	last int64                       // id of the newest item of the record; 0 = none
	// taken reports that the key for the next item was used, though there is none.
	taken bool
}

// pageSchedules bounds the schedules of one question.
const pageSchedules = 100

// Compare compares the collections of the cluster with those of a file, and asks the nodes what they have of what the
// file needs. It changes nothing. It returns a *RefusedError that tells all collections whose id another schedule has,
// or which no node can run, or for which a shard has no room beside the others of the file; an error that wraps
// task.ErrUnknownBehavior if no live node runs collections, and one that wraps store.ErrUnavailable and task.ErrNoNode
// if no node is alive; and those of engine.Schedules and engine.Operations.
func (a *Applier) Compare(ctx context.Context, file File) (*Comparison, error) {
	if err := a.checkRoom(ctx, &file); err != nil {
		return nil, err
	}
	warnings, err := a.askNodes(ctx, file.Collections)
	if err != nil {
		return nil, err
	}
	c, err := a.compare(ctx, file)
	if err != nil {
		return nil, err
	}
	c.Warnings = slices.Concat(c.emptied(), warnings, c.Warnings)
	return c, nil
}

// compare is Compare without a question to nodes.
func (a *Applier) compare(ctx context.Context, file File) (*Comparison, error) {
	record, err := a.record(ctx) // before anything else: what is recorded later may have changed what is read
	if err != nil {
		return nil, err
	}
	c := &Comparison{File: file, seen: map[string]schedule.Version{}, last: record.last()}
	was, others, err := a.read(ctx, c.seen)
	if err != nil {
		return nil, err
	}
	refused := &RefusedError{}
	for _, id := range others {
		if file.find(id) == nil {
			c.Warnings = append(c.Warnings, "schedule "+id+" is of no collection, and is left as it is: "+notOfAFile)
		} else {
			refused.Problems = append(refused.Problems, id+": there is a schedule of this name, and "+notOfAFile)
		}
	}
	c.Changes = collections.Diff(was, file.Collections)
	if err := a.checkAdded(ctx, c, refused); err != nil {
		return nil, err
	}
	for i := range c.Changes {
		if err := otherPair(&c.Changes[i]); err != nil {
			refused.Problems = append(refused.Problems, err.Error())
		}
	}
	if len(refused.Problems) > 0 {
		slices.Sort(refused.Problems)
		refused.Problems = slices.Compact(refused.Problems)
		return nil, refused
	}
	return c, nil
}

const notOfAFile = "its definition is none that a file makes"

// find returns the collection of an id, nil if the file has none.
func (f *File) find(id string) *collections.Collection {
	i, found := slices.BinarySearchFunc(f.Collections, id, func(c collections.Collection, id string) int {
		return cmp.Compare(c.ID(), id)
	})
	if !found {
		return nil
	}
	return &f.Collections[i]
}

// read returns the collections of the cluster, with the names of schedules of their behavior that are of none, and
// notes the versions.
func (a *Applier) read(
	ctx context.Context, seen map[string]schedule.Version,
) (was []collections.Collection, others []string, err error) {
	filter := schedule.Filter{Behavior: collections.Behavior}
	for after := ""; ; {
		some, more, err := a.Schedules.List(ctx, filter, after, pageSchedules)
		if err != nil {
			return nil, nil, fmt.Errorf("read the collections of the cluster: %w", err)
		}
		for i := range some {
			s := &some[i]
			after = s.Name
			c, is := collectionOf(s)
			if !is {
				others = append(others, s.Name)
				continue
			}
			was = append(was, c)
			seen[s.Name] = s.Version
		}
		if !more || len(some) == 0 {
			return was, others, nil
		}
	}
}

// collectionOf returns the collection that a schedule is of; false = it is of none.
func collectionOf(s *schedule.Schedule) (collections.Collection, bool) {
	if s.Definition.Behavior != collections.Behavior {
		return collections.Collection{}, false
	}
	c, err := collections.Of(s.Definition)
	return c, err == nil && c.ID() == s.Name
}

// checkAdded looks for schedules of other behaviors where collections are to be added.
func (a *Applier) checkAdded(ctx context.Context, c *Comparison, refused *RefusedError) error {
	var added []int
	for i := range c.Changes {
		if c.Changes[i].What == collections.Added {
			added = append(added, i)
		}
	}
	problems := make([]string, len(added))
	seen := make([]schedule.Version, len(added))
	err := atOnce(ctx, len(added), func(ctx context.Context, n int) error {
		change := &c.Changes[added[n]]
		is, version, err := a.compareOne(ctx, &c.File, change.ID)
		if r, is := errors.AsType[*RefusedError](err); is {
			problems[n] = r.Problems[0]
			return nil
		}
		*change, seen[n] = is, version
		return err
	})
	for n, i := range added {
		if seen[n] != 0 {
			c.seen[c.Changes[i].ID] = seen[n]
		}
		if problems[n] != "" {
			refused.Problems = append(refused.Problems, problems[n])
		}
	}
	return err
}

// gone says that a collection is neither there nor wanted.
const gone collections.What = ""

// compareOne compares the collection of an id anew.
func (a *Applier) compareOne(
	ctx context.Context, file *File, id string,
) (change collections.Change, seen schedule.Version, err error) {
	change.ID = id
	want := file.find(id)
	s, err := a.Schedules.Get(ctx, id)
	switch {
	case errors.Is(err, schedule.ErrNotFound) && want == nil:
		return change, schedule.Absent, nil
	case errors.Is(err, schedule.ErrNotFound):
		change.What = collections.Added
		return change, schedule.Absent, nil
	case err != nil:
		return change, 0, err
	}
	was, is := collectionOf(&s)
	switch {
	case !is && s.Definition.Behavior != collections.Behavior:
		const problem = "%s: there is a schedule of this name, of behavior %s"
		return change, 0, &RefusedError{[]string{fmt.Sprintf(problem, id, s.Definition.Behavior)}}
	case !is:
		return change, 0, &RefusedError{[]string{id + ": there is a schedule of this name, and " + notOfAFile}}
	case want == nil:
		change.What = collections.Removed
		return change, s.Version, nil
	}
	change = collections.Diff([]collections.Collection{was}, []collections.Collection{*want})[0]
	return change, s.Version, otherPair(&change)
}

// otherPair refuses a change that would give the history of one collection to another, whose source and name spell the
// same id.
func otherPair(change *collections.Change) error {
	source, name := "", ""
	for _, f := range change.Fields {
		switch f.Field {
		case "source":
			source = f.Was
		case "name":
			name = f.Was
		}
	}
	if source == "" {
		return nil
	}
	const problem = "%s: the cluster has a collection of this id, %q of source %q: apply a file without it first"
	return &RefusedError{[]string{fmt.Sprintf(problem, change.ID, name, source)}}
}
