package shard_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/task"
)

// holding is a bench whose shard holds so many tasks that wait.
func holding(t *testing.T, tasks int) *fixture {
	b := newFixture(t)
	for left := tasks; left > 0; {
		var submits []command.Command
		for range min(left, 500) {
			c := *submitOf(events.Policy{})
			c.Task, c.NotBefore = events.TaskID(fmt.Sprint("t-", left)), b.time.Add(time.Hour)
			submits = append(submits, &c)
			left--
		}
		b.deliver(b.next("submitter", command.LaneSubmit, submits...))
		b.turn()
	}
	if b.own.State().Len() != tasks {
		t.Fatalf("%d tasks, want %d", b.own.State().Len(), tasks)
	}
	return b
}

// However many lists ask for whatever nobody matches, an owner's turn looks at a bounded number of tasks, and what
// it leaves is found by asking on.
func TestList_LooksAtABoundedNumberOfTasksInATurn(t *testing.T) {
	synctest.Test(t, testList_LooksAtABoundedNumberOfTasksInATurn) // no time passes, which has a budget of its own
}

func testList_LooksAtABoundedNumberOfTasksInATurn(t *testing.T) {
	const tasks = 3 * shard.LookTasks
	b := holding(t, tasks)
	ask := func(lists ...command.Command) (looked int, pages []command.Page) {
		l := b.next("reader", command.LaneQuery, lists...)
		b.deliver(l)
		b.turn()
		for _, a := range l.got[0] {
			p, err := command.DecodePage(a.Data)
			if err != nil {
				t.Fatal(err)
			}
			looked += p.Looked
			pages = append(pages, p)
		}
		return looked, pages
	}
	list := func() *command.List { return &command.List{Affinity: "nobody", Limit: 10, Scan: 1 << 40} }
	if looked, pages := ask(list(), list(), list()); looked > shard.LookTasks || looked == 0 || pages[0].Done || len(pages) != 3 {
		t.Errorf("three lists looked at %d tasks in one turn: %+v", looked, pages)
	}
	question, turns, total := list(), 0, 0
	for done := false; !done; turns++ {
		looked, pages := ask(question)
		total += looked
		done = pages[0].Done
		question.Before, question.Until = uint64(pages[0].Next.Before), int64(pages[0].Next.Until)
		if len(pages[0].Tasks) > 0 || looked > shard.LookTasks || turns > 3*tasks {
			t.Fatalf("turn %d looked at %d tasks, found %d", turns, looked, len(pages[0].Tasks))
		}
	}
	if total != tasks || turns < tasks/shard.LookTasks {
		t.Errorf("looked at %d tasks of %d, in %d turns", total, tasks, turns)
	}
}

func TestList_GoesOnWhereAnAnswerHadNoRoom(t *testing.T) {
	b := newFixture(t)
	const tasks = 6
	for i := range tasks {
		c := *submitOf(events.Policy{})
		c.Task, c.NotBefore, c.Params = events.TaskID(fmt.Sprint("t-", i)), b.time.Add(time.Hour), payloadOf(events.MaxPayloadBytes/2)
		b.accept(command.LaneSubmit, &c)
	}
	question, got := &command.List{Limit: 100}, 0
	for done := false; !done; {
		p, err := command.DecodePage(b.ask(command.LaneQuery, question).Data)
		if err != nil || len(p.Tasks) == 0 && !p.Done || len(p.Tasks) == tasks {
			t.Fatalf("page of %d tasks, %v", len(p.Tasks), err)
		}
		for i := range p.Tasks {
			if want := events.TaskID(fmt.Sprint("t-", tasks-1-got)); p.Tasks[i].ID != want {
				t.Fatalf("task %s, want %s", p.Tasks[i].ID, want)
			}
			got++
		}
		done = p.Done
		question.Before, question.Until = uint64(p.Next.Before), int64(p.Next.Until)
	}
	if got != tasks {
		t.Errorf("%d tasks, want %d", got, tasks)
	}
}

// However large the tasks are, an owner's turn writes few of them: a list that comes when enough are written is to
// go on.
func TestList_WritesABoundedNumberOfBytesInATurn(t *testing.T) {
	b := newFixture(t)
	for i := range 10 {
		c := *submitOf(events.Policy{})
		c.Task, c.NotBefore, c.Params = events.TaskID(fmt.Sprint("t-", i)), b.time.Add(time.Hour), payloadOf(100<<10)
		b.accept(command.LaneSubmit, &c)
	}
	var asked []*letter
	for i := range 50 {
		asked = append(asked, b.next(fmt.Sprint("reader-", i), command.LaneQuery, &command.List{Limit: 2}))
		b.deliver(asked[i])
	}
	b.turn()
	written, found := 0, 0
	for i, l := range asked {
		a := l.got[0][0]
		written += len(a.Data)
		p, err := command.DecodePage(a.Data)
		if err != nil || p.Done {
			t.Fatalf("list %d: done %t, %v", i, p.Done, err)
		}
		found += len(p.Tasks)
	}
	if most := shard.LookBytes + command.MaxAnswerBytes; written > most || found == 0 {
		t.Errorf("%d tasks, %d bytes, in one turn: want some, and %d bytes at most", found, written, most)
	}
}

func TestList_CursorOfAnotherClusterIsRefused(t *testing.T) {
	b := newFixture(t)
	if a := b.ask(command.LaneQuery, &command.List{Cluster: "elsewhere"}); a.Code != command.AnswerInvalid {
		t.Errorf("answer %d %s", a.Code, a.Text)
	}
	if a := b.ask(command.LaneQuery, &command.List{Cluster: "bench"}); a.Code != command.AnswerOK {
		t.Errorf("answer %d %s", a.Code, a.Text)
	}
	if a := b.ask(command.LaneQuery, &command.List{Status: 99}); a.Code != command.AnswerInvalid {
		t.Errorf("status 99: answer %d %s", a.Code, a.Text)
	}
}

// Whoever has just taken a shard over has given no turn to what fell due before.
func TestList_KnowsWhatIsReadyInTheFirstTurnOfAnOwner(t *testing.T) {
	b := newFixture(t)
	c := submitOf(events.Policy{})
	c.NotBefore = b.time.Add(time.Minute)
	b.accept(command.LaneSubmit, c)
	b.time = b.time.Add(time.Hour)
	b.takeOver()
	p, err := command.DecodePage(b.ask(command.LaneQuery, &command.List{Limit: 10, Substatus: uint64(task.SubReady)}).Data)
	if err != nil || len(p.Tasks) != 1 {
		t.Errorf("%d tasks are ready, want one: %v", len(p.Tasks), err)
	}
}
