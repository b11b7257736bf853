// Package taskstoretest holds whatever is a taskstore.Store to what a task store promises.
package taskstoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/item"
	"taskledger/taskstore"
)

// Open opens a store by its name, for another client each time.
type Open func(t *testing.T, name string) *taskstore.Store

// patience bounds every call of a test.
const patience = time.Minute

// bench is a store that no other test uses, for two clients.
type bench struct {
	*testing.T
	ctx      context.Context
	s, other *taskstore.Store
	open     Open
	name     string
}

// Run holds the stores that open opens to every property.
func Run(t *testing.T, open Open) {
	for _, part := range [][]property{updates, times, claims, defects, bytes, machine, workers} {
		for _, p := range part {
			t.Run(p.name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				name := p.name[:min(len(p.name), 60)]
				p.show(&bench{T: t, ctx: ctx, s: open(t, name), other: open(t, name), open: open, name: name})
			})
		}
	}
}

// property is what a store has, and what shows it.
type property struct {
	name string
	show func(*bench)
}

// update applies an update.
func (b *bench) update(u taskstore.Update) []taskstore.Item { return b.updateBy(b.s, u) }

func (b *bench) updateBy(s *taskstore.Store, u taskstore.Update) []taskstore.Item {
	b.Helper()
	made, err := s.Update(b.ctx, &u)
	if err != nil {
		b.Fatalf("update %+v: %v", u, err)
	}
	return made
}

// add adds one available item.
func (b *bench) add(group, data string) taskstore.Item {
	b.Helper()
	return b.update(taskstore.Update{Adds: []taskstore.Add{{Group: group, Data: []byte(data)}}})[0]
}

// claim claims for a time, and may wait.
func (b *bench) claim(s *taskstore.Store, group string, d, wait time.Duration) *taskstore.Item {
	b.Helper()
	it, err := s.Claim(b.ctx, &taskstore.Claim{Group: group, Duration: d, Wait: wait})
	if err != nil {
		b.Fatalf("claim: %v", err)
	}
	return it
}

// list lists a group.
func (b *bench) list(p taskstore.Page) (all []taskstore.Item) {
	b.Helper()
	for it, err := range b.s.Group(b.ctx, p) {
		if err != nil {
			b.Fatalf("list %+v: %v", p, err)
		}
		all = append(all, it)
	}
	return all
}

// whole is all that the groups of the store hold.
func (b *bench) whole() (all []taskstore.Item) {
	b.Helper()
	for _, g := range b.groups() {
		all = append(all, b.list(taskstore.Page{Group: g, Owned: true})...)
	}
	slices.SortFunc(all, func(x, y taskstore.Item) int { return int(x.ID - y.ID) })
	return all
}

func (b *bench) groups() []string {
	b.Helper()
	names, err := b.s.Groups(b.ctx)
	if err != nil {
		b.Fatalf("groups: %v", err)
	}
	return names
}

// task returns an item, nil if it is not there.
func (b *bench) task(id int64) *taskstore.Item {
	b.Helper()
	it, err := b.s.Task(b.ctx, id)
	if err != nil {
		b.Fatalf("task %d: %v", id, err)
	}
	return it
}

// same fails unless an item is as another.
func (b *bench) same(got *taskstore.Item, want taskstore.Item) {
	b.Helper()
	if got == nil || got.ID != want.ID || got.Group != want.Group || got.At != want.At || got.Owner != want.Owner || string(got.Data) != string(want.Data) {
		b.Fatalf("item %+v, want %+v", got, want)
	}
}

// refused fails unless an update is refused for these reasons, as `field id text`, and nothing has changed.
func (b *bench) refused(s *taskstore.Store, u taskstore.Update, want ...string) {
	b.Helper()
	before := b.whole()
	_, err := s.Update(b.ctx, &u)
	b.conflict(err, want...)
	after := b.whole()
	if len(before) != len(after) {
		b.Fatalf("a refused update left %d items of %d", len(after), len(before))
	}
	for i := range before {
		b.same(&after[i], before[i])
	}
}

// conflict fails unless an error tells these problems.
func (b *bench) conflict(err error, want ...string) {
	b.Helper()
	conflict, is := errors.AsType[*taskstore.ConflictError](err)
	if !is {
		b.Fatalf("error %v, want a conflict", err)
	}
	if len(conflict.Problems) != len(want) {
		b.Fatalf("problems %q, want %q", conflict.Problems, want)
	}
	for i, p := range conflict.Problems {
		if got := fmt.Sprintf("%s %d %s", p.Field, p.ID, p.Text); !strings.HasPrefix(got, want[i]) {
			b.Errorf("problem %q, want %q", got, want[i])
		}
	}
}

// invalid fails unless an update is refused for a field.
func (b *bench) invalid(u taskstore.Update, field string) {
	b.Helper()
	_, err := b.s.Update(b.ctx, &u)
	if bad, is := errors.AsType[*taskstore.InvalidError](err); !is || bad.Field != field {
		b.Errorf("%+v: error %v, want field %s to be invalid", u, err, field)
	}
}

// problem is the beginning of a problem that refused takes.
func problem(field string, id int64, text string) string {
	return fmt.Sprintf("%s %d %s", field, id, text)
}

func gone(field string, id int64) string   { return problem(field, id, item.NotThere) }
func heldBy(field string, id int64) string { return problem(field, id, item.Held) }

// keep is a change that leaves the data.
func keep(id int64, at taskstore.When) taskstore.Change {
	return taskstore.Change{ID: id, At: at, Keep: true}
}
