package engine_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/events"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
)

// keeping makes nodes keep logs in a store.
func keeping(logs tasklog.Store) func(*cfg) { return func(c *cfg) { c.Logs = logs } }

// logOf returns the lines of a life, each with its attempt.
func logOf(t *testing.T, from tasklog.Reader, shard int, life events.Ref, attempts uint32) (lines []string) {
	t.Helper()
	q := tasklog.Query{Shard: uint16(shard), Life: life}
	for n := range attempts {
		q.Attempts = append(q.Attempts, tasklog.Begun{Number: n + 1})
	}
	page, err := tasklog.ReadTask(t.Context(), from, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range page.Lines {
		lines = append(lines, fmt.Sprint(l.Attempt, " ", l.Level, " ", l.Text))
	}
	return lines
}

func TestLogs_OfAttemptsOnAKilledNodeAndOnTheNextStandApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, j := memlog.New(), newJob(task.Policy{})
		c := newModelled(t, true)
		owner := c.start("o", 0, noSlots)
		owner.ready(t)
		first := c.start("a", 0, with(noShards, keeping(logs)), j)
		first.ready(t)
		f := j.submit(t, owner.Client, "x")
		r := j.next(t)
		r.Log.Info("begins", "on", "a")
		fmt.Fprint(r.Output(slog.LevelError, true), "first\nhalf a li")
		time.Sleep(2 * time.Second)
		first.crash()
		c.start("b", 0, with(noShards, keeping(logs)), j).ready(t)
		fmt.Fprintln(r.Output(slog.LevelInfo, true), "a function that goes on has no log any more")
		r = j.next(t)
		r.Log.Info("begins", "on", "b")
		fmt.Fprintln(r.Output(slog.LevelInfo, true), "second")
		r.succeed("1")
		want(t, f, "1")
		time.Sleep(2 * time.Second)
		x, err := owner.Get(within(t), "x")
		if err != nil {
			t.Fatal(err)
		}
		got := logOf(t, logs, events.TaskID("x").Shard(modelledShards), x.Details.Life, 2)
		want := []string{"1 info begins on=a", "1 error first", "1 error half a li", "2 info begins on=b", "2 info second"}
		if !slices.Equal(got, want) {
			t.Errorf("the log is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A log goes with its task: at once where that is deleted, and in a while where retention forgets it.
func TestLogs_GoWithTheirTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, j := memlog.New(), newJob(task.Policy{Retain: 20 * time.Minute})
		c := newModelled(t, true)
		for _, name := range []string{"a", "b"} {
			c.start(name, 0, keeping(logs), j).ready(t)
		}
		c.spread(2)
		a := c.nodes[0]
		lives := func() (all []string) {
			for shard := range uint16(modelledShards) {
				of, _, err := logs.Lives(t.Context(), shard, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, life := range of {
					all = append(all, fmt.Sprint(shard, ".", life))
				}
			}
			return all
		}
		const tasks = 24
		for i := range tasks {
			id := events.TaskID(fmt.Sprint("t", i))
			f := j.submit(t, a, id)
			r := j.next(t)
			r.Log.Info("line")
			r.succeed("1")
			want(t, f, "1")
		}
		time.Sleep(time.Second)
		if n := len(lives()); n != tasks {
			t.Fatalf("%d tasks have a log, want %d", n, tasks)
		}
		for i := range tasks / 2 {
			if err := a.Operations().Delete(within(t), events.TaskID(fmt.Sprint("t", i))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if n := len(lives()); n != tasks/2 {
			t.Errorf("after the deletes %d tasks have a log, want %d", n, tasks/2)
		}
		time.Sleep(13 * time.Minute) // each shard was swept
		if n := len(lives()); n != tasks/2 {
			t.Errorf("before the retention ends %d tasks have a log, want %d", n, tasks/2)
		}
		time.Sleep(8 * time.Minute)
		for shard := range modelledShards { // the time of a shard is that of its entries
			j.submit(t, a, idIn(shard, modelledShards)).Close()
		}
		time.Sleep(13 * time.Minute)
		if got := lives(); len(got) != 0 {
			t.Errorf("%s still have a log", got)
		}
	})
}
