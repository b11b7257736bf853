package command_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/settings"
	"taskledger/task"
)

// matrixMachine is a shard whose every entry is predicted.
type matrixMachine struct {
	*journalDriver
	matrix   matrix
	snapshot *projection.Snapshot // under way
	began    uint64               // first entry of the present ownership
}

// turn commits steps as one entry and compares what came of it with the prediction.
func (m *matrixMachine) turn(steps []func(d *command.Decider)) {
	m.matrix.now, m.matrix.entry, m.matrix.want = m.now, m.state.Number+1, nil
	m.entry(func(d *command.Decider) {
		d.ParamsMayGo, d.Refusal, d.LiveLimit = m.matrix.paramsMayGo, m.matrix.refusal, m.matrix.limit
		m.state.MakeDue(m.now)
		for _, step := range steps {
			step(d)
			m.legal(d)
		}
	})
	if len(m.matrix.want) > 0 {
		m.matrix.seal()
	}
	var got []string
	if m.state.Number == m.matrix.entry {
		for _, ev := range m.entries[len(m.entries)-1].Events {
			got = append(got, fmt.Sprint(ev.Task, " ", ev.Kind()))
		}
	}
	if !slices.Equal(got, m.matrix.want) {
		m.t.Fatalf("entry %d has the events %q, want %q", m.matrix.entry, got, m.matrix.want)
	}
	m.compare(m.state)
}

// compare holds a fold to the prediction, and to what the state matrix says must and must not be there.
func (m *matrixMachine) compare(state *projection.Shard) {
	m.t.Helper()
	if state.Len() != len(m.matrix.tasks) {
		m.t.Fatalf("%d tasks, want %d: %v", state.Len(), len(m.matrix.tasks), slices.Sorted(maps.Keys(m.matrix.tasks)))
	}
	var paused []string
	for _, p := range settings.Of(state).Pauses() {
		paused = append(paused, p.Behavior)
	}
	if want := slices.Sorted(maps.Keys(m.matrix.paused)); !slices.Equal(paused, want) {
		m.t.Fatalf("paused are %q, want %q", paused, want)
	}
	finished := 0
	for id, p := range m.matrix.tasks {
		t := state.Task(id)
		if t == nil {
			m.t.Fatalf("%s is gone, want %+v", id, *p)
		}
		want := *p
		if want.kept = p.kept || p.params == ""; !want.kept {
			want.params = ""
		}
		if got := seen(t); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			m.t.Fatalf("%s is\n%+v, want\n%+v", id, got, want)
		}
		if p.final() {
			finished++
		}
		m.stamps(t)
	}
	if state.Finished() != finished || state.Live() != state.Len()-finished {
		m.t.Fatalf("%d finished and %d live tasks, want %d of %d finished", state.Finished(), state.Live(), finished, state.Len())
	}
}

// stamps holds a task to the columns "must be there" and "must not" of the state matrix.
func (m *matrixMachine) stamps(t *projection.Task) {
	m.t.Helper()
	running, result := t.Status == task.Running, t.Result != nil || t.ResultElided
	var bad bool
	switch t.Status {
	case task.Created:
		bad = t.ScheduleNotBefore() == 0 || t.StartedAt != 0 || result || t.Error != nil
	case task.Running:
		bad = t.Attempt == 0 || t.StartedAt == 0 || t.RecheckNotBefore() == 0 || t.LostNotBefore() < t.StartedAt || result || t.Error != nil
	case task.Success:
		bad = t.StartedAt == 0 || t.Error != nil
	case task.Failure:
		bad = t.Error == nil || result
	default:
		bad = true
	}
	if bad || !running && (t.LostNotBefore() != 0 || t.Node != "") {
		m.t.Fatalf("%s has what its state forbids, or lacks what it demands: %+v", t.ID, *t)
	}
}

// restore replaces the fold by what its snapshot, begun some entries ago, and the entries since come to.
func (m *matrixMachine) restore() {
	if m.snapshot == nil {
		return
	}
	for !m.snapshot.Step(3) {
	}
	r := projection.NewRestorer(0)
	for _, part := range m.snapshot.Parts() {
		if err := r.Add(part); err != nil {
			m.t.Fatalf("restore: %v", err)
		}
	}
	state, err := r.Done()
	if err != nil {
		m.t.Fatalf("restore: %v", err)
	}
	for _, e := range m.entries[m.snapshot.Entry:] {
		if err := state.Replay(e); err != nil {
			m.t.Fatalf("replay on the snapshot of entry %d: %v", m.snapshot.Entry, err)
		}
	}
	m.adopt(state)
}

// replay replaces the fold by that of the whole journal.
func (m *matrixMachine) replay() {
	state := projection.NewShard(0)
	for _, e := range m.entries {
		if err := state.Replay(e); err != nil {
			m.t.Fatalf("replay: %v", err)
		}
	}
	m.adopt(state)
}

func (m *matrixMachine) adopt(state *projection.Shard) {
	if state.Digest(nil) != m.state.Digest(nil) || state.Hash != m.state.Hash || state.Number != m.state.Number {
		m.t.Fatalf("another owner has another state after entry %d", state.Number)
	}
	m.state, m.snapshot, m.began = state, nil, state.Number+1
	m.compare(state)
}

var (
	matrixNodes     = []string{"n-1", "n-2"}
	matrixBehaviors = []string{"work", "other"}
	matrixTasks     = []events.TaskID{"a", "b", "c", "orders/1", "orders/2", "orders/3"}
)

// drawn makes a command, most of which are possible in the task's present state, and its prediction.
func (m *matrixMachine) drawn(t *rapid.T) func(d *command.Decider) {
	id := rapid.SampledFrom(matrixTasks).Draw(t, "task")
	kind := rapid.SampledFrom([]string{"submit", "submit", "merge", "complete", "complete", "complete", "progress", "operate", "operate",
		"pause", "start", "start", "start", "lose", "reconcile"}).Draw(t, "command")
	behavior := rapid.SampledFrom(matrixBehaviors).Draw(t, "behavior")
	node := rapid.SampledFrom(matrixNodes).Draw(t, "node")
	at := rapid.SampledFrom([]events.Millis{0, 0, m.now - 1000, m.now + 2000}).Draw(t, "at")
	late := rapid.IntRange(0, 9).Draw(t, "late") == 0
	n := rapid.Uint32().Draw(t, "n")
	switch kind {
	case "submit":
		return m.predicted(m.ask(t, id, behavior, at))
	case "merge":
		return m.predicted(&command.Merge{Submit: *m.ask(t, id, behavior, at), Seq: uint64(n % 2), Operator: n%8 > 5}) // Seq 1: of a stale state
	case "complete":
		c := &command.Complete{Task: id, Node: node, How: command.Completion(rapid.IntRange(0, 3).Draw(t, "how")), Error: &events.Error{Code: "x"},
			Result: events.JSON(fmt.Append(nil, n%3)), Next: at, Wait: time.Duration(n%5000) * time.Millisecond, Random: n}
		c.ByPolicy = c.How == command.Failed && n%2 == 0
		return m.attempt(late, &c.Task, &c.Started, &c.Node, c)
	case "progress":
		c := &command.Progress{Task: id, Node: node, Progress: events.Progressed{Note: fmt.Sprint(n % 4)}}
		return m.attempt(late, &c.Task, &c.Started, &c.Node, c)
	case "operate":
		if late {
			id = events.Settings
		}
		return m.predicted(&command.Operate{Task: id, Do: task.Operation(rapid.IntRange(0, int(task.OperationCount)-1).Draw(t, "do"))})
	case "pause":
		return m.predicted(&command.Pause{Behavior: behavior, Paused: n%2 == 0, Reason: fmt.Sprint(n % 3)})
	case "start":
		return func(d *command.Decider) {
			next, ready := m.matrix.next(behavior), m.state.Ready(behavior)
			switch {
			case (next == nil) != (ready == nil):
				t.Fatalf("ready is %+v, want %+v", ready, next)
			case next == nil:
				return
			case ready.Priority != next.priority || ready.Due != next.due:
				t.Fatalf("%s is first, want one of priority %d due at %d", ready.ID, next.priority, next.due)
			}
			d.Start(ready, node, uint64(n%4), 9*time.Second)
			m.matrix.start(ready.ID, node, uint64(n%4))
		}
	case "lose":
		return func(d *command.Decider) {
			d.Lose(node)
			m.matrix.lose(node)
		}
	}
	return m.reconcile(t, node, late, uint64(n%4))
}

func (m *matrixMachine) ask(t *rapid.T, id events.TaskID, behavior string, at events.Millis) *command.Submit {
	c := &command.Submit{Task: id, Behavior: behavior, NotBefore: at, Delay: rapid.SampledFrom([]time.Duration{0, 0, time.Second, 30 * time.Second}).Draw(t, "submit delay"), Priority: rapid.SampledFrom([]int64{0, 0, 0, 7, -1}).Draw(t, "priority"),
		Policy: policyOf(events.Policy{MaxAttempts: rapid.IntRange(1, 3).Draw(t, "attempts"), MaxLost: rapid.IntRange(1, 3).Draw(t, "losses"),
			LostDelay: time.Duration(rapid.IntRange(0, 1).Draw(t, "delay")) * time.Second, Backoff: events.Backoff{Base: time.Second, Max: 3 * time.Second},
			Existing: events.Existing(rapid.IntRange(0, 1).Draw(t, "existing")), Retain: time.Duration(rapid.IntRange(1, 30).Draw(t, "retain")) * time.Second,
			RetainCount: rapid.IntRange(1, 3).Draw(t, "count"), Every: rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 20 * time.Second}).Draw(t, "every")}),
		RequestID: rapid.SampledFrom([]string{"", "", "r-1", "r-2", "r-2#aaaaaaaaaaaaaaaa", "r-2#bbbbbbbbbbbbbbbb"}).Draw(t, "request"), Merges: rapid.IntRange(0, 3).Draw(t, "merges") == 0,
		RunNow: rapid.Bool().Draw(t, "run now")}
	if rapid.IntRange(0, 9).Draw(t, "other") > 0 {
		c.Behavior = "work"
	}
	if text := rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "params"); text != "" {
		c.Params = events.JSON([]byte(text))
	}
	return c
}

// predicted decides a command and compares its answer.
func (m *matrixMachine) predicted(c command.Command) func(d *command.Decider) {
	return func(d *command.Decider) {
		var want command.Answer
		if merge, ok := c.(*command.Merge); ok { // of the state as it is when the command is decided
			if t := m.state.Task(merge.Submit.Task); t != nil {
				merge.Life, merge.Seq = t.Created, t.Seq-merge.Seq
			}
		}
		m.matrix.live = m.state.LiveBytes()
		got := d.Decide(c)
		switch c := c.(type) {
		case *command.Submit:
			want = m.matrix.submit(c)
		case *command.Merge:
			want = m.matrix.merge(c)
		case *command.Complete:
			want = m.matrix.complete(c)
		case *command.Progress:
			want = m.matrix.report(c)
		case *command.Operate:
			want = m.matrix.operate(c)
		case *command.Pause:
			want = m.matrix.pause(c)
		}
		if got.Code != want.Code || got.Life != want.Life || got.Run != want.Run || got.Joined != want.Joined {
			m.t.Fatalf("%T %+v is answered with %+v, want %+v", c, c, got, want)
		}
	}
}

// attempt makes a report one of an attempt that runs, unless it is late.
func (m *matrixMachine) attempt(late bool, id *events.TaskID, started *events.Ref, node *string, c command.Command) func(d *command.Decider) {
	decide := m.predicted(c)
	return func(d *command.Decider) {
		if p := m.matrix.tasks[*id]; p == nil || p.node == "" {
			for other, q := range m.matrix.tasks { // another that runs
				if q.node != "" && (m.matrix.tasks[*id] == nil || m.matrix.tasks[*id].node == "" || other < *id) {
					*id = other
				}
			}
		}
		if p := m.matrix.tasks[*id]; p != nil {
			*started = p.started
			if late {
				*started--
			} else if p.node != "" {
				*node = p.node
			}
		}
		decide(d)
	}
}

// reconcile lists some of a node's attempts, and perhaps one that is not its own.
func (m *matrixMachine) reconcile(t *rapid.T, node string, foreign bool, answered uint64) func(d *command.Decider) {
	listed, place := rapid.IntRange(0, 2).Draw(t, "listed"), rapid.IntRange(-3, 2)
	from, to := place.Draw(t, "from"), place.Draw(t, "to") // the places where the range begins and ends, if any
	self := rapid.SampledFrom(matrixNodes).Draw(t, "self")
	return func(d *command.Decider) {
		c := &command.Reconcile{Node: node, Answered: answered}
		for i, id := range m.matrix.on(node) {
			started := m.matrix.tasks[id].started
			if listed > 0 {
				listed--
				c.Attempts = append(c.Attempts, command.AttemptName{id, started})
			}
			if i == from {
				c.From = started
			}
			if i == to {
				c.To = started
			}
		}
		if foreign {
			c.Attempts = append(c.Attempts, command.AttemptName{"nobody", 1})
		}
		got, all := reconcile(t, d, c, self, m.began)
		if want := m.matrix.reconcile(c, self, m.began); !all || !slices.Equal(got, want) {
			t.Fatalf("of %+v are over %v, want %v", c, got, want)
		}
	}
}

func TestDecide_AnySequenceKeepsTheStateMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &matrixMachine{journalDriver: newJournalDriver(t), began: 1, matrix: matrix{tasks: map[events.TaskID]*taskModel{}, paused: map[string]bool{}, paramsMayGo: rapid.Bool().Draw(t, "params may go")}}
		turn := func(t *rapid.T) {
			steps := make([]func(*command.Decider), rapid.IntRange(1, 8).Draw(t, "steps"))
			for i := range steps {
				steps[i] = m.drawn(t)
			}
			m.turn(steps)
		}
		t.Repeat(map[string]func(*rapid.T){
			"turn":         turn,
			"another turn": turn,
			"time":         func(t *rapid.T) { m.now += events.Millis(rapid.IntRange(1, 8000).Draw(t, "ms")) },
			"owner": func(t *rapid.T) {
				rapid.SampledFrom([]func(){func() { m.snapshot = m.state.BeginSnapshot() }, m.restore, m.restore, m.replay}).Draw(t, "owner")()
				m.matrix.refusal = rapid.SampledFrom([]string{"", "", "", "etcd is full"}).Draw(t, "refusal")
				m.matrix.limit = rapid.SampledFrom([]int64{0, 0, 300}).Draw(t, "limit")
			},
		})
	})
}

func TestLose_FailsTheRunWhenTheLossesAreUsedUp(t *testing.T) {
	l := newJournalDriver(t)
	l.decide(l.ask(events.Policy{MaxLost: 3, LostDelay: time.Second}))
	l.start(ledgerTask, "n-1")
	if kinds := l.lose("n-1"); !slices.Equal(kinds, []string{"Lost"}) || l.task().Due != l.now {
		t.Errorf("first loss: %v, due at %d", kinds, l.task().Due)
	}
	l.start(ledgerTask, "n-1")
	kinds := l.lose("n-1")
	if wait := l.task().Due - l.now; !slices.Equal(kinds, []string{"Lost"}) || wait < 500 || wait > 1000 {
		t.Errorf("second loss: %v, due in %d ms", kinds, wait)
	}
	l.now = l.task().Due
	l.start(ledgerTask, "n-2")
	if kinds := l.lose("n-1"); kinds != nil {
		t.Errorf("the loss of another node led to %v", kinds)
	}
	if kinds := l.lose("n-2"); !slices.Equal(kinds, []string{"Lost", "Failed"}) || l.task().Error.Code != events.CodeLost || !l.task().Final() {
		t.Errorf("third loss of three: %v, %+v", kinds, l.task())
	}
}

// An entry that grew with the slots of a node that died could not be committed, by this owner or any other.
func TestLose_AnyNumberOfAttemptsFitsIntoEntries(t *testing.T) {
	const count = 6000
	l := newJournalDriver(t)
	for i := 0; i < count; {
		l.entry(func(d *command.Decider) {
			for ; i < count && !full(d); i++ {
				c := l.ask(events.Policy{MaxLost: 1})
				c.Task = events.TaskID(fmt.Sprintf("%0128d", i))
				d.Decide(c)
				d.Start(l.state.Task(c.Task), "n-1", 0, time.Second)
			}
			l.legal(d)
		})
	}
	entries, all := 0, false
	for ; !all; entries++ {
		l.entry(func(d *command.Decider) {
			all = d.Lose("n-1")
			l.legal(d)
		})
	}
	left := 0
	for range l.state.Running("n-1") {
		left++
	}
	if left != 0 || entries < 2 {
		t.Errorf("%d attempts are still running after %d entries", left, entries)
	}
}
