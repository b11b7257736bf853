package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/projection/settings"
	"taskledger/store"
)

// bench drives the owner of one shard by hand, turn by turn, over a journal in memory, so that every interleaving of
// commands, commits and changes of owner can be laid out. Nothing runs beside the test but attempts on the owner's node.
type bench struct {
	*testing.T
	store   *memoryStore
	m       *member
	own     *owner
	numbers map[projection.SenderLane]uint64
	time    events.Millis // of the wall clock
}

const (
	selfID = "self" // session of the owner's node
	farID  = "far"  // session of another
)

var benchStart = events.MillisOf(time.Date(2020, 2, 29, 12, 0, 0, 0, time.UTC)) // long ago: only entry time may count

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

func (s *memoryStore) Cluster() store.Cluster {
	return store.Cluster{ID: "bench", Shards: 1, Key: make([]byte, 32)}
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

// newBench returns an owner of an empty shard on a node with the behaviors given, and slots for one attempt, or none.
func newBench(t *testing.T, slots int, behaviors ...Behavior) *bench {
	t.Helper()
	b := &bench{T: t, store: &memoryStore{members: present(1, selfID, farID)}, numbers: map[projection.SenderLane]uint64{}, time: benchStart}
	n, err := NewNode(NodeConfig{Store: b.store, Name: "bench", Slots: slots, Behaviors: behaviors,
		Now: func() time.Time { return b.time.Time() }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		n.stopWorkers()
	})
	b.m = newMember(n)
	b.m.ctx, b.m.session = ctx, store.Session{ID: selfID, Lease: 1, Revision: 1}
	for i := range b.m.parents {
		b.m.parents[i] = ctx
	}
	b.m.renewed.Store(int64(time.Since(clockBase)))
	n.member.Store(b.m)
	n.settings.known.Store(new(settings.State))
	b.m.heard.Store(true)
	b.m.view.Store(&b.store.members)
	b.takeOver()
	return b
}

// takeOver puts a new owner into the place of the old one, which knows the journal and nothing else.
func (b *bench) takeOver() {
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
	b.own = newOwner(b.m, store.Ownership{Shard: 0, Revision: int64(100 + len(b.store.entries)), Session: b.m.session}, &loaded{state: state, head: head}, func() {})
	b.store.members.Owners[0] = store.Owner{Node: selfID, Revision: b.own.ownership.Revision}
	b.m.futures.ServeHere(0, head)
	b.m.sender.ServeHere(0, b.own.inbox)
	b.m.place.owners[0] = b.own
}

// letter is a batch on its way to the owner, and what came back: nil for an acknowledgement.
type letter struct {
	batch *command.Batch
	got   [][]command.Answer
}

// next makes a batch with the next number of its lane.
func (b *bench) next(sender string, lane uint8, commands ...command.Command) *letter {
	key := projection.SenderLane{Sender: sender, Lane: lane}
	b.numbers[key]++
	return &letter{batch: &command.Batch{Sender: sender, Lane: lane, Number: b.numbers[key], Made: b.time, Principal: sender, Commands: commands}}
}

// deliver puts a batch into the owner's inbox, which may be a copy of one that was there before.
func (b *bench) deliver(l *letter) { b.put(l, false) }

// post is deliver by way of the mailbox.
func (b *bench) post(l *letter) { b.put(l, true) }

func (b *bench) put(l *letter, mailed bool) {
	copied, err := command.DecodeBatch(l.batch.Encode())
	if err != nil {
		b.Fatal(err)
	}
	b.own.inbox.put(delivery{Batch: copied, letter: mailed, reply: func(_ *command.Batch, a []command.Answer, _ bool) { l.got = append(l.got, a) }})
}

// turn lets the owner take one turn, which must succeed.
func (b *bench) turn() {
	b.Helper()
	if err := b.own.takeTurn(b.Context()); err != nil {
		b.Fatalf("turn: %v", err)
	}
	b.m.tasks.Wait()
}

// ask delivers one command, takes a turn and returns the answer.
func (b *bench) ask(lane uint8, c command.Command) command.Answer {
	b.Helper()
	l := b.next("somebody", lane, c)
	b.deliver(l)
	b.turn()
	if len(l.got) != 1 || len(l.got[0]) != 1 {
		b.Fatalf("answers are %+v, want one", l.got)
	}
	return l.got[0][0]
}

func (b *bench) accept(lane uint8, c command.Command) {
	b.Helper()
	if a := b.ask(lane, c); a.Code != command.AnswerOK {
		b.Fatalf("%T: answer %d %s", c, a.Code, a.Text)
	}
}

const benchBehavior = "work"

// submitOf asks for task "x" under a policy.
func submitOf(p Policy) *command.Submit {
	p, err := p.Complete()
	if err != nil {
		panic(err)
	}
	return &command.Submit{Task: "x", Behavior: benchBehavior, Policy: p}
}

// submit creates task "x".
func (b *bench) submit(p Policy) {
	b.Helper()
	b.accept(command.LaneSubmit, submitOf(p))
}

// offer makes an offer of the far node for one attempt.
func (b *bench) offer() *letter {
	return b.next("far sender", command.LaneOffer, &command.Offer{Node: farID, Lease: 3000, Slots: 1,
		Behaviors: []command.OfferedBehavior{{Behavior: benchBehavior, Slots: 1}}})
}

// assign lets the far node run task "x", which must be ready, and returns the offer and the task.
func (b *bench) assign() (*letter, projection.Task) {
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
func (b *bench) task() projection.Task {
	b.Helper()
	t := b.own.state.Task("x")
	if t == nil {
		b.Fatal("there is no task x")
	}
	return *t
}

// report is how an attempt of task "x" ended.
func report(t projection.Task, how command.Completion) *command.Complete {
	c := &command.Complete{Task: t.ID, Started: t.Started, Node: t.Node, How: how}
	if how == command.Failed {
		c.Error = &events.Error{Code: events.CodeFailed, Message: "failed"}
	}
	return c
}

// kinds is the history of the shard, as far as it is written.
func (b *bench) kinds() (all []events.Kind) {
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

func (b *bench) count(kind events.Kind) (n int) {
	for _, k := range b.kinds() {
		if k == kind {
			n++
		}
	}
	return n
}

// sealed is the number of entries written.
func (b *bench) sealed() int { return len(b.store.entries) }

// given returns what an answer to an offer assigns.
func (b *bench) given(answers []command.Answer) []command.Assignment {
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

// plain is a behavior made of a function.
type plain struct {
	id     string
	policy Policy
	run    func(ctx context.Context, a Attempt) Outcome
}

func (p *plain) ID() string                           { return p.id }
func (p *plain) Types() string                        { return "" }
func (p *plain) Policy() Policy                       { return p.policy }
func (p *plain) Plan([]byte, time.Time) (Plan, error) { return Plan{}, nil }
func (p *plain) Run(ctx context.Context, a Attempt) Outcome {
	return p.run(ctx, a)
}
