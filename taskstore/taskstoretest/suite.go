// Package taskstoretest holds task stores to what package taskstore promises: the library on any backend, be it a
// model, an engine or a server that is asked over HTTP. It knows none of them.
package taskstoretest

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/item"
	"taskledger/taskstore"
)

// Subject describes a task store that the suite tests.
type Subject struct {
	// Name begins the names of its tests; "" = nothing does.
	Name    string
	Backend taskstore.Backend
	// Restart ends what serves the stores and starts it again, as far as it can be: the backend has to find what it
	// had. Nil: it cannot.
	Restart func(t *testing.T)
	// Slack extends every time limit that a test states; default four seconds.
	Slack time.Duration
}

// Run runs the suite. Each test has a store of its own in the subject, so what it does disturbs no other, and those
// that restart nothing run side by side when the calling test ends.
func Run(t *testing.T, s Subject) {
	if s.Slack == 0 {
		s.Slack = 4 * time.Second
	}
	tests := map[string]func(f *fixture){}
	for _, some := range []map[string]func(f *fixture){updates, claims, reads, workers, machines, originals, renewals} {
		maps.Copy(tests, some)
	}
	alone := map[string]func(f *fixture){}
	if s.Restart != nil {
		maps.Copy(alone, restarts)
		maps.Copy(alone, originalRestarts)
		maps.Copy(tests, alone)
	}
	for i, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(path.Join(s.Name, name), func(t *testing.T) {
			if alone[name] == nil {
				t.Parallel()
			}
			f := &fixture{T: t, subject: s, name: fmt.Sprintf("suite-%d-%d", i, time.Now().UnixNano())}
			f.s, f.other = f.open(1), f.open(2)
			tests[name](f)
		})
	}
}

// fixture is a store, and two clients of it.
type fixture struct {
	*testing.T
	subject  Subject
	name     string
	s, other *taskstore.Store
}

func (f *fixture) open(client int64) *taskstore.Store {
	f.Helper()
	s, err := taskstore.Open(f.subject.Backend, f.name, taskstore.Options{Client: client})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// update fails the test unless an update is done.
func (f *fixture) update(s *taskstore.Store, u item.Update) []item.Item {
	f.Helper()
	made, err := s.Update(f.Context(), u)
	if err != nil {
		f.Fatalf("update %+v: %v", u, err)
	}
	if len(made) != len(u.Adds)+len(u.Changes) {
		f.Fatalf("%d items made by %d adds and %d updates", len(made), len(u.Adds), len(u.Changes))
	}
	return made
}

func (f *fixture) add(group string, data ...string) []item.Item {
	f.Helper()
	var u item.Update
	for _, d := range data {
		u.Adds = append(u.Adds, item.Add{Group: group, Data: []byte(d)})
	}
	return f.update(f.s, u)
}

// claim claims without a wait.
func (f *fixture) claim(s *taskstore.Store, group string, d time.Duration) *item.Item {
	f.Helper()
	it, err := s.TryClaim(f.Context(), item.Claim{Group: group, Duration: d})
	if err != nil {
		f.Fatalf("claim of group %s: %v", group, err)
	}
	return it
}

// mustClaim fails the test unless it gets an item.
func (f *fixture) mustClaim(s *taskstore.Store, group string, d time.Duration) *item.Item {
	f.Helper()
	it := f.claim(s, group, d)
	if it == nil {
		f.Fatalf("nothing to claim in group %s", group)
	}
	return it
}

// list returns the items of a group.
func (f *fixture) list(group string, l taskstore.List) (all []item.Item) {
	f.Helper()
	for it, err := range f.s.Linear().Group(f.Context(), group, l) {
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, it)
	}
	return all
}

// owned lists all items of a group, available or not.
func (f *fixture) owned(group string) []item.Item { return f.list(group, taskstore.List{Owned: true}) }

// refused fails the test unless err is a conflict with these problems, as "FIELD ID" each, in this order.
func (f *fixture) refused(err error, want ...string) {
	f.Helper()
	conflict, is := errors.AsType[*item.ConflictError](err)
	if !is {
		f.Fatalf("got %v, want a conflict", err)
	}
	var got []string
	for _, p := range conflict.Problems {
		got = append(got, fmt.Sprintf("%s %d", p.Field, p.ID))
		if p.Text == "" || p.Kind == "" {
			f.Errorf("the problem with %s %d is %q, %q: want a kind and a text", p.Field, p.ID, p.Kind, p.Text)
		}
	}
	if !slices.Equal(got, want) {
		f.Errorf("problems %q, want %q", got, want)
	}
}

// unchanged runs f, which has to change nothing: no item, and no id.
func (f *fixture) unchanged(do func()) {
	f.Helper()
	before := f.dump()
	do()
	if after := f.dump(); after != before {
		f.Errorf("a refused call has changed the store from\n%s to\n%s", before, after)
	}
}

// dump is all that is there.
func (f *fixture) dump() string {
	f.Helper()
	groups, err := f.s.Linear().Groups(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	var b strings.Builder
	for _, g := range groups {
		for _, it := range f.owned(g) {
			fmt.Fprintf(&b, "%d %q %d %d %q\n", it.ID, it.Group, it.At, it.Owner, it.Data)
		}
	}
	return b.String()
}

func ids(all []item.Item) (ids []int64) {
	for _, it := range all {
		ids = append(ids, it.ID)
	}
	return ids
}

// after is a time so long after the entry that decides.
func after(d time.Duration) item.When { return item.When(-d.Milliseconds()) }
