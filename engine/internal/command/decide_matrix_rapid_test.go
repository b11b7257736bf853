package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/projection"
)

// taskModel is what the state matrix says a task is, written down without the fold and its table.
type taskModel struct {
	behavior string
	policy   events.Policy
	priority int64

	status                            projection.Status
	suspended, cancelled, further     bool
	over                              bool // the budget belongs to a run that has ended
	attempt, failures, losses, runs   uint32
	node                              string
	offer                             uint64
	life, last, started, ended        events.Ref
	startedAt, endedAt, due           events.Millis
	seq                               uint64
	params, result, failure, progress string
	kept                              bool // params are in memory
	requests                          []string
}

func (p *taskModel) final() bool {
	return (p.status == projection.Success || p.status == projection.Failure) && p.due == 0
}

func (p *taskModel) waits() bool {
	return p.status == projection.Created || p.status == projection.Running && p.node == ""
}

// matrix predicts what commands lead to: the kinds of the events, the answers and the tasks.
type matrix struct {
	now   events.Millis
	entry uint64
	drop  bool
	brake string
	limit int64 // of live bytes
	live  int64 // bytes, when the command at hand was decided
	tasks map[events.TaskID]*taskModel
	want  []string // "task Kind" of the events of the entry under way
}

// add predicts an event, which changes the task.
func (m *matrix) add(id events.TaskID, kind events.Kind, change func(p *taskModel)) *taskModel {
	p := m.tasks[id]
	ref := events.RefOf(m.entry, len(m.want))
	m.want = append(m.want, fmt.Sprint(id, " ", kind))
	if p == nil {
		p = &taskModel{life: ref}
		m.tasks[id] = p
	}
	p.seq, p.last = p.seq+1, ref
	change(p)
	if p.final() {
		p.kept = false
		if p.status == projection.Failure && !p.over {
			p.endRun()
		}
	}
	return p
}

func (p *taskModel) endRun() { p.runs, p.over, p.further = p.runs+1, true, false }

func (p *taskModel) request(id string) {
	if id == "" || slices.Contains(p.requests, id) {
		return
	}
	p.requests = append(p.requests, id)
	p.requests = p.requests[max(0, len(p.requests)-projection.MaxRequests):]
}

// end predicts the end of an attempt, or of a task that waits.
func (m *matrix) end(id events.TaskID, status projection.Status, what string, next events.Millis) {
	kind := events.KindSucceeded
	if status == projection.Failure {
		kind = events.KindFailed
	}
	m.add(id, kind, func(p *taskModel) {
		p.status, p.node, p.due, p.cancelled = status, "", next, false
		p.result, p.failure, p.ended, p.endedAt = "", "", p.last, m.now
		if status == projection.Success {
			p.result = what
		} else {
			p.failure = what
			p.failures++
		}
		if status == projection.Success || next == 0 {
			p.endRun()
		}
	})
}

// endAttempt is end, and what follows from parameters that were merged while the attempt ran.
func (m *matrix) endAttempt(id events.TaskID, status projection.Status, what string, next events.Millis) {
	p := m.tasks[id]
	again := p.further && !p.cancelled
	if p.cancelled {
		next = 0
		if status == projection.Failure {
			what = events.CodeCancelled
		}
	}
	m.end(id, status, what, next)
	if again && (status == projection.Success || next == 0) {
		m.reschedule(id, m.now, "")
	}
}

func (m *matrix) reschedule(id events.TaskID, at events.Millis, request string) {
	m.add(id, events.KindRescheduled, func(p *taskModel) { p.due = at; p.request(request) })
}

func (m *matrix) mergeParams(id events.TaskID, params, request string) {
	m.add(id, events.KindMerged, func(p *taskModel) {
		p.params, p.kept = params, true
		p.further = p.further || p.node != ""
		p.request(request)
	})
}

// wait predicts that a running task waits to run again, unless it was cancelled.
func (m *matrix) wait(id events.TaskID, kind events.Kind, until events.Millis) {
	p := m.add(id, kind, func(p *taskModel) {
		p.node, p.due = "", until
		if kind == events.KindLost {
			p.losses++
		}
	})
	switch {
	case p.cancelled:
		m.end(id, projection.Failure, events.CodeCancelled, 0)
	case kind == events.KindLost && int(p.losses) >= p.policy.MaxLost:
		m.endAttempt(id, projection.Failure, events.CodeLost, 0)
	}
}

// held is how much of the parameters is in memory.
func (p *taskModel) held() int {
	if p.kept {
		return len(p.params)
	}
	return 0
}

func (m *matrix) forgot(p *taskModel) bool { return m.drop && p.final() && p.params != "" && !p.kept }

// room reports whether a submit may ask for a live task more, or for a larger one.
func (m *matrix) room(adds int) bool {
	return m.brake == "" && (m.limit == 0 || m.live+int64(adds) < m.limit)
}

func (m *matrix) submit(c *Submit) Answer {
	p := m.tasks[c.Task]
	at := max(c.NotBefore, m.now)
	switch {
	case c.Priority < 0:
		return Answer{Code: AnswerInvalid}
	case p == nil && !m.room(len(c.Params)):
		return Answer{Code: AnswerOverload}
	case p == nil:
		p = m.add(c.Task, events.KindCreated, func(p *taskModel) {
			p.status, p.behavior, p.policy, p.priority = projection.Created, c.Behavior, c.Policy, c.Priority
			p.due, p.params, p.kept = at, string(c.Params), true
			p.request(c.RequestID)
		})
		return Answer{Life: p.life, Run: 1}
	case p.behavior != c.Behavior:
		return Answer{Code: AnswerState}
	case c.RequestID != "" && slices.Contains(p.requests, c.RequestID):
	case p.final() && c.Policy.Existing == events.ReturnRecorded:
	case m.forgot(p) && !m.room(len(c.Params)), p.final() && !m.forgot(p) && !c.Merges && !m.room(p.held()):
		return Answer{Code: AnswerOverload}
	case m.forgot(p):
		m.reschedule(c.Task, at, c.RequestID)
		m.mergeParams(c.Task, string(c.Params), "")
	case c.Merges:
		return Answer{Code: AnswerMerge, Joined: true}
	default:
		m.join(c)
	}
	return p.joined()
}

func (m *matrix) join(c *Submit) {
	p := m.tasks[c.Task]
	waits := p.status == projection.Created || c.RunNow && (p.status == projection.Success || p.status == projection.Failure)
	if at := max(c.NotBefore, m.now); p.final() || waits && at < p.due {
		m.reschedule(c.Task, at, c.RequestID)
	}
}

func (p *taskModel) joined() Answer {
	a := Answer{Joined: true, Life: p.life, Run: p.runs}
	if !p.final() {
		a.Run++
	}
	if p.further {
		a.Run++
	}
	if a.Run > p.runs {
		a.Number = int64(p.last)
	}
	return a
}

func (m *matrix) merge(c *Merge) Answer {
	p := m.tasks[c.Submit.Task]
	changes, held := p != nil && (p.params != string(c.Submit.Params) || !p.kept && p.params != ""), 0
	if p != nil {
		held = p.held()
	}
	switch {
	case c.Submit.Priority < 0:
		return Answer{Code: AnswerInvalid}
	case p == nil || p.life != c.Life || p.seq != c.Seq:
		return Answer{Code: AnswerChanged}
	case c.Submit.RequestID != "" && slices.Contains(p.requests, c.Submit.RequestID):
		return p.joined()
	case p.final() && c.Submit.Policy.Existing == events.ReturnRecorded && !c.Operator:
		return p.joined()
	case !m.room(len(c.Submit.Params)-held) && !c.Operator && (p.final() || changes && (m.brake != "" || len(c.Submit.Params) > held)):
		return Answer{Code: AnswerOverload}
	case m.forgot(p):
		m.reschedule(c.Submit.Task, max(c.Submit.NotBefore, m.now), c.Submit.RequestID)
		m.mergeParams(c.Submit.Task, string(c.Submit.Params), "")
		return p.joined()
	case changes:
		m.mergeParams(c.Submit.Task, string(c.Submit.Params), c.Submit.RequestID)
	}
	m.join(&c.Submit)
	return p.joined()
}

// current reports whether an attempt is the task's.
func (m *matrix) current(id events.TaskID, started events.Ref, node string) bool {
	p := m.tasks[id]
	return p != nil && p.node != "" && p.node == node && p.started == started
}

func (m *matrix) complete(c *Complete) Answer {
	if !m.current(c.Task, c.Started, c.Node) {
		return Answer{Code: AnswerStale}
	}
	p := m.tasks[c.Task]
	soonest := max(m.now, p.startedAt+50)
	next := c.Next
	if next != 0 {
		next = max(next, soonest, m.now+events.Millis(max(c.Wait, 0).Milliseconds()))
	}
	switch c.How {
	case Succeeded:
		m.endAttempt(c.Task, projection.Success, string(c.Result), next)
	case Failed:
		if c.ByPolicy {
			next = 0
			if tries := int(p.failures) + 1; tries < p.policy.MaxAttempts {
				most := min(p.policy.Backoff.Base<<(tries-1), p.policy.Backoff.Max)
				next = m.now + events.Millis(time.Duration(float64(most)*float64(c.Random)/(1<<32)).Milliseconds())
			}
		}
		m.endAttempt(c.Task, projection.Failure, c.Error.Code, next)
	case Snoozed:
		m.wait(c.Task, events.KindSnoozed, max(soonest, m.now+events.Millis(max(c.Wait, 0).Milliseconds())))
	case Released:
		m.wait(c.Task, events.KindReleased, m.now)
	}
	return Answer{}
}

func (m *matrix) report(c *Progress) Answer {
	if !m.current(c.Task, c.Started, c.Node) {
		return Answer{Code: AnswerStale}
	}
	m.add(c.Task, events.KindProgressed, func(p *taskModel) { p.progress = c.Progress.Note })
	return Answer{}
}

func (m *matrix) operate(c *Operate) Answer {
	p := m.tasks[c.Task]
	switch {
	case p == nil:
		return Answer{Code: AnswerNotFound}
	case c.Task == events.Settings:
		return Answer{Code: AnswerState}
	case c.Do == DoRetry && m.forgot(p):
		return Answer{Code: AnswerMerge}
	}
	life := p.life
	ended := p.status == projection.Success || p.status == projection.Failure
	allowed := map[Operation]bool{DoCancel: !p.final(), DoRunNow: p.node == "" && !p.final(), DoRetry: ended, DoSuspend: !p.final(),
		DoResume: true, DoDelete: p.status != projection.Running}
	if !allowed[c.Do] {
		return Answer{Code: AnswerState}
	}
	switch c.Do {
	case DoCancel:
		switch {
		case p.waits():
			m.end(c.Task, projection.Failure, events.CodeCancelled, 0)
		case ended:
			m.reschedule(c.Task, 0, "")
		case !p.cancelled:
			m.add(c.Task, events.KindCancelRequested, func(p *taskModel) { p.cancelled = true })
		}
	case DoRunNow, DoRetry:
		if p.due == 0 || p.due > m.now {
			m.reschedule(c.Task, m.now, "")
		}
	case DoSuspend:
		if !p.suspended {
			m.add(c.Task, events.KindSuspended, func(p *taskModel) { p.suspended = true })
		}
	case DoResume:
		if p.suspended {
			m.add(c.Task, events.KindResumed, func(p *taskModel) { p.suspended = false })
		}
	case DoDelete:
		m.add(c.Task, events.KindDeleted, func(*taskModel) {})
		delete(m.tasks, c.Task)
	}
	return Answer{Life: life}
}

func (m *matrix) pause(c *Pause) Answer {
	var now struct {
		Paused []string `json:"paused"`
	}
	p := m.tasks[events.Settings]
	if p != nil {
		if err := json.Unmarshal([]byte(p.params)[1:], &now); err != nil {
			panic(err)
		}
	}
	if slices.Contains(now.Paused, c.Behavior) == c.Paused {
		return Answer{}
	}
	now.Paused = slices.DeleteFunc(now.Paused, func(b string) bool { return b == c.Behavior })
	if c.Paused {
		now.Paused = slices.Sorted(slices.Values(append(now.Paused, c.Behavior)))
	}
	text, err := json.Marshal(now)
	if err != nil {
		panic(err)
	}
	if p != nil {
		m.mergeParams(events.Settings, string(events.JSON(text)), "")
		return Answer{}
	}
	m.add(events.Settings, events.KindCreated, func(p *taskModel) {
		p.status, p.behavior, p.due, p.params, p.kept = projection.Created, settingsBehavior, m.now, string(events.JSON(text)), true
	})
	m.add(events.Settings, events.KindSuspended, func(p *taskModel) { p.suspended = true })
	return Answer{}
}

// on returns the tasks that run on a node, in the order they started.
func (m *matrix) on(node string) (ids []events.TaskID) {
	for id, p := range m.tasks {
		if p.node == node {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b events.TaskID) int { return cmp.Compare(m.tasks[a].started, m.tasks[b].started) })
	return ids
}

func (m *matrix) lose(node string) {
	for _, id := range m.on(node) {
		m.wait(id, events.KindLost, m.now+events.Millis(m.tasks[id].policy.LostDelay.Milliseconds()))
	}
}

// rollCall predicts which attempts are released, and which of the node's are over.
func (m *matrix) rollCall(c *Reconcile, self string, began uint64) (over []AttemptName) {
	for _, a := range c.Attempts {
		if !m.current(a.Task, a.Started, c.Node) || m.tasks[a.Task].cancelled {
			over = append(over, a)
		}
	}
	for _, id := range m.on(c.Node) {
		p := m.tasks[id]
		known := slices.Contains(c.Attempts, AttemptName{id, p.started})
		reached := p.offer != 0 && p.offer <= c.Answered || p.offer == 0 && (c.Node != self || p.started.Entry() < began)
		if !known && reached && p.started >= c.From && (c.To == 0 || p.started < c.To) {
			m.wait(id, events.KindReleased, m.now)
		}
	}
	return over
}

// next is the task of a behavior that starts next: of those with the highest priority one that was due first.
func (m *matrix) next(behavior string) (best *taskModel) {
	for _, p := range m.tasks {
		if p.behavior != behavior || p.suspended || p.due == 0 || p.due > m.now {
			continue
		}
		if best == nil || p.priority > best.priority || p.priority == best.priority && p.due < best.due {
			best = p
		}
	}
	return best
}

func (m *matrix) start(id events.TaskID, node string, offer uint64) {
	m.add(id, events.KindStarted, func(p *taskModel) {
		if p.over {
			p.failures, p.losses, p.over = 0, 0, false
		}
		p.status, p.node, p.offer, p.started, p.startedAt = projection.Running, node, offer, p.last, m.now
		p.attempt++
		p.due, p.result, p.failure, p.progress = 0, "", "", ""
	})
}

// seal ends the entry: finished tasks leave by number and by age.
func (m *matrix) seal() {
	finished := map[string][]events.TaskID{}
	for id, p := range m.tasks {
		if p.final() {
			finished[p.behavior] = append(finished[p.behavior], id)
		}
	}
	for _, ids := range finished {
		slices.SortFunc(ids, func(a, b events.TaskID) int {
			p, q := m.tasks[a], m.tasks[b]
			return cmp.Or(cmp.Compare(p.keptUntil(), q.keptUntil()), cmp.Compare(p.ended, q.ended))
		})
		for len(ids) > 0 && (len(ids) > m.tasks[ids[0]].policy.RetainCount || m.tasks[ids[0]].keptUntil() < m.now) {
			delete(m.tasks, ids[0])
			ids = ids[1:]
		}
	}
}

func (p *taskModel) keptUntil() events.Millis {
	return p.endedAt + events.Millis(p.policy.Retain.Milliseconds())
}

// seen is what the fold says of a task, in the words of the matrix.
func seen(t *projection.Task) taskModel {
	p := taskModel{behavior: t.Kind.Behavior, policy: t.Kind.Policy, priority: t.Priority, status: t.Status, suspended: t.Suspended,
		cancelled: t.Cancelled, further: t.Rerun, over: t.RunEnded, attempt: t.Attempt, failures: t.Failures, losses: t.Lost, runs: t.Runs,
		node: t.Node, offer: t.Offer, life: t.Created, last: t.Last, started: t.Started, ended: t.Outcome, startedAt: t.StartedAt,
		endedAt: t.EndedAt, due: t.Due, seq: t.Seq, params: string(t.Params), result: string(t.Result), kept: !t.ParamsElided, requests: t.Requests}
	if t.Error != nil {
		p.failure = t.Error.Code
	}
	if t.Progress != nil {
		p.progress = t.Progress.Note
	}
	return p
}

// matrixMachine is a shard whose every entry is predicted.
type matrixMachine struct {
	*journalDriver
	matrix   matrix
	snapshot *projection.Snapshot // under way
	began    uint64               // first entry of the present ownership
}

// turn commits steps as one entry and compares what came of it with the prediction.
func (m *matrixMachine) turn(steps []func(d *Decider)) {
	m.matrix.now, m.matrix.entry, m.matrix.want = m.now, m.state.Number+1, nil
	m.entry(func(d *Decider) {
		d.Drop, d.Refusal, d.LiveLimit = m.matrix.drop, m.matrix.brake, m.matrix.limit
		m.state.Ripen(m.now)
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
		if id == events.Settings {
			want.policy = t.Kind.Policy
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
	running, result := t.Status == projection.Running, t.Result != nil || t.ResultElided
	var bad bool
	switch t.Status {
	case projection.Created:
		bad = t.ScheduleNotBefore() == 0 || t.StartedAt != 0 || result || t.Error != nil
	case projection.Running:
		bad = t.Attempt == 0 || t.StartedAt == 0 || t.RecheckNotBefore() == 0 || t.LostNotBefore() < t.StartedAt || result || t.Error != nil
	case projection.Success:
		bad = t.StartedAt == 0 || t.Error != nil
	case projection.Failure:
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
func (m *matrixMachine) drawn(t *rapid.T) func(d *Decider) {
	id := rapid.SampledFrom(matrixTasks).Draw(t, "task")
	kind := rapid.SampledFrom([]string{"submit", "submit", "merge", "complete", "complete", "complete", "progress", "operate", "operate",
		"pause", "start", "start", "start", "lose", "roll call"}).Draw(t, "command")
	behavior := rapid.SampledFrom(matrixBehaviors).Draw(t, "behavior")
	node := rapid.SampledFrom(matrixNodes).Draw(t, "node")
	at := rapid.SampledFrom([]events.Millis{0, 0, m.now - 1000, m.now + 2000}).Draw(t, "at")
	late := rapid.IntRange(0, 9).Draw(t, "late") == 0
	n := rapid.Uint32().Draw(t, "n")
	switch kind {
	case "submit":
		return m.predicted(m.ask(t, id, behavior, at))
	case "merge":
		return m.predicted(&Merge{Submit: *m.ask(t, id, behavior, at), Seq: uint64(n % 2), Operator: n%8 > 5}) // Seq 1: of a stale state
	case "complete":
		c := &Complete{Task: id, Node: node, How: Completion(rapid.IntRange(0, 3).Draw(t, "how")), Error: &events.Error{Code: "x"},
			Result: events.JSON(fmt.Append(nil, n%3)), Next: at, Wait: time.Duration(n%5000) * time.Millisecond, Random: n}
		c.ByPolicy = c.How == Failed && n%2 == 0
		return m.attempt(late, &c.Task, &c.Started, &c.Node, c)
	case "progress":
		c := &Progress{Task: id, Node: node, Progress: events.Progressed{Note: fmt.Sprint(n % 4)}}
		return m.attempt(late, &c.Task, &c.Started, &c.Node, c)
	case "operate":
		if late {
			id = events.Settings
		}
		return m.predicted(&Operate{Task: id, Do: Operation(rapid.IntRange(0, int(OperationCount)-1).Draw(t, "do"))})
	case "pause":
		return m.predicted(&Pause{Behavior: behavior, Paused: n%2 == 0})
	case "start":
		return func(d *Decider) {
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
		return func(d *Decider) {
			d.Lose(node)
			m.matrix.lose(node)
		}
	}
	return m.rollCall(t, node, late, uint64(n%4))
}

func (m *matrixMachine) ask(t *rapid.T, id events.TaskID, behavior string, at events.Millis) *Submit {
	c := &Submit{Task: id, Behavior: behavior, NotBefore: at, Priority: rapid.SampledFrom([]int64{0, 0, 0, 7, -1}).Draw(t, "priority"),
		Policy: policyOf(events.Policy{MaxAttempts: rapid.IntRange(1, 3).Draw(t, "attempts"), MaxLost: rapid.IntRange(1, 3).Draw(t, "losses"),
			LostDelay: time.Duration(rapid.IntRange(0, 1).Draw(t, "delay")) * time.Second, Backoff: events.Backoff{Base: time.Second, Max: 3 * time.Second},
			Existing: events.Existing(rapid.IntRange(0, 1).Draw(t, "existing")), Retain: time.Duration(rapid.IntRange(1, 30).Draw(t, "retain")) * time.Second,
			RetainCount: rapid.IntRange(1, 3).Draw(t, "count")}),
		RequestID: rapid.SampledFrom([]string{"", "", "r-1", "r-2"}).Draw(t, "request"), Merges: rapid.IntRange(0, 3).Draw(t, "merges") == 0,
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
func (m *matrixMachine) predicted(c Command) func(d *Decider) {
	return func(d *Decider) {
		var want Answer
		if merge, ok := c.(*Merge); ok { // of the state as it is when the command is decided
			if t := m.state.Task(merge.Submit.Task); t != nil {
				merge.Life, merge.Seq = t.Created, t.Seq-merge.Seq
			}
		}
		m.matrix.live = m.state.LiveBytes()
		got := d.Decide(c)
		switch c := c.(type) {
		case *Submit:
			want = m.matrix.submit(c)
		case *Merge:
			want = m.matrix.merge(c)
		case *Complete:
			want = m.matrix.complete(c)
		case *Progress:
			want = m.matrix.report(c)
		case *Operate:
			want = m.matrix.operate(c)
		case *Pause:
			want = m.matrix.pause(c)
		}
		if got.Code != want.Code || got.Life != want.Life || got.Run != want.Run || got.Joined != want.Joined {
			m.t.Fatalf("%T %+v is answered with %+v, want %+v", c, c, got, want)
		}
	}
}

// attempt makes a report one of an attempt that runs, unless it is late.
func (m *matrixMachine) attempt(late bool, id *events.TaskID, started *events.Ref, node *string, c Command) func(d *Decider) {
	decide := m.predicted(c)
	return func(d *Decider) {
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

// rollCall lists some of a node's attempts, and perhaps one that is not its own.
func (m *matrixMachine) rollCall(t *rapid.T, node string, foreign bool, answered uint64) func(d *Decider) {
	listed, place := rapid.IntRange(0, 2).Draw(t, "listed"), rapid.IntRange(-3, 2)
	from, to := place.Draw(t, "from"), place.Draw(t, "to") // the places where the range begins and ends, if any
	self := rapid.SampledFrom(matrixNodes).Draw(t, "self")
	return func(d *Decider) {
		c := &Reconcile{Node: node, Answered: answered}
		for i, id := range m.matrix.on(node) {
			started := m.matrix.tasks[id].started
			if listed > 0 {
				listed--
				c.Attempts = append(c.Attempts, AttemptName{id, started})
			}
			if i == from {
				c.From = started
			}
			if i == to {
				c.To = started
			}
		}
		if foreign {
			c.Attempts = append(c.Attempts, AttemptName{"nobody", 1})
		}
		got, all := d.reconcile(c, self, m.began)
		if want := m.matrix.rollCall(c, self, m.began); !all || !slices.Equal(got, want) {
			t.Fatalf("of %+v are over %v, want %v", c, got, want)
		}
	}
}

func TestDecide_AnySequenceKeepsTheStateMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &matrixMachine{journalDriver: newJournalDriver(t), began: 1, matrix: matrix{tasks: map[events.TaskID]*taskModel{}, drop: rapid.Bool().Draw(t, "drop")}}
		turn := func(t *rapid.T) {
			steps := make([]func(*Decider), rapid.IntRange(1, 8).Draw(t, "steps"))
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
				m.matrix.brake = rapid.SampledFrom([]string{"", "", "", "etcd is full"}).Draw(t, "brake")
				m.matrix.limit = rapid.SampledFrom([]int64{0, 0, 300}).Draw(t, "limit")
			},
		})
	})
}
