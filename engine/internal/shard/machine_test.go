package shard

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/notice"
	"taskledger/engine/internal/tally"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// failer has the methods that testing.T and rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// shardMachine is one shard under senders that resend, copies that come late, and owners that are replaced with or
// without their last entry.
type shardMachine struct {
	t       failer
	state   *projection.Shard
	now     events.Millis
	entries []*events.Entry
	log     []events.Event // of every entry, in order
	own     *Owner
	senders map[projection.SenderLane]*laneState
	pending [command.LaneCount][]Delivery
	decided map[batchKey][]command.Answer // as first answered, of those that caused events
	effects map[batchKey]bool             // caused events
}

type batchKey struct {
	projection.SenderLane
	number uint64
}

type laneState struct {
	sent     []*command.Batch
	answered bool // the last one
}

func newShardMachine(t failer) *shardMachine {
	m := &shardMachine{t: t, now: 1_800_000_000_000, senders: map[projection.SenderLane]*laneState{}, decided: map[batchKey][]command.Answer{}, effects: map[batchKey]bool{}}
	m.takeOver()
	return m
}

// takeOver replaces the owner by one that knows the journal alone.
func (m *shardMachine) takeOver() {
	state := projection.NewShard(0)
	for _, e := range m.entries {
		if err := state.Replay(e); err != nil {
			m.t.Fatalf("replay: %v", err)
		}
	}
	m.state = state
	m.own = &Owner{
		state:   state,
		inbox:   NewInbox(),
		memory:  memory{seen: map[projection.SenderLane]answered{}},
		log:     slog.New(slog.DiscardHandler),
		pending: pendingEffects{mishaps: notice.NewMishaps(nil, 0)},
		tally:   tally.New(nil),
	}
	m.pending = [command.LaneCount][]Delivery{}
}

// post makes the next batch of a lane, if the last one was answered, and delivers it.
func (m *shardMachine) post(lane projection.SenderLane, commands []command.Command) {
	s := m.senders[lane]
	if s == nil {
		s = &laneState{answered: true}
		m.senders[lane] = s
	}
	if s.answered {
		s.sent = append(s.sent, &command.Batch{Sender: lane.Sender, Lane: lane.Lane, Number: uint64(len(s.sent) + 1), Made: m.now, Principal: lane.Sender, Commands: commands})
		s.answered = false
	}
	m.deliver(s, len(s.sent)-1)
}

// hour lets others ask for so much that a shard forgets the numbers of those that did not.
func (m *shardMachine) hour() {
	for range 7 {
		m.now = m.now.Add(10 * time.Minute)
		c := &command.Submit{Policy: policyOf(events.Policy{})}
		c.Behavior, c.Params = "work", events.JSON([]byte("1"))
		c.Task, c.NotBefore = events.TaskID(fmt.Sprint("other-", len(m.entries))), m.now.Add(time.Hour*24*365)
		m.post(projection.SenderLane{Sender: "other", Lane: command.LaneSubmit}, []command.Command{c})
		m.turn(nil, nil, true)
	}
}

// old reports that a copy comes so late that its number may be forgotten. A report of progress would count then,
// which no harness needs to know.
func (m *shardMachine) old(b *command.Batch) bool {
	return m.now-b.Made > events.Millis(command.MaxBatchAge.Milliseconds())
}

func isProgress(c command.Command) bool {
	_, is := c.(*command.Progress)
	return is
}

// machineCommands lists what the machine sends.
var machineCommands = command.Table{
	1: command.Empty[command.Submit],
	2: command.Empty[command.Merge],
	3: command.Empty[command.Complete],
	4: command.Empty[command.Progress],
	5: command.Empty[command.Operate],
}

// deliver brings a copy of a batch, as its bytes say.
func (m *shardMachine) deliver(s *laneState, i int) {
	if b := s.sent[i]; m.old(b) && slices.ContainsFunc(b.Commands, isProgress) {
		s.answered = true // its sender has given up
		return
	}
	b, err := machineCommands.DecodeBatch(s.sent[i].Encode())
	if err != nil {
		m.t.Fatalf("batch: %v", err)
	}
	m.pending[b.Lane] = append(m.pending[b.Lane], Delivery{Batch: b, Reply: func(b *command.Batch, answers []command.Answer, _ bool) { m.hear(b, answers) }})
}

// hear takes an answer. The answer to a batch that caused events is the same for ever.
func (m *shardMachine) hear(b *command.Batch, answers []command.Answer) {
	key := batchKey{projection.SenderLane{Sender: b.Sender, Lane: b.Lane}, b.Number}
	if answers[0].Code == command.AnswerClock {
		if !m.old(b) {
			m.t.Fatalf("batch %v of %d is refused as too old at %d", key, b.Made, m.now)
		}
		m.senders[key.SenderLane].answered = true
		return
	}
	if m.old(b) { // nobody waits for it
		return
	}
	if first, again := m.decided[key]; again && !reflect.DeepEqual(first, answers) {
		m.t.Fatalf("batch %v was answered %+v, now %+v", key, first, answers)
	}
	if m.effects[key] { // without events it leaves no trace, and another owner decides anew
		m.decided[key] = answers
	}
	if s := m.senders[key.SenderLane]; b.Number == uint64(len(s.sent)) {
		s.answered = true
	}
	for i, a := range answers {
		if c, ok := b.Commands[i].(*command.Submit); ok && a.Code == command.AnswerOK {
			m.wantCreated(c.Task, a.Life)
		}
	}
}

// wantCreated checks that an acknowledged submit has its Created in the journal.
func (m *shardMachine) wantCreated(id events.TaskID, life events.Ref) {
	for i := range m.log {
		if ev := &m.log[i]; ev.Position.Ref == life && ev.Task == id && ev.Kind() == events.KindCreated {
			return
		}
	}
	m.t.Fatalf("submit of %s was acknowledged with life %d, which the journal does not have", id, life)
}

// turn decides what is pending; lost nodes first, starts last. If the commit is refused, nothing has happened.
func (m *shardMachine) turn(lost, nodes []string, commit bool) {
	o := m.own
	var d *command.Decider
	o.pending.reset()
	o.entry.Reset(events.Entry{Number: m.state.Number + 1, Epoch: 1, Owner: "owner", Time: m.now, Prev: m.state.Hash})
	d = &command.Decider{State: m.state, Entry: &o.entry, Now: m.now, Wall: m.now, Note: o.note}
	for _, node := range lost {
		d.Lose(node)
	}
	o.decideLane(d, command.LaneWork, m.pending[command.LaneWork])
	o.decideLane(d, command.LaneSubmit, m.pending[command.LaneSubmit])
	m.state.MakeDue(m.now)
	for _, node := range nodes {
		if t := m.state.Ready("work"); t != nil {
			d.Start(t, node, 0, 9*time.Second)
		}
	}
	if d.Err != nil {
		m.t.Fatalf("decided what the fold refuses: %v", d.Err)
	}
	m.pending = [command.LaneCount][]Delivery{}
	if !commit {
		m.takeOver()
		return
	}
	m.commit()
	for _, r := range o.pending.replies {
		r.Reply(r.Batch, r.answers, true)
	}
}

func (m *shardMachine) commit() {
	e := &m.own.entry
	if len(e.Entry.Events) == 0 {
		return
	}
	data, err := e.Seal()
	if err != nil {
		m.t.Fatalf("seal: %v", err)
	}
	stored, err := events.Decode(data)
	if err != nil {
		m.t.Fatalf("decode: %v", err)
	}
	m.state.Seal(&e.Entry)
	for _, o := range stored.Origins {
		key := batchKey{projection.SenderLane{Sender: o.Sender, Lane: o.Lane}, o.Number}
		if m.effects[key] {
			m.t.Fatalf("batch %v was decided twice", key)
		}
		m.effects[key] = true
	}
	m.entries = append(m.entries, stored)
	m.log = append(m.log, stored.Events...)
}

var machineTasks = []string{"a", "b", "orders/1", "orders/2"}

func drawCommand(t *rapid.T, m *shardMachine, lane uint8) command.Command {
	id := events.TaskID(rapid.SampledFrom(machineTasks).Draw(t, "task"))
	task := m.state.Task(id)
	if lane == command.LaneWork {
		c := &command.Complete{Task: id, Node: rapid.SampledFrom([]string{"n-1", "n-2"}).Draw(t, "node"),
			How: command.Completion(rapid.IntRange(0, 3).Draw(t, "how")), Error: &events.Error{Code: "x"}, Wait: time.Second}
		if task != nil {
			c.Started = task.Started - events.Ref(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "stale"))
			if task.Node != "" && rapid.IntRange(0, 3).Draw(t, "from") > 0 {
				c.Node = task.Node
			}
		}
		c.ByPolicy = c.How == command.Failed && rapid.Bool().Draw(t, "policy")
		if rapid.Bool().Draw(t, "again") {
			c.Next = m.now.Add(time.Second)
		}
		if rapid.IntRange(0, 4).Draw(t, "progress") == 0 {
			return &command.Progress{Task: id, Started: c.Started, Node: c.Node, Progress: events.Progressed{Done: 1}}
		}
		return c
	}
	submit := command.Submit{Task: id, Behavior: "work", Policy: policyOf(events.Policy{MaxAttempts: 2, MaxLost: 2, Retain: 20 * time.Second,
		Existing: events.Existing(rapid.IntRange(0, 1).Draw(t, "existing"))}), Params: events.JSON([]byte(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "params")))),
		RequestID: rapid.SampledFrom([]string{"", "", "r-1"}).Draw(t, "request")}
	switch rapid.IntRange(0, 3).Draw(t, "command") {
	case 0:
		return &command.Operate{Task: id, Do: rapid.SampledFrom(operations).Draw(t, "do")}
	case 1:
		c := &command.Merge{Submit: submit}
		if task != nil {
			c.Life, c.Seq = task.Created, task.Seq-uint64(rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "late"))
		}
		return c
	}
	return &submit
}

func policyOf(p events.Policy) events.Policy {
	complete, err := p.Complete()
	if err != nil {
		panic(err)
	}
	return complete
}

func TestDecide_AnySequenceOfCommandsCopiesAndOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newShardMachine(t)
		lane := func() projection.SenderLane {
			return projection.SenderLane{Sender: rapid.SampledFrom([]string{"c-1", "c-2"}).Draw(t, "sender"),
				Lane: rapid.SampledFrom([]uint8{command.LaneSubmit, command.LaneWork}).Draw(t, "lane")}
		}
		nodes := rapid.SliceOfN(rapid.SampledFrom([]string{"n-1", "n-2"}), 0, 3)
		t.Repeat(map[string]func(*rapid.T){
			"post": func(t *rapid.T) {
				l := lane()
				commands := make([]command.Command, rapid.IntRange(1, 3).Draw(t, "commands"))
				for i := range commands {
					commands[i] = drawCommand(t, m, l.Lane)
				}
				m.post(l, commands)
			},
			"late copy": func(t *rapid.T) {
				if s := m.senders[lane()]; s != nil {
					m.deliver(s, rapid.IntRange(0, len(s.sent)-1).Draw(t, "copy"))
				}
			},
			"turn": func(t *rapid.T) { m.turn(nil, nodes.Draw(t, "free"), true) },
			"loss": func(t *rapid.T) {
				m.turn([]string{rapid.SampledFrom([]string{"n-1", "n-2"}).Draw(t, "node")}, nil, true)
			},
			"refuse": func(t *rapid.T) { m.turn(nil, nodes.Draw(t, "free"), false) },
			"time": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 10_000).Draw(t, "ms")) * time.Millisecond)
			},
			"hour":  func(*rapid.T) { m.hour() },
			"owner": func(*rapid.T) { m.takeOver() },
			"":      func(*rapid.T) { m.checkState() },
		})
		m.checkJournal()
	})
}

// checkState holds the present state to the budgets.
func (m *shardMachine) checkState() {
	for t := range m.state.Tasks() {
		if int(t.Lost) > t.Kind.Policy.MaxLost || int(t.Lost) == t.Kind.Policy.MaxLost && !t.RunEnded {
			m.t.Fatalf("%s was lost %d times and goes on", t.ID, t.Lost)
		}
		if t.Cancelled && !t.OnNode() {
			m.t.Fatalf("%s is cancelled, and its attempt is over: %+v", t.ID, *t)
		}
	}
}

// checkJournal holds the whole journal to what must be true of every one.
func (m *shardMachine) checkJournal() {
	type history struct {
		open      bool // an attempt is under way
		cancelled bool // and since then nobody asked for a run
	}
	tasks := map[events.TaskID]*history{}
	numbers := map[projection.SenderLane]uint64{}
	for _, e := range m.entries {
		for _, o := range e.Origins {
			lane := projection.SenderLane{Sender: o.Sender, Lane: o.Lane}
			if o.Number <= numbers[lane] {
				m.t.Fatalf("entry %d decides batch %d of %v after batch %d", e.Number, o.Number, lane, numbers[lane])
			}
			numbers[lane] = o.Number
		}
	}
	for i := range m.log {
		ev := &m.log[i]
		h := tasks[ev.Task]
		if h == nil {
			h = &history{}
			tasks[ev.Task] = h
		}
		switch ev.Kind() {
		case events.KindCreated:
			*h = history{}
		case events.KindStarted:
			if h.open || h.cancelled {
				m.t.Fatalf("%s is started while an attempt is under way (%t) or after it was cancelled (%t)", ev.Task, h.open, h.cancelled)
			}
			h.open = true
		case events.KindSucceeded, events.KindSnoozed, events.KindLost, events.KindReleased:
			if !h.open {
				m.t.Fatalf("%s: %s of no attempt", ev.Task, ev.Kind())
			}
			h.open = false
		case events.KindFailed:
			h.open = false
		case events.KindCancelRequested:
			h.cancelled = true
		case events.KindRescheduled:
			h.cancelled = false
		}
	}
}

// operations lists what an operator may ask for.
var operations = []task.Operation{task.Cancel, task.RunNow, task.Retry, task.Suspend, task.Resume, task.Delete}
