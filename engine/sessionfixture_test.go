package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/projection/settings"
	"taskledger/store"
	"taskledger/task"
)

// stub is a behavior of which no attempt is made.
type stub struct{ id string }

// ID implements Behavior.
func (s *stub) ID() string { return s.id }

// Types implements Behavior.
func (s *stub) Types() string { return "" }

// Policy implements Behavior.
func (s *stub) Policy() task.Policy { return task.Policy{} }

// Plan implements Behavior.
func (s *stub) Plan([]byte, time.Time) (task.Plan, error) { return task.Plan{}, nil }

// Run implements Behavior.
func (s *stub) Run(context.Context, task.Attempt) task.Outcome { return task.Outcome{} }

// noStore is a store that nobody asks for anything but the cluster.
type noStore struct{ store.Store }

func (noStore) Cluster() store.Cluster { return store.Cluster{Shards: 4, Key: make([]byte, 32)} }

const (
	selfID       = "n-1" // session of a post
	farID        = "far" // session of another node
	workBehavior = "work"
)

// present is a membership of the given sessions, in which the post owns shard 0.
func present(revision int64, sessions ...string) store.Membership {
	m := store.Membership{
		Revision: revision,
		Nodes:    map[string]store.NodeInfo{},
		Owners:   map[int]store.Owner{0: {Node: selfID, Revision: 1}},
	}
	for _, id := range sessions {
		m.Nodes[id] = store.NodeInfo{
			ID:    id,
			Name:  id,
			Owner: id == selfID,
			Reads: ledger.Reads(),
		}
	}
	return m
}

// post is a node in a session. It makes no attempts, and has heard that nothing is paused.
type post struct {
	testing.TB
	*member
}

func newPost(t testing.TB, behaviors ...task.Behavior) *post {
	t.Helper()
	n, err := NewNode(NodeConfig{Store: noStore{}, Name: "post", Slots: -1, Behaviors: behaviors})
	if err != nil {
		t.Fatal(err)
	}
	p := &post{t, newMember(n)}
	p.member.ctx, p.end = context.WithCancelCause(context.Background())
	p.session = store.Session{ID: selfID, Revision: 1}
	p.renewed.Store(int64(time.Since(clockBase) + 24*time.Hour)) // young, whatever the time
	p.settings.known.Store(new(settings.State))
	p.heard.Store(true)
	t.Cleanup(func() {
		p.end(nil)
		n.stopWorkers()
	})
	return p
}

// owned is a task of a shard.
type owned struct {
	behavior string
	node     string // that has an attempt of it; "": it waits for a slot
}

// owning makes an owner of some tasks, which serves the shard here but takes no turns.
func (p *post) owning(at int, tasks ...owned) *shard.Owner {
	p.Helper()
	policy, err := task.Policy{}.Complete()
	if err != nil {
		p.Fatal(err)
	}
	state := projection.NewShard(at)
	var entry events.Builder
	for some := range slices.Chunk(tasks, 1000) {
		now := p.now()
		entry.Reset(events.Entry{
			Shard:  uint16(at),
			Number: state.Number + 1,
			Epoch:  1,
			Owner:  selfID,
			Time:   now,
			Prev:   state.Hash,
		})
		for i, t := range some {
			id := events.TaskID(fmt.Sprint("t-", state.Number, "-", i))
			created := entry.Add(events.Event{
				Task: id,
				Seq:  1,
				Body: &events.Created{Behavior: t.behavior, Policy: policy, NotBefore: now},
			}).Position.Ref
			if t.node != "" {
				entry.Add(events.Event{
					Task: id,
					Seq:  2,
					Prev: created,
					Body: &events.Started{Node: t.node, Attempt: 1, Lease: 9000},
				})
			}
		}
		data, err := entry.Seal()
		if err != nil {
			p.Fatal(err)
		}
		stored, err := events.Decode(data)
		if err == nil {
			err = state.Replay(stored)
		}
		if err != nil {
			p.Fatal(err)
		}
	}
	own := shard.New(
		p.ownerConfig(),
		store.Ownership{Shard: at, Revision: 1, Session: p.session},
		&shard.Loaded{State: state, Head: store.Head{Number: state.Number, Revision: int64(state.Number)}},
		new(command.Oversized),
		func() {},
	)
	p.place.owners[at] = own
	return own
}
