package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/modeletcd"
)

// wantUnserved asserts that who asks or wants anything of a task is told that its shard cannot be served, and why, and returns the
// longest time that one of the questions took.
func wantUnserved(t *testing.T, c *engine.Client, id events.TaskID, why string) (longest time.Duration) {
	t.Helper()
	ask := func(what string, question func(context.Context) error, kinds ...error) {
		t.Helper()
		began := time.Now()
		err := question(within(t))
		longest = max(longest, time.Since(began))
		is := func(kind error) bool { return errors.Is(err, kind) }
		if !slices.ContainsFunc(kinds, is) || !strings.Contains(err.Error(), "quarantined: ") || !strings.Contains(err.Error(), why) || is(context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ask("get", func(ctx context.Context) error {
		_, err := c.Get(ctx, id)
		return err
	}, engine.ErrUnavailable)
	ask("wait", func(ctx context.Context) error {
		waiting := c.Attach(id)
		defer waiting.Close()
		_, err := waiting.Wait(ctx)
		return err
	}, engine.ErrUnavailable)
	ask("submit", func(ctx context.Context) error { // which may leave its sender in doubt
		_, err := c.Submit(ctx, newJob(engine.Policy{}), nil, engine.SubmitOptions{ID: id})
		return err
	}, engine.ErrUnavailable, engine.ErrUnknown)
	ask("cancel", func(ctx context.Context) error { return c.Cancel(ctx, id, "") }, engine.ErrUnavailable, engine.ErrUnknown)
	ask("explain", func(ctx context.Context) error {
		e, err := c.Explain(ctx, id)
		if err == nil && (e.Why != engine.WhyQuarantined || e.Since == 0) {
			t.Errorf("explained as %+v", e)
		}
		return errors.Join(err, fmt.Errorf("%w: %s", engine.ErrUnavailable, e.Text))
	}, engine.ErrUnavailable)
	ask("shards", func(ctx context.Context) error {
		infos, err := c.Shards(ctx)
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: %s", engine.ErrUnavailable, infos[id.Shard(len(infos))].Problem)
	}, engine.ErrUnavailable)
	return longest
}

// A shard that cannot be served says so at every question: in its owner's process and in another one, with NATS and without.
func TestShard_ThatCannotBeServedSaysSoWithinASecond(t *testing.T) {
	const shard = 3
	const first, third = "taskledger/journal/3/0000000000000001", "taskledger/journal/3/0000000000000003"
	for _, row := range []struct{ what, write, remove, remedy string }{
		{"an entry is damaged", first, "", "remedy: restore entry 1 from a backup of etcd;"},
		{"what is stored behind the last entry is none", third, "", "remedy: taskledger repair --yes removes it, since it is no entry;"},
		{"what the archive alone holds cannot be read", "", first, "remedy: bring the archive, NATS with JetStream, back;"},
	} {
		for _, withBus := range []bool{true, false} {
			t.Run(fmt.Sprint(row.what, ", NATS: ", withBus), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newModelled(t, withBus)
					job := newJob(engine.Policy{})
					a := c.start("a", 0, nil, job)
					a.ready(t)
					id := idIn(shard, modelledShards)
					f := job.submit(t, a.Node, id)
					synctest.Wait() // an entry for the start, another for the end
					job.next(t).succeed("1")
					want(t, f, "1")
					a.crash()
					etcd := c.etcd.ConnectInBubble(modeletcd.Direct{})
					if row.write != "" {
						if _, err := etcd.Put(t.Context(), row.write, "garbage"); err != nil {
							t.Fatal(err)
						}
					} else if _, err := etcd.Delete(t.Context(), row.remove); err != nil {
						t.Fatal(err)
					}
					_ = etcd.Close() // tells that its context has ended
					archive := newShelf()
					archive.away.Store(true)
					for _, name := range []string{"b", "c"} {
						c.start(name, 0, func(c *cfg) { c.Archive = archive }, job).ready(t)
					}
					time.Sleep(10 * time.Second)
					for _, n := range c.nodes[1:] {
						if took := wantUnserved(t, n.Client, id, row.remedy); took > time.Second {
							t.Errorf("an answer took %s", took)
						}
					}
				})
			})
		}
	}
}
