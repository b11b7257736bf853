package apply_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/collections"
	"taskledger/collections/apply"
	"taskledger/item"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/taskstore/taskstoretest/model"
)

// cluster holds schedules and task stores in memory.
type cluster struct {
	stores *model.Cluster

	mu        sync.Mutex
	schedules map[string]schedule.Schedule
	last      schedule.Version
	changes   int // of schedules
	reasons   map[string]string
}

func newCluster() *cluster {
	return &cluster{
		stores:    model.New(rand.New(rand.NewPCG(1, 2))), //nolint:gosec // it chooses what claims take, and there are none
		schedules: map[string]schedule.Schedule{},
		reasons:   map[string]string{},
	}
}

// state returns the definitions of all schedules, as texts.
func (c *cluster) state() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]string{}
	for name, s := range c.schedules {
		all[name] = text(s.Definition)
	}
	return all
}

func text(d schedule.Definition) string {
	b, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return fmt.Sprint(string(b), d.UUIDs)
}

// put makes a schedule that no file made.
func (c *cluster) put(name string, d schedule.Definition) {
	c.last++
	c.schedules[name] = schedule.Schedule{Name: name, Definition: d, Version: c.last}
}

// process is one that asks a cluster, and may die.
type process struct {
	of    *cluster
	nodes nodes

	mu              sync.Mutex
	calls, commands int
	before          func(call int) error    // is called before each call; an error is what the caller gets
	after           func(command int) error // is called after each command was carried out, likewise
}

// call carries out a call.
func (p *process) call(do func() error) error {
	p.mu.Lock()
	p.calls++
	n := p.calls
	p.mu.Unlock()
	if p.before != nil {
		if err := p.before(n); err != nil {
			return err
		}
	}
	return do()
}

// command carries out a call that changes something.
func (p *process) command(do func() error) error {
	err := p.call(do)
	p.mu.Lock()
	p.commands++
	n := p.commands
	p.mu.Unlock()
	if p.after != nil {
		if failed := p.after(n); failed != nil {
			return failed
		}
	}
	return err
}

func (p *process) applier() *apply.Applier {
	return &apply.Applier{
		Schedules: p,
		Nodes:     p.nodes,
		Stores:    p,
		By:        "tester",
		Pause:     func(context.Context, time.Duration) {},
	}
}

// apply compares and applies.
func (p *process) apply(ctx context.Context, file apply.File) (apply.Done, error) {
	a := p.applier()
	c, err := a.Compare(ctx, file)
	if err != nil {
		return apply.Done{}, err
	}
	return a.Apply(ctx, c)
}

// SetWith implements apply.Schedules.
func (p *process) SetWith(
	_ context.Context, name string, d schedule.Definition, how schedule.Setting,
) (v schedule.Version, changed bool, err error) {
	err = p.command(func() error {
		c := p.of
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := c.check(name, how.Seen); err != nil {
			return err
		}
		was, there := c.schedules[name]
		if v = was.Version; there && text(was.Definition) == text(d) {
			return nil
		}
		c.changes++
		c.put(name, d)
		c.reasons[name] = how.Reason
		v, changed = c.last, true
		return nil
	})
	return v, changed, err
}

func (c *cluster) check(name string, seen schedule.Version) error {
	if is, there := c.schedules[name]; seen == 0 || !there && seen == schedule.Absent || there && is.Version == seen {
		return nil
	}
	return fmt.Errorf("schedule %s: %w", name, schedule.ErrChanged)
}

// Delete implements apply.Schedules.
func (p *process) Delete(_ context.Context, name string, seen schedule.Version) error {
	return p.command(func() error {
		c := p.of
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, there := c.schedules[name]; !there {
			return fmt.Errorf("schedule %s: %w", name, schedule.ErrNotFound)
		}
		if err := c.check(name, seen); err != nil {
			return err
		}
		c.changes++
		delete(c.schedules, name)
		return nil
	})
}

// Get implements apply.Schedules.
func (p *process) Get(_ context.Context, name string) (s schedule.Schedule, err error) {
	err = p.call(func() error {
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		is, there := p.of.schedules[name]
		if !there {
			return fmt.Errorf("schedule %s: %w", name, schedule.ErrNotFound)
		}
		s = is
		return nil
	})
	return s, err
}

// List implements apply.Schedules.
func (p *process) List(
	_ context.Context, f schedule.Filter, after string, limit int,
) (all []schedule.Schedule, more bool, err error) {
	limit = min(limit, 3) // of several pages
	err = p.call(func() error {
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(p.of.schedules)) {
			s := p.of.schedules[name]
			if name <= after || f.Behavior != "" && s.Definition.Behavior != f.Behavior {
				continue
			}
			if more = len(all) == limit; more {
				break
			}
			all = append(all, s)
		}
		return nil
	})
	return all, more, err
}

// Update implements apply.Stores.
func (p *process) Update(ctx context.Context, store string, u *item.Update) (made []item.Item, err error) {
	err = p.command(func() (err error) {
		made, err = p.of.stores.Update(ctx, store, u)
		return err
	})
	return made, err
}

// Group implements apply.Stores.
func (p *process) Group(ctx context.Context, store string, g item.Page) (all []item.Item, more bool, err error) {
	err = p.call(func() (err error) {
		all, more, err = p.of.stores.Group(ctx, store, g)
		return err
	})
	return all, more, err
}

// nodes are the nodes of a cluster, by their sessions, with what they answer. A nil answer is none.
type nodes map[string]func(question []collections.Need) ([]collections.Need, error)

// everything is the answer of a node that lacks nothing.
func everything([]collections.Need) ([]collections.Need, error) { return nil, nil }

// Nodes implements apply.Nodes.
func (n nodes) Nodes(context.Context) ([]store.NodeInfo, error) {
	var all []store.NodeInfo
	for _, id := range slices.Sorted(maps.Keys(n)) {
		name, _, _ := strings.Cut(id, "-")
		all = append(all, store.NodeInfo{
			ID:        id,
			Name:      name,
			Behaviors: []string{"noop", collections.Behavior},
			Slots:     8,
			Limits:    map[string]int{collections.Behavior: 2},
		})
	}
	return all, nil
}

// Ask implements apply.Nodes.
func (n nodes) Ask(_ context.Context, session, name string, question []byte) ([]byte, error) {
	if name != collections.Question || len(question) > 64<<10 {
		return nil, fmt.Errorf("question %s of %d bytes", name, len(question))
	}
	needs, err := collections.ReadNeeds(question)
	if err != nil {
		return nil, err
	}
	answer := n[session]
	if answer == nil {
		return nil, fmt.Errorf("node %s: %w", session, store.ErrUnavailable)
	}
	lacks, err := answer(needs)
	if err != nil {
		return nil, err
	}
	return json.Marshal(lacks)
}

// newProcess returns one that asks a cluster with a node that has everything.
func newProcess(of *cluster) *process {
	return &process{of: of, nodes: nodes{"a-1": everything}}
}

// file reads a file of collections of the source s, each of which is written as in YAML.
func file(t testing.TB, list ...string) apply.File {
	t.Helper()
	return read(t, "sources: {s: {driver: noop, collections: ["+strings.Join(list, ", ")+"]}}")
}

func read(t testing.TB, yaml string) apply.File {
	t.Helper()
	f, _, err := apply.Read("/etc/sync.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// wanted returns the state of a cluster that has the collections of a file, and nothing else.
func wanted(f *apply.File) map[string]string {
	all := map[string]string{}
	for i := range f.Collections {
		all[f.Collections[i].ID()] = text(f.Collections[i].Definition())
	}
	return all
}

// tester is a test, or a draw of one.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// wantState fails unless the cluster has the collections of a file, and others.
func wantState(t tester, c *cluster, f *apply.File, others map[string]string) {
	t.Helper()
	want := wanted(f)
	maps.Copy(want, others)
	if got := c.state(); !maps.Equal(got, want) {
		t.Fatalf("the cluster has %v, want %v", got, want)
	}
}

// recorded returns the hash of the file that was recorded last, "" if there is none, and how many are recorded.
func (c *cluster) recorded(t tester) (hash string, n int) {
	t.Helper()
	items, more, err := c.stores.Group(context.Background(), apply.Store, item.Page{Group: apply.Group, Owned: true})
	if err != nil || more {
		t.Fatalf("record: more %t, %v", more, err)
	}
	for _, i := range items {
		var is apply.Applied
		if err := json.Unmarshal(bytes.Clone(i.Data), &is); err != nil {
			t.Fatal(err)
		}
		hash = is.Hash
	}
	return hash, len(items)
}

// summary writes the changes that were made.
func summary(d apply.Done) string {
	n := d.Counts()
	return fmt.Sprintf("%d added, %d changed, %d removed, %d same, recorded %t",
		n[collections.Added], n[collections.Changed], n[collections.Removed], n[collections.Same], d.Recorded)
}

var errDied = errors.New("the process has died")
