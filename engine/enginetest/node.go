// Package enginetest tests behaviors on an engine: a node in memory, or in a temporary directory, that ends with its
// test.
//
//	func TestResize_MakesThumbnails(t *testing.T) {
//		n := enginetest.Memory(t, resize.Bind(resizeImage))
//		f, err := resize.Submit(t.Context(), n.Client, Image{Path: "a.png"})
//		...
//		done := n.Await(t, f.ID())
//		n.RequireSubmitted(t, "notify")
//	}
//
// Below testing/synctest a node of Memory runs in virtual time: Advance lets hours pass, each in half a second. A node
// of Files does not, since it writes files.
//
// Golden compares what happened to a task with a file, and RequireSame runs the attempts of an exported history again
// with changed code. The package links no server.
package enginetest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/local"
	"taskledger/events"
	"taskledger/task"
)

// timeout bounds what a test waits for: by the clock of its bubble, below synctest.
const timeout = time.Minute

// shards is the number of shards of a store that is made.
const shards = 2

// Node is a node of one test.
type Node struct{ *local.Node }

// Memory starts a node in memory that ends with the test.
func Memory(t testing.TB, behaviors ...task.Behavior) *Node {
	t.Helper()
	return StartWith(t, local.Config{}, behaviors...)
}

// Files starts a node in a temporary directory that ends with the test.
func Files(t testing.TB, behaviors ...task.Behavior) *Node {
	t.Helper()
	return StartWith(t, local.Config{Dir: t.TempDir()}, behaviors...)
}

// StartWith is Memory or Files with a configuration. The behaviors are added to those of cfg. Where cfg does not say
// otherwise, the node is named test, has two shards and a TTL of a minute, which leaves it little to do in an hour of
// virtual time, and ends without grace for what runs; in memory it keeps its whole history, and its warnings go to
// the log of the test.
func StartWith(t testing.TB, cfg local.Config, behaviors ...task.Behavior) *Node {
	t.Helper()
	cfg.Node.Behaviors = slices.Concat(cfg.Node.Behaviors, behaviors)
	cfg.Node.Name = cmp.Or(cfg.Node.Name, "test")
	cfg.Node.TTL = cmp.Or(cfg.Node.TTL, time.Minute)
	cfg.Node.Grace = cmp.Or(cfg.Node.Grace, -1)
	cfg.Store.Shards = cmp.Or(cfg.Store.Shards, shards)
	cfg.WholeHistory = true
	if cfg.Node.Log == nil {
		warnings := &slog.HandlerOptions{Level: slog.LevelWarn}
		cfg.Node.Log = slog.New(slog.NewTextHandler(t.Output(), warnings))
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	n, err := local.StartWith(ctx, cfg)
	if err != nil {
		t.Fatalf("start the node: %v", err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("end the node: %v", err)
		}
	})
	return &Node{n}
}

// Await waits until the run of a task has ended, for a minute, and returns the task: with its result, or the error with
// which it failed for good. It fails the test where there is no such task, and where the run has not ended by then, as
// one that waits for its next attempt.
func (n *Node) Await(t testing.TB, id events.TaskID) task.Task {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	run := n.Attach(id)
	defer run.Close()
	_, ended := run.Wait(ctx)
	is, err := n.GetForgotten(t.Context(), id)
	over := is.Status == task.Success || is.Status == task.Failure && is.Substatus != task.SubRetry
	if err != nil || !over {
		t.Fatalf("await %s: it is %s: %v, %v", id, is.Status, ended, err)
	}
	return is
}

// Advance lets time pass below testing/synctest, and returns once everything that was due has been done as far as it
// can be. Outside of testing/synctest it fails the test, since real time cannot be hurried.
func (n *Node) Advance(t testing.TB, d time.Duration) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			t.Fatalf("advance by %s: run the test below synctest.Test: %v", d, v)
		}
	}()
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}

// RequireSubmitted returns all tasks of a behavior that the node still has in memory, the oldest first, with their
// parameters. It keeps them there while they go on, for 14 days after a failure, and after a success as long and as
// many as their policy says, for 24 hours by default; Ledger().Replay tells of all, also later. Tasks that were created
// in the same millisecond, as many are in virtual time, are ordered by shard and then by creation: with one shard,
// which local.Config.Store chooses, they are in the order of their creation. It fails the test where there is none.
func (n *Node) RequireSubmitted(t testing.TB, behavior string) []task.Task {
	t.Helper()
	all := n.Submitted(t, behavior)
	if len(all) == 0 {
		t.Fatalf("no task of the behavior %s was submitted", behavior)
	}
	return all
}

// Submitted is RequireSubmitted where there may be none.
func (n *Node) Submitted(t testing.TB, behavior string) (all []task.Task) {
	t.Helper()
	for cursor, more := "", true; more; {
		page, err := n.ListPage(t.Context(), task.Filter{Behavior: behavior, Limit: 1000}, cursor)
		for _, silent := range page.Missing {
			err = errors.Join(err, silent.Err)
		}
		if err != nil {
			t.Fatalf("list the tasks of %s: %v", behavior, err)
		}
		for i := range page.Tasks {
			whole, err := n.Get(t.Context(), page.Tasks[i].ID)
			if errors.Is(err, task.ErrNotFound) { // it was forgotten or deleted since it was listed
				continue
			}
			if err != nil {
				t.Fatalf("get %s: %v", page.Tasks[i].ID, err)
			}
			all = append(all, whole)
		}
		cursor = page.Cursor
		more = cursor != ""
	}
	slices.SortFunc(all, func(a, b task.Task) int {
		return cmp.Or(
			cmp.Compare(a.CreatedAt, b.CreatedAt),
			cmp.Compare(a.Version.Shard, b.Version.Shard),
			cmp.Compare(a.Details.Life, b.Details.Life),
		)
	})
	return all
}
