package projection_test

import (
	"slices"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/works"
	"taskledger/task"
)

// checkValid holds a task to what its status demands and forbids.
func checkValid(t tb, got *projection.Task) {
	t.Helper()
	if got == nil {
		return
	}
	demand := func(ok bool, what string) {
		t.Helper()
		if !ok {
			t.Errorf("%s task %s: %s: %+v", got.Status, got.ID, what, *got)
		}
	}
	demand(got.Seq > 0 && got.Created != 0 && got.Last >= got.Created && got.CreatedAt != 0, "no beginning")
	demand(!got.OnNode() || got.Status == task.Running, "on a node and not RUNNING")
	demand(!got.Cancelled || got.Status == task.Running, "cancelled and not RUNNING")
	demand(!got.Rerun || !got.RunEnded, "a further run is promised after the end of one")
	switch got.Status {
	case task.Created:
		demand(got.ScheduleNotBefore() != 0, "no schedule")
		demand(got.StartedAt == 0 && got.Result == nil && got.Error == nil, "start, result or error before any run")
	case task.Running:
		demand(got.Attempt > 0 && got.StartedAt != 0 && got.Started != 0, "no attempt")
		demand(got.RecheckNotBefore() != 0 && got.LostNotBefore() >= got.StartedAt, "no stamps")
		demand(got.LostNotBefore() >= got.RecheckNotBefore(), "lost before it is rechecked")
		demand(got.Result == nil && got.Error == nil && got.ScheduleNotBefore() == 0, "result, error or schedule while RUNNING")
	case task.Success:
		demand(got.StartedAt != 0 && got.Outcome != 0 && got.EndedAt >= got.StartedAt, "no start or end")
		demand(got.Error == nil && got.LostNotBefore() == 0 && got.RecheckNotBefore() == 0, "error or stamps of a SUCCESS")
	case task.Failure:
		demand(got.Error != nil && got.Outcome != 0, "no error")
		demand(got.Result == nil && got.LostNotBefore() == 0 && got.RecheckNotBefore() == 0, "result or stamps of a FAILURE")
	default:
		demand(false, "unknown status")
	}
	if got.Final() {
		demand(got.Params == nil, "parameters kept in memory after the end")
		demand(len(got.Result) <= projection.MaxKeptResult, "large result kept in memory after the end")
		demand(got.Error == nil || len(got.Error.Message) <= projection.MaxKeptError, "large error kept in memory after the end")
	}
}

// checkDeadlines asserts that the next deadline is the earliest one, and that no task has one that has ended.
func checkDeadlines(t tb, s *projection.Shard) {
	t.Helper()
	var want events.Millis
	for of := range s.Tasks() {
		at := of.Deadline()
		if of.Final() && at != 0 {
			t.Fatalf("%s has ended and has a deadline", of.ID)
		}
		if at != 0 && (want == 0 || at < want) {
			want = at
		}
	}
	if first, got := s.NextDeadline(); got != want || first != nil && s.Task(first.ID) != first {
		t.Fatalf("the next deadline is %d, the earliest %d", got, want)
	}
}

// checkPlaces compares every index of a shard with what its tasks say, now being the latest time it was given.
func checkPlaces(t tb, s *projection.Shard, now events.Millis) {
	checkDeadlines(t, s)
	t.Helper()
	s.MakeDue(now)
	m := modelOf(s, now)
	if s.Finished() != m.finished || s.Live() != s.Len()-m.finished {
		t.Errorf("%d finished, %d live of %d; want %d finished", s.Finished(), s.Live(), s.Len(), m.finished)
	}
	if s.Held() != m.held {
		t.Errorf("%d are held, want %d", s.Held(), m.held)
	}
	if want := m.bytes + works.Of(s).Bytes(); s.LiveBytes() != want {
		t.Errorf("%d live bytes, want %d", s.LiveBytes(), want)
	}
	if s.NextDue() != m.nextDue {
		t.Errorf("next due at %d, want %d", s.NextDue(), m.nextDue)
	}
	backlog := 0
	for behavior, n := range s.Backlog() {
		backlog++
		if n != len(m.ready[behavior]) {
			t.Errorf("%d ready tasks of %s, want %d", n, behavior, len(m.ready[behavior]))
		}
	}
	if backlog != len(m.ready) {
		t.Errorf("%d behaviors have ready tasks, want %d", backlog, len(m.ready))
	}
	for behavior, tasks := range m.ready {
		if got := s.Ready(behavior); got != tasks[0] {
			t.Errorf("first ready task of %s is %+v, want %+v", behavior, got, tasks[0])
		}
	}
	if got := s.RunningNodes(); !slices.IsSorted(got) || len(got) != len(m.running) {
		t.Errorf("tasks run on %v, want %d nodes, sorted", got, len(m.running))
	}
	for node, tasks := range m.running {
		n := 0
		for task := range s.Running(node) {
			n++
			if !tasks[task] {
				t.Errorf("%s does not run on %s", task.ID, node)
			}
		}
		if n != len(tasks) {
			t.Errorf("%d tasks run on %s, want %d", n, node, len(tasks))
		}
	}
}

// model is where the tasks of a shard belong by their own fields, found by looking at each of them.
type model struct {
	finished int
	held     int // of these
	bytes    int64
	nextDue  events.Millis
	ready    map[string][]*projection.Task // best first
	running  map[string]map[*projection.Task]bool
}

// streams reports whether a task has a stream with a token or holds, which outlives it.
func streams(s *projection.Shard, t *projection.Task) bool {
	of := works.Of(s).Work(t.ID)
	return of != nil && of.Stream != nil && (of.Stream.Token != "" || of.Stream.Len() > 0)
}

func modelOf(s *projection.Shard, now events.Millis) model {
	m := model{ready: map[string][]*projection.Task{}, running: map[string]map[*projection.Task]bool{}}
	for t := range s.Tasks() {
		held := t.Final() && !streams(s, t) && len(t.Requests) > 0 && s.Since(heldSince(t), s.Time) <= events.Millis(projection.HoldRequests.Milliseconds())
		if held {
			m.held++
		}
		if held || !t.Final() {
			m.bytes += bytesOf(t)
		}
		switch {
		case t.Node != "":
			if m.running[t.Node] == nil {
				m.running[t.Node] = map[*projection.Task]bool{}
			}
			m.running[t.Node][t] = true
		case t.Due == 0:
			m.finished++
		case t.Suspended:
		case t.Due <= now:
			m.ready[t.Kind.Behavior] = append(m.ready[t.Kind.Behavior], t)
		case m.nextDue == 0 || t.Due < m.nextDue:
			m.nextDue = t.Due
		}
	}
	for _, tasks := range m.ready {
		slices.SortFunc(tasks, func(a, b *projection.Task) int {
			switch {
			case a.Priority != b.Priority:
				return int(b.Priority - a.Priority)
			case a.Due != b.Due:
				return int(a.Due - b.Due)
			}
			return int(int64(a.Created) - int64(b.Created))
		})
	}
	return m
}

// overSince returns since when a finished task is over: its last outcome, or what took its further run away after that.
func overSince(t *projection.Task) events.Millis {
	if t.Wait == nil {
		return t.EndedAt
	}
	return max(t.EndedAt, t.Wait.Since)
}

// heldSince returns since when a finished task is held for its requests: the latest may have joined it long after it
// was over.
func heldSince(t *projection.Task) events.Millis {
	since := overSince(t)
	for _, r := range t.Requests {
		since = max(since, r.At)
	}
	return since
}

func requestBytes(t *projection.Task) (n int) {
	for _, r := range t.Requests {
		n += len(r.ID)
	}
	return n
}

// bytesOf returns what the task adds to LiveBytes.
func bytesOf(t *projection.Task) int64 {
	n := 100 + len(t.ID) + len(t.Params) + len(t.Result) + requestBytes(t)
	if t.Error != nil {
		n += len(t.Error.Code) + len(t.Error.Message)
		for name, value := range t.Error.Properties {
			n += len(name + value)
		}
	}
	if t.Wait != nil {
		n += len(t.Wait.By + t.Wait.Reason + t.Wait.SuspendedBy + t.Wait.SuspendedFor)
	}
	if t.Progress != nil {
		n += len(t.Progress.Note)
	}
	if t.About != nil {
		n += 8
	}
	for _, tag := range t.Tags() {
		n += 2 + len(tag)
	}
	return int64(n)
}
