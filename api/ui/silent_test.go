package ui_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api"
	"taskledger/api/logs"
	"taskledger/api/operations"
	"taskledger/api/ui"
	"taskledger/behaviors/builtin"
	"taskledger/bulk"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/item"
	"taskledger/ledger"
	"taskledger/ledger/repair"
	"taskledger/projection"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/work/progress"
)

// silent is a cluster of which nobody answers anything: each call lasts until its caller gives up.
type silent struct{}

var _ operations.Client = silent{}

// hang waits until the caller gives up, as a question does whose owner is a stopped process.
func hang[T any](ctx context.Context) (nothing T, err error) {
	return nothing, hangs(ctx)
}

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("shard 1 does not answer: %w: %w", store.ErrUnavailable, context.Cause(ctx))
}

// asked is hangs of a command: it was sent, so nobody knows whether it was carried out.
func asked(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("shard 1 does not answer: %w: %w", task.ErrUnknown, context.Cause(ctx))
}

func (silent) SubmitRaw(ctx context.Context, _ string, _ []byte, _ task.SubmitOptions) (operations.Handle, error) {
	return nil, asked(ctx)
}

func (silent) SubmitMany(ctx context.Context, requests []task.Request, _ task.ManyOptions) []operations.Submitted {
	return slices.Repeat([]operations.Submitted{{Err: asked(ctx)}}, len(requests))
}

func (silent) Attach(events.TaskID) operations.Handle { panic("no page waits for an outcome") }

func (silent) Operate(ctx context.Context, _ operations.Verb, _, _ string) (bool, error) {
	return false, asked(ctx)
}

func (silent) OperateSeen(ctx context.Context, _ operations.Verb, _ *task.Task, _ string) (bool, error) {
	return false, asked(ctx)
}

func (silent) Each(ctx context.Context, _ task.Filter, _ task.Operation, _ bulk.Options) iter.Seq2[bulk.Report, error] {
	return func(yield func(bulk.Report, error) bool) { yield(hang[bulk.Report](ctx)) }
}

func (silent) Get(ctx context.Context, _ events.TaskID) (task.Task, error) {
	return hang[task.Task](ctx)
}

func (silent) GetForgotten(ctx context.Context, _ events.TaskID) (task.Task, error) {
	return hang[task.Task](ctx)
}

func (silent) ListPage(ctx context.Context, _ task.Filter, _ string) (task.Page, error) {
	return hang[task.Page](ctx)
}

func (silent) Counts(ctx context.Context, _ string) (task.Counts, error) {
	return hang[task.Counts](ctx)
}

func (silent) Explain(ctx context.Context, _ events.TaskID) (engine.Explanation, error) {
	return hang[engine.Explanation](ctx)
}

func (silent) Ledger() *ledger.Ledger {
	return ledger.New(ledger.Config{
		Cluster:  store.Cluster{ID: "silent", Shards: 2},
		Journal:  silent{},
		Owners:   silentOwners{},
		Revision: hang[int64],
	})
}

type silentOwners struct{}

func (silentOwners) Task(ctx context.Context, _ events.TaskID) (projection.Task, error) {
	return hang[projection.Task](ctx)
}

func (silentOwners) Present(ctx context.Context) (bool, error) { return hang[bool](ctx) }

func (silentOwners) Heads(ctx context.Context) ([]ledger.Head, error) {
	return hang[[]ledger.Head](ctx)
}

func (silentOwners) Digest(ctx context.Context, shard int) ledger.Head {
	return ledger.Head{Shard: shard, Problem: hangs(ctx).Error()}
}

func (silent) First(ctx context.Context, _ int) (uint64, error) { return hang[uint64](ctx) }

func (silent) Read(ctx context.Context, _ int, _ uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) { yield(hang[store.Record](ctx)) }
}

func (s silent) Backward(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return s.Read(ctx, shard, from)
}

func (s silent) Follow(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return s.Read(ctx, shard, from)
}

func (silent) Entry(ctx context.Context, _ int, _ uint64) (store.Record, error) {
	return hang[store.Record](ctx)
}

func (silent) Log(ctx context.Context, _ events.TaskID, _ tasklog.Selection) (tasklog.Told, error) {
	return hang[tasklog.Told](ctx)
}

func (silent) Nodes(ctx context.Context) ([]store.NodeInfo, error) {
	return hang[[]store.NodeInfo](ctx)
}

func (silent) Shards(ctx context.Context) ([]engine.ShardInfo, error) {
	return hang[[]engine.ShardInfo](ctx)
}

func (silent) Settings(ctx context.Context) (task.Settings, error) { return hang[task.Settings](ctx) }

func (silent) Repair(ctx context.Context, _ repair.Options) ([]repair.Stray, error) {
	return hang[[]repair.Stray](ctx)
}

func (silent) Ask(ctx context.Context, _, _ string, _ []byte) ([]byte, error) {
	return hang[[]byte](ctx)
}

func (silent) Stores() operations.Stores       { return silentStores{} }
func (silent) Schedules() operations.Schedules { return silentSchedules{} }
func (silent) Backfills() operations.Backfills { return silentSchedules{} }
func (silent) Works() operations.Works         { return silentWorks{} }

type silentStores struct{}

func (silentStores) Update(ctx context.Context, _ string, _ *item.Update) ([]item.Item, error) {
	return hang[[]item.Item](ctx)
}

func (silentStores) Claim(ctx context.Context, _ string, _ *item.Claim) (*item.Item, error) {
	return hang[*item.Item](ctx)
}

func (silentStores) Items(ctx context.Context, _ string, _ []int64, _ bool) ([]*item.Item, error) {
	return hang[[]*item.Item](ctx)
}

func (silentStores) Group(ctx context.Context, _ string, _ item.Page) ([]item.Item, bool, error) {
	return nil, false, hangs(ctx)
}

func (silentStores) Groups(ctx context.Context, _ string, _ bool) ([]item.Group, error) {
	return hang[[]item.Group](ctx)
}

type silentSchedules struct{}

func (silentSchedules) SetWith(
	ctx context.Context, _ string, _ schedule.Definition, _ schedule.Setting,
) (schedule.Version, bool, error) {
	return 0, false, hangs(ctx)
}

func (silentSchedules) Get(ctx context.Context, _ string) (schedule.Schedule, error) {
	return hang[schedule.Schedule](ctx)
}

func (silentSchedules) List(
	ctx context.Context, _ schedule.Filter, _ string, _ int,
) ([]schedule.Schedule, bool, error) {
	return nil, false, hangs(ctx)
}

func (silentSchedules) Steer(
	ctx context.Context, _ operations.ScheduleVerb, _, _ string, _ schedule.Version,
) error {
	return asked(ctx)
}

func (silentSchedules) RunWith(
	ctx context.Context, _ string, _ schedule.ByHand, _ schedule.Version,
) (operations.Handle, error) {
	return hang[operations.Handle](ctx)
}

func (silentSchedules) Backfill(
	ctx context.Context, _ string, _, _ time.Time, _ schedule.Version,
) (int, error) {
	return hang[int](ctx)
}

type silentWorks struct{}

func (silentWorks) Work(ctx context.Context, _ events.TaskID) (progress.Work, error) {
	return hang[progress.Work](ctx)
}

func (silentWorks) WorkLinear(ctx context.Context, _ events.TaskID) (progress.Work, error) {
	return hang[progress.Work](ctx)
}

func (silentWorks) WorkFailures(ctx context.Context, _ events.TaskID, _ string, _ int) (progress.FailurePage, error) {
	return hang[progress.FailurePage](ctx)
}

func (silentWorks) ResetWork(ctx context.Context, _ events.TaskID, _ operations.WorkReset) error {
	return asked(ctx)
}

func (silentWorks) RerunWork(ctx context.Context, _ events.TaskID) error { return asked(ctx) }

// serveClient is a dashboard on a client, which nobody runs.
func serveClient(t *testing.T, client operations.Client, of ui.Config) *server {
	t.Helper()
	of.Tokens = everybody
	u, err := ui.New(of)
	if err != nil {
		t.Fatal(err)
	}
	a, err := api.New(api.Config{
		Client:       client,
		Tokens:       everybody,
		Routes:       slices.Concat(frontsOf(client), logs.Routes(client), u.Routes()),
		ErrorFormats: []api.ErrorFormat{u.ErrorFormat()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &server{t: t, api: a}
}

// pathOf returns a path of a route, about a task, or a schedule, store or shard of some name.
func pathOf(r *api.Route, id string) string {
	return strings.TrimSuffix(strings.NewReplacer("{id}", strings.ReplaceAll(id, "/", "~"), "{name}", "none", "{shard}", "1",
		"{behavior}", "noop", "{job}", "none").Replace(r.Pattern), "{$}")
}

// asksNobody lists the routes that a node answers by itself.
var asksNobody = []string{
	"GET /ui/jobs", "POST /ui/jobs", "GET /ui/jobs/{job}", "POST /ui/jobs/{job}/stop", "GET /ui/stores",
	"GET /ui/login", "POST /ui/login", "POST /ui/logout", "POST /ui/links", "POST /ui/zone", "GET /ui/static/{hash}/{file}",
}

// Five seconds are those of the pages: the test waits for none of them.
func TestPages_ComeWithinFiveSecondsWhereNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveClient(t, silent{}, ui.Config{})
		for _, r := range s.routes() {
			name := r.Method + " " + r.Pattern
			form := formOf(name, "a")
			switch {
			case name == "POST /ui/submit":
				form["params"] = []string{"{}"}
			case name == "POST /ui/schedules":
				form = map[string][]string{"name": {"a", "b", "c"}, "verb": {"pause"}}
			case name == "POST /ui/changes":
				form["task"] = append(form["task"], "0.2.0 b")
			case strings.HasSuffix(name, "pause"):
				form = map[string][]string{"reason": {"why"}}
			}
			path := pathOf(r, "a")
			switch name {
			case "GET /ui/matching":
				path += "?behavior=noop&operation=cancel"
			case "GET /ui/tasks", "GET /ui/work":
				path += "?find=a"
			case "GET /ui/submit":
				path += "?like=a"
			}
			began := time.Now()
			got := s.send("admin", r.Method, path, form)
			took := time.Since(began)
			switch {
			case took > 5*time.Second:
				t.Errorf("%s takes %s", name, took)
			case slices.Contains(asksNobody, name):
				if took > 0 {
					t.Errorf("%s takes %s, and asks nobody", name, took)
				}
			case took == 0:
				t.Errorf("%s has asked nobody: %d %s", name, got.status, clip(got.text))
			case got.status == http.StatusInternalServerError || got.status >= 300 && got.status < 500 && got.status != http.StatusConflict:
				t.Errorf("%s: status %d: %s", name, got.status, clip(got.text))
			case !slices.ContainsFunc([]string{"does not answer", "not known", "in time", "too long"}, func(says string) bool {
				return strings.Contains(got.text, says)
			}):
				t.Errorf("%s does not say what is missing: %d %s", name, got.status, clip(got.text))
			}
		}
	})
}

// The caller's own large answers, and those of others, have all places: a page does not wait for one beyond its time.
func TestPages_ComeWithinFiveSecondsWhereLargeAnswersTakeAllPlaces(t *testing.T) {
	for name, takers := range map[string][]string{
		"of one": {"admin", "admin"},
		"of all": {"viewer", "viewer", "submitter", "submitter", "operator", "operator", "sleeper", "sleeper"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveClient(t, silent{}, ui.Config{})
				for _, r := range s.routes() {
					if !r.Large {
						continue
					}
					var taking sync.WaitGroup
					for _, who := range takers {
						path := "/v1/tasks"
						if who == "sleeper" {
							path += "?behavior=sleep"
						}
						taking.Go(func() { s.get(who, path) })
					}
					synctest.Wait()
					began := time.Now()
					got := s.send("admin", r.Method, pathOf(r, "a"), formOf(r.Method+" "+r.Pattern, "a"))
					took := time.Since(began)
					if took > 5*time.Second {
						t.Errorf("%s %s takes %s", r.Method, r.Pattern, took)
					}
					if got.status < 500 && r.Method == http.MethodGet {
						t.Errorf("%s is made without a place: %d", r.Pattern, got.status)
					}
					taking.Wait()
				}
			})
		})
	}
}

// A node hangs: its process is stopped, or its machine is gone, and its session still holds. Others tell what they
// have.
func TestPages_OfAClusterWithANodeThatHangsNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	const shards, within = 8, 2 * time.Second
	c := testcluster.New(t, testcluster.Options{Shards: shards})
	n := c.StartNodes(nil, func(string) []task.Behavior { return []task.Behavior{builtin.Noop(), builtin.Sleep()} }, "a", "b")
	c.AwaitSpread() // a shard that moves later would move its task to the node that answers
	infos, err := n[0].Operations().Shards(testcluster.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{} // of a task, by the session of its owner
	for _, is := range infos {
		ids[is.Owner] = string(testcluster.IDIn(is.Shard, shards))
	}
	s := serveClient(t, operations.Direct{Client: n[0].Client}, ui.Config{Within: within})
	for _, id := range ids {
		s.begin("sleep", id, `{"duration":"1h"}`)
	}
	hung := n[1].SessionID()
	n[1].Crash()
	defer n[1].Kill() // ends its session, for which the other node would wait before it ends
	var asked sync.WaitGroup
	for _, r := range s.routes() {
		if r.Method != http.MethodGet {
			continue
		}
		asked.Go(func() {
			began := time.Now()
			got := s.get("admin", pathOf(r, ids[hung]))
			if took := time.Since(began); took > 10*within || got.status == http.StatusInternalServerError {
				t.Errorf("%s: %d after %s: %s", r.Pattern, got.status, took, clip(got.text))
			}
		})
	}
	asked.Wait()
	s.want(s.get("viewer", "/ui/"), 200, "nobody answers", `data-label="Node"><bdi>a</bdi>`)
	s.want(s.get("viewer", "/ui/tasks"), 200, "This page is not whole", "tasks of shard ", "nobody has answered", ids[n[0].SessionID()])
	s.want(s.get("viewer", "/ui/nodes"), 200, "not served", "served</span>")
	s.want(s.get("viewer", "/ui/tasks/"+ids[hung]), 200, "This page is not whole", "the task as it is now", `href="/ui/tasks/`+ids[hung]+`/export"`)
	s.wantNot(s.want(s.get("viewer", "/ui/tasks/"+ids[n[0].SessionID()]), 200, "RUNNING"), "This page is not whole")
}

// The session of the only node that may own shards has ended: no shard has an owner.
func TestPages_OfAClusterWithoutAnOwnerNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	const within = time.Second
	c := testcluster.New(t, testcluster.Options{Shards: 2})
	owner := c.StartNode("owner", nil, builtin.Noop())
	other := c.StartNode("other", func(cfg *engine.NodeConfig) { cfg.Owner = new(bool) }, builtin.Noop())
	s := serveClient(t, operations.Direct{Client: other.Client}, ui.Config{Within: within})
	s.begin("noop", "a", "{}")
	owner.Kill()
	testcluster.Await(t, "the others to know", func() bool {
		return !strings.Contains(s.get("viewer", "/ui/nodes").text, "served</span>")
	})
	for _, r := range s.routes() {
		if r.Method != http.MethodGet || strings.HasPrefix(r.Pattern, "/ui/static") {
			continue
		}
		began := time.Now()
		got := s.get("admin", pathOf(r, "a"))
		if took := time.Since(began); took > 10*within || got.status == http.StatusInternalServerError {
			t.Errorf("%s: %d after %s: %s", r.Pattern, got.status, took, clip(got.text))
		}
	}
	s.want(s.get("viewer", "/ui/"), 200, "This page is not whole", "Shards 0, 1: ")
	s.want(s.get("viewer", "/ui/tasks"), 200, "This page is not whole")
	s.want(s.get("viewer", "/ui/tasks/a"), 200, "the task as it is now", `href="/ui/tasks/a/export"`)
	s.want(s.get("viewer", "/ui/nodes"), 200, "not served")
	s.want(s.get("viewer", "/ui/audit"), 200)
}
