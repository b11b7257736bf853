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

// rounds bounds how often all are compared because a file was recorded meanwhile.
const rounds = 5

// Done says what was changed.
type Done struct {
	Changes  []collections.Change // by id; Same for what was as it should be, or was made so by somebody else
	Recorded bool                 // false: it was the newest of the record, and nothing was changed, or not all
}

// Counts counts the changes by what became of the collections.
func (d *Done) Counts() map[collections.What]int { return counts(d.Changes) }

// Counts counts the changes by what becomes of the collections.
func (c *Comparison) Counts() map[collections.What]int { return counts(c.Changes) }

// emptied warns of a file that removes all collections that are there.
func (c *Comparison) emptied() []string {
	n := c.Counts()
	removed := n[collections.Removed]
	if removed == 0 || n[collections.Changed]+n[collections.Same] > 0 {
		return nil
	}
	has, all := "no collections", fmt.Sprintf("all %d are removed", removed)
	if len(c.File.Collections) > 0 {
		has = "none of the collections that are there"
	}
	if removed == 1 {
		all = "the only one is removed"
	}
	return []string{has + ": " + all}
}

func counts(all []collections.Change) map[collections.What]int {
	n := map[collections.What]int{}
	for i := range all {
		n[all[i].What]++
	}
	return n
}

// Apply makes the collections those of the file, and records it. What has changed since the comparison is compared
// anew. An unknown outcome of a command, and a cluster that cannot be asked, are met by the same command again until
// ctx ends. If it returns an error, a part may have been changed, which Done lists as far as it is known, and the file
// need not have been recorded: it can be done again.
func (a *Applier) Apply(ctx context.Context, c *Comparison) (Done, error) {
	all := map[string]collections.Change{}
	recorded, err := a.apply(ctx, c, all)
	return Done{inOrder(all), recorded}, err
}

// apply adds to all what it does.
func (a *Applier) apply(
	ctx context.Context, c *Comparison, all map[string]collections.Change,
) (recorded bool, err error) {
	for range rounds {
		var changed bool
		if changed, err = a.change(ctx, c, all); err == nil {
			recorded, err = a.note(ctx, &c.File, c.last, c.key(), changed)
		}
		if !errors.Is(err, errOvertaken) {
			return recorded, err
		}
		last := c.last
		if c, err = a.compare(ctx, c.File); err != nil {
			return false, err
		}
		c.taken = c.last == last
	}
	return false, fmt.Errorf("others apply files all the time: %w", errOvertaken)
}

// key returns the key under which the file is recorded. A key is remembered longer than an item that somebody deletes.
func (c *Comparison) key() string {
	if c.taken {
		return fmt.Sprintf("after %d, %s", c.last, c.File.Hash)
	}
	return fmt.Sprintf("after %d", c.last)
}

func inOrder(all map[string]collections.Change) []collections.Change {
	var list []collections.Change
	for _, change := range all {
		list = append(list, change)
	}
	slices.SortFunc(list, func(a, b collections.Change) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// change carries out what a comparison says, adds to all what was done, and reports whether anything was.
func (a *Applier) change(
	ctx context.Context, c *Comparison, all map[string]collections.Change,
) (changed bool, err error) {
	var changes []collections.Change
	for _, change := range c.Changes {
		if change.What != collections.Same {
			changes = append(changes, change)
		} else if _, has := all[change.ID]; !has {
			all[change.ID] = change
		}
	}
	// What is to be added may need the room of what is removed.
	slices.SortStableFunc(changes, func(a, b collections.Change) int { return rank(a.What) - rank(b.What) })
	finished := make([]bool, len(changes))
	err = atOnce(ctx, len(changes), func(ctx context.Context, i int) (err error) {
		changes[i], err = a.carryOut(ctx, &c.File, changes[i], c.seen[changes[i].ID])
		finished[i] = err == nil
		return err
	})
	for i, change := range changes {
		if !finished[i] || change.What == gone {
			continue
		}
		changed = changed || change.What != collections.Same
		if was := all[change.ID].What; was == gone || was == collections.Same {
			all[change.ID] = change
		}
	}
	return changed, err
}

// rank orders changes.
func rank(w collections.What) int {
	if w == collections.Removed {
		return 0
	}
	return 1
}

// carryOut changes one collection, and returns what it has done.
func (a *Applier) carryOut(
	ctx context.Context, file *File, change collections.Change, seen schedule.Version,
) (collections.Change, error) {
	id, again := change.ID, false
	for range tries {
		repeated, err := a.repeat(ctx, func() error { return a.command(ctx, file, &change, seen) })
		again = again || repeated
		if !errors.Is(err, schedule.ErrChanged) && !errors.Is(err, schedule.ErrNotFound) {
			return change, named(id, err)
		}
		now, version, err := a.compareOne(ctx, file, id)
		if err != nil {
			return change, named(id, err)
		}
		if now.What == collections.Same || now.What == gone {
			if again { // the first of several commands that were the same has done it
				return change, nil
			}
			return now, nil
		}
		change, seen = now, version
	}
	return change, fmt.Errorf("collection %s: %w, again and again", id, schedule.ErrChanged)
}

// named makes an error tell its collection.
func named(id string, err error) error {
	if _, refused := errors.AsType[*RefusedError](err); err == nil || refused {
		return err
	}
	return fmt.Errorf("collection %s: %w", id, err)
}

// command sends the command of a change.
func (a *Applier) command(
	ctx context.Context, file *File, change *collections.Change, seen schedule.Version,
) error {
	if change.What == collections.Removed {
		return a.Schedules.Delete(ctx, change.ID, seen)
	}
	how := schedule.Setting{Seen: seen, Reason: file.reason()}
	_, _, err := a.Schedules.SetWith(ctx, change.ID, file.find(change.ID).Definition(), how)
	return err
}
