package command_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/requests"
	"taskledger/task"
)

// taskModel models a task by the state matrix, without the fold and its table.
type taskModel struct {
	behavior string
	policy   events.Policy
	priority int64

	status                            task.Status
	suspended, cancelled, further     bool
	over                              bool // the budget belongs to a run that has ended
	node                              string
	offer                             uint64
	due, finalSince                   events.Millis
	seq                               uint64
	params, result, failure, progress string
	kept                              bool // params are in memory
	requests                          requests.List
	asking                            string // the request of the event that is being added
	modelCounts
	modelEvents
}

// modelCounts counts the attempts of a run, and the runs of a life.
type modelCounts struct{ attempt, failures, losses, runs uint32 }

// modelEvents names the events that a task points to, and the times of two of them.
type modelEvents struct {
	life, last, started, ended events.Ref
	startedAt, endedAt         events.Millis
}

func (p *taskModel) final() bool {
	return (p.status == task.Success || p.status == task.Failure) && p.due == 0
}

func (p *taskModel) waits() bool {
	return p.status == task.Created || p.status == task.Running && p.node == ""
}

// matrix predicts what commands lead to: the kinds of the events, the answers and the tasks.
type matrix struct {
	now         events.Millis
	entry       uint64
	paramsMayGo bool
	refusal     string
	limit       int64 // of live bytes
	live        int64 // bytes, when the command at hand was decided
	tasks       map[events.TaskID]*taskModel
	paused      map[string]bool
	want        []string // "task Kind" of the events of the entry under way
}

// add predicts an event, which changes the task.
func (m *matrix) add(id events.TaskID, kind events.Kind, change func(p *taskModel)) *taskModel {
	p := m.tasks[id]
	ref := events.RefOf(m.entry, len(m.want))
	m.want = append(m.want, fmt.Sprint(id, " ", kind))
	if p == nil {
		p = &taskModel{modelEvents: modelEvents{life: ref}}
		m.tasks[id] = p
	}
	p.seq, p.last = p.seq+1, ref
	change(p)
	if !p.final() {
		p.finalSince = 0
	} else if p.finalSince == 0 {
		p.finalSince = m.now
	}
	if p.final() {
		p.kept = false
		if p.status == task.Failure && !p.over {
			p.endRun()
		}
	}
	p.rememberAsking(m.now)
	return p
}

func (p *taskModel) endRun() { p.runs, p.over, p.further = p.runs+1, true, false }

// request says which request the event that is being added is of; "" = of none.
func (p *taskModel) request(id string) { p.asking = id }

// asked returns the request of an id that the task remembers.
func (p *taskModel) asked(id string) (r requests.Request, ok bool) {
	i := slices.IndexFunc(p.requests, func(r requests.Request) bool { return r.ID == id })
	if i < 0 || id == "" {
		return r, false
	}
	return p.requests[i], true
}

// rememberAsking keeps the request with the run that it is promised.
func (p *taskModel) rememberAsking(now events.Millis) {
	if p.asking == "" {
		return
	}
	r := requests.Request{ID: p.asking, Run: p.joined().Run, At: now}
	p.asking = ""
	if _, known := p.asked(r.ID); known {
		p.requests = slices.Clone(p.requests)
		p.requests[slices.IndexFunc(p.requests, func(other requests.Request) bool { return other.ID == r.ID })] = r
		return
	}
	p.requests = append(slices.Clip(p.requests), r)
	p.requests = p.requests[max(0, len(p.requests)-requests.Max):]
}

// end predicts the end of an attempt, or of a task that waits.
// repetition returns when the next run begins of a task that its policy repeats; 0 = it does not.
func (m *matrix) repetition(p *taskModel) events.Millis {
	if p.policy.Every == 0 {
		return 0
	}
	return max(m.now+events.Millis(p.policy.Every.Milliseconds()), p.startedAt+50)
}

func (m *matrix) end(id events.TaskID, status task.Status, what string, next events.Millis, ends bool) {
	kind := events.KindSucceeded
	if status == task.Failure {
		kind = events.KindFailed
	}
	m.add(id, kind, func(p *taskModel) {
		p.status, p.node, p.due, p.cancelled = status, "", next, false
		p.result, p.failure, p.ended, p.endedAt = "", "", p.last, m.now
		if status == task.Success {
			p.result = what
		} else {
			p.failure = what
			p.failures++
		}
		if ends {
			p.endRun()
		}
	})
}

// endAttempt is end, and what follows from parameters that were merged while the attempt ran.
func (m *matrix) endAttempt(id events.TaskID, status task.Status, what string, next events.Millis) {
	p := m.tasks[id]
	again, ends := p.further && !p.cancelled, status == task.Success || next == 0
	switch {
	case p.cancelled:
		next, ends = 0, true
		if status == task.Failure {
			what = events.CodeCancelled
		}
	case next == 0:
		next = m.repetition(p)
	}
	m.end(id, status, what, next, ends)
	if again && ends {
		m.reschedule(id, m.now, "")
	}
}

// agree predicts that the terms of a submit that shares the task hold, and returns whether they are others.
func (p *taskModel) agree(c *command.Submit) bool {
	others := p.policy != c.Policy || p.priority != c.Priority
	p.policy, p.priority = c.Policy, c.Priority
	return others
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
		m.end(id, task.Failure, events.CodeCancelled, 0, true)
	case kind == events.KindLost && int(p.losses) >= p.policy.MaxLost:
		m.endAttempt(id, task.Failure, events.CodeLost, 0)
	}
}

// lostWait returns how long the task waits after another loss.
func (p *taskModel) lostWait(id events.TaskID) time.Duration {
	return p.policy.LostWait(int(p.losses)+1, id, p.started)
}

// paramBytes returns the bytes of parameters in memory.
func (p *taskModel) paramBytes() int {
	if p.kept {
		return len(p.params)
	}
	return 0
}

func (m *matrix) forgot(p *taskModel) bool {
	return m.paramsMayGo && p.final() && p.params != "" && !p.kept
}

// room reports whether a submit may ask for a live task more, or for a larger one.
func (m *matrix) room(adds int) bool {
	return m.refusal == "" && (m.limit == 0 || m.live+int64(adds) < m.limit)
}

func (m *matrix) submit(c *command.Submit) command.Answer {
	p := m.tasks[c.Task]
	at := max(c.NotBefore, m.now.Add(c.Delay))
	switch {
	case c.Priority < 0:
		return command.Answer{Code: command.AnswerInvalid}
	case p == nil && !m.room(len(c.Params)):
		return command.Answer{Code: command.AnswerOverload}
	case p == nil:
		p = m.add(c.Task, events.KindCreated, func(p *taskModel) {
			p.status, p.behavior, p.policy, p.priority = task.Created, c.Behavior, c.Policy, c.Priority
			p.due, p.params, p.kept = at, string(c.Params), true
			p.request(c.RequestID)
		})
		return command.Answer{Life: p.life, Run: 1}
	case p.behavior != c.Behavior:
		return command.Answer{Code: command.AnswerState}
	case p.remembers(c.RequestID):
		return p.repeated(c.RequestID)
	case p.requestedOtherwise(c.RequestID):
		return command.Answer{Code: command.AnswerKeyUsed}
	case p.final() && c.Policy.Existing == events.ReturnRecorded:
		m.recorded(c)
	case m.forgot(p) && !m.room(len(c.Params)), p.final() && !m.forgot(p) && !c.Merges && !m.room(p.paramBytes()):
		return command.Answer{Code: command.AnswerOverload}
	case m.forgot(p):
		p.agree(c)
		m.reschedule(c.Task, at, c.RequestID)
		m.mergeParams(c.Task, string(c.Params), "")
	case c.Merges:
		return command.Answer{Code: command.AnswerMerge, Joined: true}
	default:
		m.join(c)
	}
	return p.joined()
}

func (m *matrix) join(c *command.Submit) {
	p := m.tasks[c.Task]
	waits := p.status == task.Created || c.RunNow && (p.status == task.Success || p.status == task.Failure)
	if at := max(c.NotBefore, m.now.Add(c.Delay)); p.final() || waits && at < p.due {
		p.agree(c)
		m.reschedule(c.Task, at, c.RequestID)
	} else if m.refusal != "" { // what changes nothing else is left out
		return
	} else if known := c.RequestID == "" || p.remembers(c.RequestID); p.agree(c) || !known {
		m.add(c.Task, events.KindJoined, func(p *taskModel) { p.request(c.RequestID) })
	}
}

// recorded is a submit that gets the outcome of a task which has ended for good: its request is recorded where
// there is room.
func (m *matrix) recorded(c *command.Submit) {
	if c.RequestID != "" && m.room(0) {
		m.add(c.Task, events.KindJoined, func(p *taskModel) { p.request(c.RequestID) })
	}
}

func (p *taskModel) remembers(id string) bool { _, known := p.asked(id); return known }

func (p *taskModel) joined() command.Answer {
	a := command.Answer{Joined: true, Life: p.life, Run: p.runs}
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

func (p *taskModel) repeated(id string) command.Answer {
	a := p.joined()
	a.Repeated = true
	if r, _ := p.asked(id); r.Run <= p.runs { // what it was promised has ended
		a.Run, a.Number = r.Run, 0
	}
	return a
}

// requestedOtherwise reports whether a request of the same key and another id is remembered.
func (p *taskModel) requestedOtherwise(id string) bool {
	key, _, _ := strings.Cut(id, "#")
	return slices.ContainsFunc(p.requests, func(r requests.Request) bool { return r.ID == key || strings.HasPrefix(r.ID, key+"#") })
}

// held reports whether it is kept because one of its requests may be repeated.
func (p *taskModel) held(now events.Millis) bool {
	return len(p.requests) > 0 && max(p.finalSince, p.requests[len(p.requests)-1].At).Add(10*time.Minute) >= now
}

func (m *matrix) merge(c *command.Merge) command.Answer {
	p := m.tasks[c.Submit.Task]
	changes, before := p != nil && (p.params != string(c.Submit.Params) || !p.kept && p.params != ""), 0
	if p != nil {
		before = p.paramBytes()
	}
	switch {
	case c.Submit.Priority < 0:
		return command.Answer{Code: command.AnswerInvalid}
	case p == nil || p.life != c.Life || p.seq != c.Seq:
		return command.Answer{Code: command.AnswerChanged}
	case p.behavior != c.Submit.Behavior:
		return command.Answer{Code: command.AnswerState}
	case p.remembers(c.Submit.RequestID):
		return p.repeated(c.Submit.RequestID)
	case p.requestedOtherwise(c.Submit.RequestID):
		return command.Answer{Code: command.AnswerKeyUsed}
	case p.final() && c.Submit.Policy.Existing == events.ReturnRecorded && !c.Operator:
		m.recorded(&c.Submit)
		return p.joined()
	case !m.room(len(c.Submit.Params)-before) && !c.Operator && (p.final() || changes && (m.refusal != "" || len(c.Submit.Params) > before)):
		return command.Answer{Code: command.AnswerOverload}
	case m.forgot(p):
		p.agree(&c.Submit)
		m.reschedule(c.Submit.Task, max(c.Submit.NotBefore, m.now.Add(c.Submit.Delay)), c.Submit.RequestID)
		m.mergeParams(c.Submit.Task, string(c.Submit.Params), "")
		return p.joined()
	case changes:
		p.agree(&c.Submit)
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

func (m *matrix) complete(c *command.Complete) command.Answer {
	if !m.current(c.Task, c.Started, c.Node) {
		return command.Answer{Code: command.AnswerStale}
	}
	p := m.tasks[c.Task]
	soonest := max(m.now, p.startedAt+50)
	next := c.Next
	if next != 0 {
		next = max(next, soonest, m.now+events.Millis(max(c.Wait, 0).Milliseconds()))
	}
	switch c.How {
	case command.Succeeded:
		m.endAttempt(c.Task, task.Success, string(c.Result), next)
	case command.Failed:
		if c.ByPolicy {
			next = 0
			if tries := int(p.failures) + 1; tries < p.policy.MaxAttempts {
				most := min(p.policy.Backoff.Base<<(tries-1), p.policy.Backoff.Max)
				next = m.now + events.Millis(time.Duration(float64(most)*float64(c.Random)/(1<<32)).Milliseconds())
			}
		}
		m.endAttempt(c.Task, task.Failure, c.Error.Code, next)
	case command.Snoozed:
		m.wait(c.Task, events.KindSnoozed, max(soonest, m.now+events.Millis(max(c.Wait, 0).Milliseconds())))
	case command.Released:
		if p.cancelled && c.Error != nil {
			m.endAttempt(c.Task, task.Failure, c.Error.Code, 0)
			break
		}
		m.wait(c.Task, events.KindReleased, max(next, m.now))
	}
	return command.Answer{}
}

func (m *matrix) report(c *command.Progress) command.Answer {
	if !m.current(c.Task, c.Started, c.Node) {
		return command.Answer{Code: command.AnswerStale}
	}
	m.add(c.Task, events.KindProgressed, func(p *taskModel) { p.progress = c.Progress.Note })
	return command.Answer{}
}

func (m *matrix) operate(c *command.Operate) command.Answer {
	p := m.tasks[c.Task]
	switch {
	case p == nil:
		return command.Answer{Code: command.AnswerNotFound}
	case c.Do == command.DoRetry && m.forgot(p):
		return command.Answer{Code: command.AnswerMerge}
	}
	life := p.life
	ended := p.status == task.Success || p.status == task.Failure
	allowed := map[task.Operation]bool{command.DoCancel: !p.final(), command.DoRunNow: p.node == "" && !p.final(), command.DoRetry: ended, command.DoSuspend: !p.final(),
		command.DoResume: true, command.DoDelete: p.status != task.Running}
	if !allowed[c.Do] {
		return command.Answer{Code: command.AnswerState}
	}
	switch c.Do {
	case command.DoCancel:
		switch {
		case p.waits():
			m.end(c.Task, task.Failure, events.CodeCancelled, 0, true)
		case ended:
			m.reschedule(c.Task, 0, "")
		case !p.cancelled:
			m.add(c.Task, events.KindCancelRequested, func(p *taskModel) { p.cancelled = true })
		}
	case command.DoRunNow, command.DoRetry:
		if p.due == 0 || p.due > m.now {
			m.reschedule(c.Task, m.now, "")
		}
	case command.DoSuspend:
		if !p.suspended {
			m.add(c.Task, events.KindSuspended, func(p *taskModel) { p.suspended = true })
		}
	case command.DoResume:
		if p.suspended {
			m.add(c.Task, events.KindResumed, func(p *taskModel) { p.suspended = false })
		}
	case command.DoDelete:
		m.add(c.Task, events.KindDeleted, func(*taskModel) {})
		delete(m.tasks, c.Task)
	}
	return command.Answer{Life: life}
}

func (m *matrix) pause(c *command.Pause) command.Answer {
	switch was := m.paused[c.Behavior]; {
	case was == c.Paused:
	case c.Paused:
		m.want = append(m.want, fmt.Sprint(" ", events.KindPaused))
		m.paused[c.Behavior] = true
	default:
		m.want = append(m.want, fmt.Sprint(" ", events.KindUnpaused))
		delete(m.paused, c.Behavior)
	}
	return command.Answer{}
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
		m.wait(id, events.KindLost, m.now.Add(m.tasks[id].lostWait(id)))
	}
}

// reconcile predicts which attempts are released, and which of the node's are over.
func (m *matrix) reconcile(c *command.Reconcile, self string, began uint64) (over []command.AttemptName) {
	for _, a := range c.Attempts {
		if !m.current(a.Task, a.Started, c.Node) || m.tasks[a.Task].cancelled {
			over = append(over, a)
		}
	}
	for _, id := range m.on(c.Node) {
		p := m.tasks[id]
		known := slices.Contains(c.Attempts, command.AttemptName{id, p.started})
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
		p.status, p.node, p.offer, p.started, p.startedAt = task.Running, node, offer, p.last, m.now
		p.attempt++
		p.due, p.result, p.failure, p.progress = 0, "", "", ""
	})
}

// seal ends the entry: finished tasks leave by number and by age.
func (m *matrix) seal() {
	finished := map[string][]events.TaskID{}
	for id, p := range m.tasks {
		switch {
		case !p.final() || p.held(m.now):
		case p.status == task.Failure: // a few of them are kept for their time alone
			if p.finalSince.Add(projection.RetainFailures) < m.now {
				delete(m.tasks, id)
			}
		default:
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
	return p.finalSince + events.Millis(p.policy.Retain.Milliseconds())
}

// seen returns the task of the fold in the terms of the matrix.
func seen(t *projection.Task) taskModel {
	p := taskModel{
		behavior:    t.Kind.Behavior,
		policy:      t.Kind.Policy,
		priority:    t.Priority,
		status:      t.Status,
		suspended:   t.Suspended,
		cancelled:   t.Cancelled,
		further:     t.Rerun,
		over:        t.RunEnded,
		node:        t.Node,
		offer:       t.Offer,
		due:         t.Due,
		seq:         t.Seq,
		params:      string(t.Params),
		result:      string(t.Result),
		kept:        !t.ParamsElided,
		requests:    t.Requests,
		modelCounts: modelCounts{t.Attempt, t.Failures, t.Lost, t.Runs},
		modelEvents: modelEvents{t.Created, t.Last, t.Started, t.Outcome, t.StartedAt, t.EndedAt},
	}
	if t.Final() {
		_, p.finalSince = t.Substatus(0)
	}
	if t.Error != nil {
		p.failure = t.Error.Code
	}
	if t.Progress != nil {
		p.progress = t.Progress.Note
	}
	return p
}
