package shard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/explanation"
	"taskledger/engine/internal/outcome"
	"taskledger/engine/internal/pauses"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/slots"
	"taskledger/engine/internal/stores"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/projection/settings"
	"taskledger/store"
	"taskledger/task"
)

// fixture drives the owner of one shard by hand, turn by turn, over a journal in memory, so that every interleaving of
// commands, commits and changes of owner can be laid out. Nothing runs beside the test.
type fixture struct {
	*testing.T
	store     *memoryStore
	cfg       *shard.Config
	node      *node
	own       *shard.Owner
	oversized command.Oversized
	numbers   map[projection.SenderLane]uint64
	time      events.Millis // of the wall clock
	epoch     int64         // of the next owner, beyond what its journal makes of it
}

const (
	selfID = "self" // session of the owner's node
	farID  = "far"  // session of another
)

var benchStart = events.MillisOf(time.Date(2020, 2, 29, 12, 0, 0, 0, time.UTC)) // long ago: only entry time may count

// node is the node of the owner. Its fields are what it says; what the owner wants of it is recorded.
type node struct {
	*slots.Slots
	store     *memoryStore
	ctx       context.Context
	tasks     sync.WaitGroup // spawned
	old       bool           // its session is too old to take on work
	view      *store.Membership
	sighted   command.Sightings
	refusal   string
	usage     store.Usage
	paused    map[string]bool
	moves     bool         // shards fall to whoever asks
	changes   atomic.Int64 // of the backlog
	launched  []command.Assignment
	cancels   []shard.Cancel
	announced []outcome.Outcome
	settings  []settings.State
	hints     []string // senders that were told of items
}

// MayStart implements shard.Host.
func (n *node) MayStart() bool { return !n.old && n.ctx.Err() == nil }

// View implements shard.Host.
func (n *node) View() *store.Membership { return n.view }

// Sighted implements shard.Host.
func (n *node) Sighted() command.Sightings { return n.sighted }

// Readable implements shard.Host.
func (n *node) Readable(ctx context.Context, kind events.Kind) error {
	need := ledger.Reads().UpTo(kind)
	if n.store.members.Written.Lacks(need) == "" {
		return nil
	}
	return n.store.Raise(ctx, need)
}

// Spawn implements shard.Host.
func (n *node) Spawn(f func(context.Context)) {
	if n.ctx.Err() == nil {
		n.tasks.Go(func() { f(n.ctx) })
	}
}

// Untake implements shard.Slots.
func (n *node) Untake(behavior string) {
	n.Lock()
	n.Starting--
	n.Unlock()
	n.Release(behavior)
}

// Await implements shard.Slots.
func (n *node) Await(w slots.Waiter, heads []slots.Head) {
	if len(heads) == 0 {
		n.Leave(w)
	} else {
		n.Slots.Await(w, heads)
	}
}

// Launch implements shard.Effects.
func (n *node) Launch(_ int, a command.Assignment) {
	n.Lock()
	n.Starting--
	n.Unlock()
	n.launched = append(n.launched, a)
}

// Cancel implements shard.Effects.
func (n *node) Cancel(_ int, c shard.Cancel) { n.cancels = append(n.cancels, c) }

// Announce implements shard.Effects.
func (n *node) Announce(_ int, all []outcome.Outcome) { n.announced = append(n.announced, all...) }

// extensions are the fronts of a cluster, which leave with the node what they are to do there.
func (n *node) extensions() []shard.NewExtension {
	return []shard.NewExtension{
		pauses.AtOwner(0, func(s settings.State) { n.settings = append(n.settings, s) }),
		stores.AtOwner(func(sender string, _ []byte) { n.hints = append(n.hints, sender) }),
	}
}

// Refusal implements shard.Admission.
func (n *node) Refusal() string { return n.refusal }

// Usage implements shard.Admission.
func (n *node) Usage() *store.Usage { return &n.usage }

// LiveLimit implements shard.Admission.
func (n *node) LiveLimit() int64 { return n.usage.Quota / 4 }

// Blocked implements shard.Admission.
func (n *node) Blocked(behavior string) bool { return n.paused[behavior] }

// WhyBlocked implements shard.Explainer.
func (n *node) WhyBlocked(behavior string, _ bool) (explanation.Explanation, bool) {
	return explanation.Explanation{Why: task.WhyPaused, Text: "behavior " + behavior + " is paused"}, n.paused[behavior]
}

// Ready implements shard.Explainer.
func (n *node) Ready(behavior string, offered func() bool) explanation.Explanation {
	return explanation.OfReady(n.view.Nodes, behavior, offered)
}

// Wants implements shard.Placement.
func (n *node) Wants(int, string) bool { return n.moves }

// BacklogChanged implements shard.Placement.
func (n *node) BacklogChanged(bool) { n.changes.Add(1) }

// Archived implements shard.Archiver.
func (n *node) Archived() {}

// Problem implements shard.Archiver.
func (n *node) Problem() string { return "" }

// memoryStore is a journal of one shard. What the owner does not need is missing.
type memoryStore struct {
	store.Store
	entries [][]byte
	refuse  error  // of the next append, which is then not written
	most    int    // bytes of an entry that it takes; 0 = any
	noRoom  int    // calls of Raise to come that find the store full
	commit  func() // called before an entry is written
	members store.Membership
}

// present is a membership of the given sessions.
func present(revision int64, sessions ...string) store.Membership {
	m := store.Membership{Revision: revision, Nodes: map[string]store.NodeInfo{}, Owners: map[int]store.Owner{0: {Node: selfID, Revision: 1}}}
	for _, id := range sessions {
		m.Nodes[id] = store.NodeInfo{ID: id, Name: id, Owner: id == selfID, Reads: ledger.Reads()}
	}
	return m
}

func (s *memoryStore) ReadMembers(context.Context) (store.Membership, error) { return s.members, nil }

func (s *memoryStore) Raise(_ context.Context, need store.Reads) error {
	if s.noRoom > 0 {
		s.noRoom--
		return store.ErrFull
	}
	s.members.Written = s.members.Written.With(need)
	return nil
}

func (s *memoryStore) Append(_ context.Context, _ store.Ownership, after store.Head, entry []byte) (int64, error) {
	if s.refuse != nil {
		return 0, s.refuse
	}
	if s.most > 0 && len(entry) > s.most {
		return 0, fmt.Errorf("%w: %w", store.ErrRefused, store.ErrTooLarge)
	}
	if s.commit != nil {
		s.commit()
	}
	if int(after.Number) != len(s.entries) {
		return 0, errors.New("the owner skipped an entry")
	}
	s.entries = append(s.entries, slices.Clone(entry))
	return int64(len(s.entries)), nil
}

// newFixture returns an owner of an empty shard on a node without slots.
func newFixture(t *testing.T) *fixture { return newWorker(t, 0) }

// newWorker returns an owner of an empty shard on a node with slots for some behaviors.
func newWorker(t *testing.T, most int, behaviors ...string) *fixture {
	t.Helper()
	b := &fixture{
		T:       t,
		store:   &memoryStore{members: present(1, selfID, farID)},
		numbers: map[projection.SenderLane]uint64{},
		time:    benchStart,
	}
	b.node = &node{
		Slots:  slots.New(most, behaviors, nil),
		store:  b.store,
		ctx:    t.Context(),
		view:   &b.store.members,
		usage:  store.Usage{Quota: 2 << 30},
		paused: map[string]bool{},
	}
	t.Cleanup(b.node.Close)
	b.cfg = &shard.Config{
		Host:      b.node,
		Slots:     b.node,
		Effects:   b.node,
		Admission: b.node,
		Explainer: b.node,
		Placement: b.node,

		Extensions: b.node.extensions(),
		Archiver:   b.node,
		Loader: &shard.Loader{
			Journal:   b.store,
			Snapshots: b.store,
			Trimmer:   b.store,
			Losses:    b.store,
			Reader:    ledger.NewReader(b.store, b.store, nil, false),
			Log:       slog.New(slog.DiscardHandler),
		},
		Owners:  b.store,
		Members: b.store,
		Shards:  1,
		Cluster: "bench",
		TTL:     3 * time.Second,
		Now:     func() time.Time { return b.time.Time() },
		Log:     slog.New(slog.DiscardHandler),
	}
	b.takeOver()
	return b
}

// takeOver puts a new owner into the place of the old one, which knows the journal and nothing else.
func (b *fixture) takeOver() {
	b.Helper()
	state := projection.NewShard(0)
	var head store.Head
	for i, data := range b.store.entries {
		e, err := events.Decode(data)
		if err == nil {
			err = state.Replay(e)
		}
		if err != nil {
			b.Fatal(err)
		}
		head = store.Head{Number: uint64(i + 1), Revision: int64(i + 1)}
	}
	o := store.Ownership{Shard: 0, Revision: int64(100+len(b.store.entries)) + b.epoch, Session: store.Session{ID: selfID, Lease: 1, Revision: 1}}
	b.own = shard.New(b.cfg, o, &shard.Loaded{State: state, Head: head}, &b.oversized, func() {})
	b.store.members.Owners[0] = store.Owner{Node: selfID, Revision: o.Revision}
}

// letter is a batch on its way to the owner, and what came back: nil for an acknowledgement.
type letter struct {
	batch *command.Batch
	got   [][]command.Answer
}

// next makes a batch with the next number of its lane.
func (b *fixture) next(sender string, lane uint8, commands ...command.Command) *letter {
	key := projection.SenderLane{Sender: sender, Lane: lane}
	b.numbers[key]++
	return &letter{batch: &command.Batch{
		Sender:    sender,
		Lane:      lane,
		Number:    b.numbers[key],
		Made:      b.time,
		Principal: sender,
		Commands:  commands,
	}}
}

// deliver puts a batch into the owner's inbox, which may be a copy of one that was there before.
func (b *fixture) deliver(l *letter) { b.put(l, false) }

// post is deliver by way of the mailbox.
func (b *fixture) post(l *letter) { b.put(l, true) }

func (b *fixture) put(l *letter, mailed bool) {
	copied, err := commands.Table.DecodeBatch(l.batch.Encode())
	if err != nil {
		b.Fatal(err)
	}
	b.own.Inbox().Deliver(shard.Delivery{
		Batch:  copied,
		Stored: mailed,
		Reply:  func(_ *command.Batch, a []command.Answer, _ bool) { l.got = append(l.got, a) },
	})
}

// turn lets the owner take one turn, which must succeed.
func (b *fixture) turn() {
	b.Helper()
	if err := b.own.Turn(b.Context()); err != nil {
		b.Fatalf("turn: %v", err)
	}
	b.node.tasks.Wait()
}

// ask delivers one command, takes a turn and returns the answer.
func (b *fixture) ask(lane uint8, c command.Command) command.Answer {
	b.Helper()
	l := b.next("somebody", lane, c)
	b.deliver(l)
	b.turn()
	if len(l.got) != 1 || len(l.got[0]) != 1 {
		b.Fatalf("answers are %+v, want one", l.got)
	}
	return l.got[0][0]
}

func (b *fixture) accept(lane uint8, c command.Command) {
	b.Helper()
	if a := b.ask(lane, c); a.Code != command.AnswerOK {
		b.Fatalf("%T: answer %d %s", c, a.Code, a.Text)
	}
}

const benchBehavior = "work"

// policyOf completes a policy.
func policyOf(p events.Policy) events.Policy {
	complete, err := p.Complete()
	if err != nil {
		panic(err)
	}
	return complete
}

// submitOf asks for task "x" under a policy.
func submitOf(p events.Policy) *command.Submit {
	return &command.Submit{Task: "x", Behavior: benchBehavior, Policy: policyOf(p)}
}

// submit creates task "x".
func (b *fixture) submit(p events.Policy) {
	b.Helper()
	b.accept(command.LaneSubmit, submitOf(p))
}

// offer makes an offer of the far node for one attempt.
func (b *fixture) offer() *letter {
	return b.next("far sender", command.LaneOffer, &command.Offer{
		Node:      farID,
		Lease:     3000,
		Slots:     1,
		Behaviors: []command.OfferedBehavior{{Behavior: benchBehavior, Slots: 1}},
	})
}

// assign lets the far node run task "x", which must be ready, and returns the offer and the task.
func (b *fixture) assign() (*letter, projection.Task) {
	b.Helper()
	offer := b.offer()
	b.deliver(offer)
	b.turn()
	t := b.task()
	if t.Node != farID {
		b.Fatalf("task is %s on %q, want on %q", t.Phase(), t.Node, farID)
	}
	return offer, t
}

// task returns task "x".
func (b *fixture) task() projection.Task {
	b.Helper()
	t := b.own.State().Task("x")
	if t == nil {
		b.Fatal("there is no task x")
	}
	return *t
}

// report tells how an attempt of task "x" ended.
func report(t projection.Task, how command.Completion) *command.Complete {
	c := &command.Complete{Task: t.ID, Started: t.Started, Node: t.Node, How: how}
	if how == command.Failed {
		c.Error = &events.Error{Code: events.CodeFailed, Message: "failed"}
	}
	return c
}

// kinds is the history of the shard, as far as it is written.
func (b *fixture) kinds() (all []events.Kind) {
	for _, data := range b.store.entries {
		e, err := events.Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		for i := range e.Events {
			all = append(all, e.Events[i].Kind())
		}
	}
	return all
}

func (b *fixture) count(kind events.Kind) (n int) {
	for _, k := range b.kinds() {
		if k == kind {
			n++
		}
	}
	return n
}

// sealed is the number of entries written.
func (b *fixture) sealed() int { return len(b.store.entries) }

// given returns what an answer to an offer assigns.
func (b *fixture) given(answers []command.Answer) []command.Assignment {
	b.Helper()
	if len(answers) != 1 {
		b.Fatalf("%d answers to an offer", len(answers))
	}
	all, err := command.DecodeAssignments(answers[0].Data)
	if err != nil {
		b.Fatal(err)
	}
	return all
}
