package integration_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/ledger"
	ledgerrepair "taskledger/ledger/repair"
	"taskledger/task"
)

// restoring is a node with the servers inside, whose etcd is set back to the past.
type restoring struct {
	t    *testing.T
	dir  string
	job  *behaviors.Behavior[string, string]
	made int
}

// serve runs the node while test looks at it.
func (r *restoring) serve(test func(n *engine.Node)) {
	r.t.Helper()
	servers, err := embedded.StartServers(within(r.t, soon), embedded.ServersConfig{Dir: r.dir})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { ok(r.t, servers.Close()) }()
	c, err := servers.Connect(within(r.t, soon), "", 1, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { ok(r.t, c.Close()) }()
	c.Store = tight{c.Store}
	run := r.job.Bind(func(context.Context, string) (string, error) { return "done", nil })
	n, err := c.NewNode(engine.NodeConfig{Behaviors: []task.Behavior{run}, TTL: time.Minute})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	defer func() {
		stop()
		ok(r.t, <-ended)
	}()
	test(n)
}

// work runs tasks until the shard is as wanted, and returns what it tells then.
func (r *restoring) work(n *engine.Node, what string, holds func(engine.ShardInfo) bool) engine.ShardInfo {
	r.t.Helper()
	var s engine.ShardInfo
	testcluster.Await(r.t, what, func() bool {
		r.made++
		f, err := r.job.Submit(within(r.t, soon), n, bulky(fmt.Sprint(r.made)))
		if err == nil {
			_, err = f.Wait(within(r.t, soon))
		}
		if err != nil {
			r.t.Fatal(err)
		}
		s = shardOf(r.t, n.Client, 0)
		return holds(s)
	})
	return s
}

func (r *restoring) wantSound(n *engine.Node, losses int) {
	r.t.Helper()
	found, err := n.Ledger().Verify(within(r.t, soon), ledger.VerifyOptions{Archive: true})
	if err != nil || found[0].Problem != "" || found[0].From != 1 || !found[0].Compared || len(found[0].Losses) != losses {
		r.t.Errorf("verified %+v, %v; want %d losses", found, err, losses)
	}
	if s := shardOf(r.t, n.Client, 0); s.Problem+s.Degraded != "" {
		r.t.Errorf("the shard tells %q, %q", s.Problem, s.Degraded)
	}
}

// An etcd that was restored from a backup lies behind its archive: no node serves the shard before that is given up.
// Then tasks go on, the archive begins anew where the journal has another history, the journal is trimmed, and the
// history is whole: of the archive of the past what the journal continues counts.
func TestRestore_OfAnEtcdBehindItsArchiveIsGivenUpAndGoesOn(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	r := &restoring{t: t, dir: t.TempDir(), job: behaviors.Define[string, string]("bulk", nil)}
	etcd, backup := filepath.Join(r.dir, "etcd"), filepath.Join(t.TempDir(), "etcd")
	var then, later engine.ShardInfo
	trimmed := func(s engine.ShardInfo) bool { return s.First > 1 && s.Archived > 0 }
	r.serve(func(n *engine.Node) { then = r.work(n, "a trimmed journal", trimmed) })
	ok(t, os.CopyFS(backup, os.DirFS(etcd)))
	r.serve(func(n *engine.Node) {
		later = r.work(n, "an archive that goes on", func(s engine.ShardInfo) bool { return s.Archived > then.Entries+10 })
		r.wantSound(n, 0)
	})
	ok(t, os.RemoveAll(etcd))
	ok(t, os.CopyFS(etcd, os.DirFS(backup)))
	var end uint64
	r.serve(func(n *engine.Node) {
		testcluster.Await(t, "a quarantined shard", func() bool {
			problem := shardOf(t, n.Client, 0).Problem
			return strings.Contains(problem, "quarantined") && strings.Contains(problem, "its archive with entry") && strings.Contains(problem, "repair --restored")
		})
		all, err := n.Operations().Repair(within(t, soon), ledgerrepair.Options{Restored: true})
		if err != nil || len(all) != 1 || !all[0].GivenUp || all[0].Entry >= later.Entries {
			t.Fatalf("gave up %+v, %v", all, err)
		}
		end = all[0].Entry
		testcluster.Await(t, "a shard that is served", func() bool { return shardOf(t, n.Client, 0).Problem == "" })
		r.work(n, "a journal that is trimmed again", func(s engine.ShardInfo) bool { return s.First > end+2 && s.Archived >= s.First-1 })
		r.wantSound(n, 1)
	})
	r.serve(func(n *engine.Node) {
		r.work(n, "an archive that goes on", func(s engine.ShardInfo) bool { return s.Archived > end+10 })
		r.wantSound(n, 1)
		var told []uint64
		first := uint64(0)
		for ev, err := range n.Ledger().Replay(within(t, soon), ledger.ReplayOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if first == 0 {
				first = ev.Position.Ref.Entry()
			}
			if b, is := ev.Body.(*events.Recovered); is {
				told = append(told, b.Entry)
			}
		}
		if first != 1 || len(told) != 1 || told[0] != end {
			t.Errorf("the history begins with entry %d, and tells of losses after %d; want 1 and [%d]", first, told, end)
		}
	})
}
