package engine_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// eachSecond is a schedule that fires often, so that a test sees some of its ticks.
func eachSecond() schedule.Definition {
	return schedule.Definition{Cron: "* * * * * ?", Behavior: "job", Params: []byte(`{"n":1}`)}
}

// daily is one of which no test sees a tick.
func daily() schedule.Definition {
	return schedule.Definition{Cron: "0 0 3 1 1 ? 2100", Behavior: "job"}
}

func TestSchedules_EachTickHasARunInItsEntry(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	n := c.StartNode("a", nil, j)
	all := c.StartClient("ada", nil).Schedules()
	if _, changed, err := all.Set(within(t), "often", eachSecond(), 0); err != nil || !changed {
		t.Fatalf("set: changed %t, %v", changed, err)
	}
	var before events.Millis
	for range 3 {
		r := j.next(t)
		if string(r.Params) != `{"n":1}` || r.Task.Affinity() != "often" {
			t.Errorf("run %s with %s", r.Task, r.Params)
		}
		got, err := n.Client.Get(within(t), r.Task)
		if err != nil || got.Creator != "ada" {
			t.Errorf("run of %q: %v", got.Creator, err)
		}
		ticked, created := entryOf(t, n, r.Task)
		if ticked == nil || ticked.Run != r.Task || ticked.From <= before || !created {
			t.Errorf("entry of run %s has %+v", r.Task, ticked)
		}
		before = ticked.From
		r.succeed("1")
	}
	s, err := all.Get(within(t), "often")
	if err != nil || s.Last < before || s.Next <= s.Last || s.SetBy != "ada" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := all.Delete(within(t), "often", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := all.GetLinear(within(t), "often"); !errors.Is(err, schedule.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
	for len(j.runs) > 0 {
		j.next(t).succeed("1")
	}
}

// entryOf returns the decision in the entry that created a run, and whether the run is created there.
func entryOf(t *testing.T, n *testcluster.Node, run events.TaskID) (ticked *events.Ticked, created bool) {
	t.Helper()
	var entry uint64
	for ev, err := range n.Client.Ledger().History(within(t), run) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind() == events.KindCreated {
			entry, created = ev.Position.Ref.Entry(), true
		}
	}
	for ev, err := range n.Client.Ledger().History(within(t), events.ScheduleRecord(run.Affinity())) {
		if err != nil {
			t.Fatal(err)
		}
		if b, is := ev.Body.(*events.Ticked); is && ev.Position.Ref.Entry() == entry {
			ticked = b
		}
	}
	return ticked, created
}

// A hundred callers who ask for a run at once share one, over whichever node they ask.
func TestSchedules_RunByHandIsShared(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	nodes := c.StartNodes(nil, func(string) []task.Behavior { return []task.Behavior{j} }, "a", "b", "c")
	all := nodes[0].Client.Schedules()
	if _, _, err := all.Set(within(t), "daily", daily(), 0); err != nil {
		t.Fatal(err)
	}
	if err := all.Pause(within(t), "daily", "nobody may be disturbed", 0); err != nil {
		t.Fatal(err)
	}
	ids := make(chan events.TaskID, 100)
	for i := range cap(ids) {
		go func() {
			f, err := nodes[i%len(nodes)].Client.Schedules().Run(within(t), "daily", "", 0)
			if err != nil {
				t.Error(err)
			}
			ids <- f.ID()
		}()
	}
	var got []events.TaskID
	for range cap(ids) {
		got = append(got, <-ids)
	}
	if slices.Sort(got); len(slices.Compact(got)) != 1 {
		t.Errorf("runs %v, want one", got)
	}
	first, err := all.Run(within(t), "daily", "", 0)
	if err != nil || !first.Joined() || first.ID() != got[0] {
		t.Fatalf("run %s, joined %t, %v, want %s", first.ID(), first.Joined(), err, got[0])
	}
	j.next(t).succeed("7")
	want(t, first, "7") // what has not ended would be shared once more
	f, err := all.Run(within(t), "daily", "k", 0)
	if err != nil {
		t.Fatal(err)
	}
	j.next(t).succeed("8")
	want(t, f, "8")
	again, err := nodes[1].Client.Schedules().Run(within(t), "daily", "other", 0)
	if err != nil || again.ID() == f.ID() {
		t.Errorf("another key has run %s, %v", again.ID(), err)
	}
	j.next(t).succeed("9")
	j.nothing(t)
	long := strings.Repeat("k", events.MaxKeyBytes+1)
	if _, err := all.Run(within(t), "daily", long, 0); !errors.As(err, new(*task.LimitError)) {
		t.Errorf("with a long key: %v", err)
	}
}

func TestSchedules_AnEqualDefinitionWritesNothing(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	n := c.StartNode("a", nil, newJob(task.Policy{}))
	all := n.Client.Schedules()
	v, _, err := all.Set(within(t), "daily", daily(), 0)
	if err != nil {
		t.Fatal(err)
	}
	again, changed, err := all.Set(within(t), "daily", daily(), v)
	if err != nil || changed || again != v {
		t.Errorf("version %d after %d, changed %t, %v", again, v, changed, err)
	}
	other := daily()
	other.Overlap = schedule.Replace
	if _, changed, err = all.Set(within(t), "daily", other, v); err != nil || !changed {
		t.Errorf("changed %t, %v", changed, err)
	}
	if _, _, err = all.Set(within(t), "daily", daily(), v); !errors.Is(err, schedule.ErrChanged) {
		t.Errorf("with an old version: %v", err)
	}
	list, more, err := all.List(within(t), schedule.Filter{}, "", 10)
	if err != nil || more || len(list) != 1 || list[0].Definition.Overlap != schedule.Replace {
		t.Errorf("list %+v, more %t, %v", list, more, err)
	}
}

func TestSchedules_BackfillRunsTicksOfThePast(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	all := c.StartNode("a", nil, j).Client.Schedules()
	hourly := schedule.Definition{Cron: "0 0 0-2 1 1 ? 2026,2100", Behavior: "job"}
	if _, _, err := all.Set(within(t), "hourly", hourly, 0); err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if n, err := all.Backfill(within(t), "hourly", from, from.Add(2*time.Hour), 0); err != nil || n != 3 {
		t.Fatalf("%d ticks, %v", n, err)
	}
	if _, err := all.Backfill(within(t), "hourly", from, from, 0); err == nil {
		t.Error("a second backfill begins")
	}
	for i := range 3 {
		r := j.next(t)
		if tick := events.MillisOf(from.Add(time.Duration(i) * time.Hour)); r.Task != events.TaskID("hourly/fill:"+decimal(tick)) {
			t.Errorf("run %d is %s", i, r.Task)
		}
		if len(j.runs) > 0 {
			t.Error("two ticks of a backfill run at a time")
		}
		r.succeed("1")
	}
	testcluster.Await(t, "the end of the backfill", func() bool {
		s, err := all.Get(within(t), "hourly")
		return err == nil && s.Fill == nil
	})
	var wrong *store.InvalidError
	if _, err := all.Backfill(within(t), "hourly", from, time.Now().Add(time.Hour), 0); !errors.As(err, &wrong) || wrong.Field != "to" {
		t.Errorf("of the future: %v", err)
	}
}

// What a schedule makes no submit may name, whether the schedule is there or not.
func TestSubmit_RefusesNamesOfSchedules(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	n := c.StartNode("a", nil, j)
	for _, id := range []events.TaskID{"x/tick:1", "x/run:a", "x/fill:1", "x/schedule:"} {
		_, err := n.Client.Submit(within(t), j, nil, task.SubmitOptions{ID: id})
		if wrong := new(store.InvalidError); !errors.As(err, &wrong) || wrong.Field != "id" {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// A schedule without ticks runs when somebody asks, with the priority that is asked for. A key names the
// same UUID again, and no submit shares the run.
func TestSchedules_WithoutTicksRunByUUIDs(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	nodes := c.StartNodes(nil, func(string) []task.Behavior { return []task.Behavior{j} }, "a", "b")
	all := nodes[0].Client.Schedules()
	d := schedule.Definition{Behavior: "job", Priority: 200, UUIDs: true}
	if _, _, err := all.Set(within(t), "idle", d, 0); err != nil {
		t.Fatal(err)
	}
	if _, changed, err := all.Set(within(t), "idle", schedule.Definition{Behavior: "job", Priority: 200}, 0); changed || err != nil {
		t.Errorf("without a word of names: changed %t, %v", changed, err)
	}
	is, err := all.GetLinear(within(t), "idle")
	if err != nil || is.Next != 0 || !is.Definition.UUIDs || is.Definition.Cron != "" {
		t.Fatalf("%+v, %v", is, err)
	}
	first, err := all.RunWith(within(t), "idle", schedule.ByHand{Key: "k", Priority: 300}, 0)
	if err != nil {
		t.Fatal(err)
	}
	j.next(t).succeed("1")
	want(t, first, "1")
	again, err := all.RunWith(within(t), "idle", schedule.ByHand{Key: "k"}, 0)
	if err != nil || again.ID() != first.ID() || !again.Joined() {
		t.Errorf("run %s, %v, want %s", again.ID(), err, first.ID())
	}
	other, err := all.Run(within(t), "idle", "", 0)
	if err != nil || other.ID() == first.ID() {
		t.Errorf("run %s, %v", other.ID(), err)
	}
	j.next(t).succeed("2")
	want(t, other, "2")
	for id, priority := range map[events.TaskID]int64{first.ID(): 300, other.ID(): 200} {
		run, err := nodes[1].Client.GetLinear(within(t), id)
		if err != nil || run.Priority != priority || events.ScheduledPrefix(id) != "" || id.Affinity() != "idle" {
			t.Errorf("%s: %+v, %v, want priority %d", id, run, err, priority)
		}
		_, err = nodes[0].Client.Submit(within(t), j, nil, task.SubmitOptions{ID: id})
		if wrong := new(store.InvalidError); !errors.As(err, &wrong) || wrong.Field != "id" {
			t.Errorf("submit of %s: %v", id, err)
		}
	}
	_, err = all.Backfill(within(t), "idle", time.Unix(1, 0), time.Unix(2, 0), 0)
	if wrong := new(store.InvalidError); !errors.As(err, &wrong) || wrong.Field != "cron" {
		t.Errorf("backfill: %v", err)
	}
}

func TestSchedules_AReasonStandsInTheHistory(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	n := c.StartNode("a", nil, newJob(task.Policy{}))
	all, d := n.Schedules(), daily()
	first, changed, err := all.SetWith(within(t), "daily", d, schedule.Setting{Seen: schedule.Absent, Reason: "moving house"})
	if !changed || err != nil {
		t.Fatal(changed, err)
	}
	same, changed, err := all.SetWith(within(t), "daily", d, schedule.Setting{Seen: first, Reason: "again"})
	if same != first || changed || err != nil {
		t.Errorf("the same: version %d, changed %t, %v, want version %d", same, changed, err, first)
	}
	if _, _, err := all.SetWith(within(t), "daily", d, schedule.Setting{Seen: schedule.Absent}); !errors.Is(err, schedule.ErrChanged) {
		t.Errorf("of another version: %v", err)
	}
	_, _, err = all.SetWith(within(t), "daily", d, schedule.Setting{Reason: strings.Repeat("r", 257)})
	if limit, is := errors.AsType[*task.LimitError](err); !is || limit.Field != "reason" || limit.Limit != 256 {
		t.Errorf("a long reason: %v", err)
	}
	d.Keep = 7
	if _, changed, err := all.Set(within(t), "daily", d, first); !changed || err != nil {
		t.Errorf("without a reason: changed %t, %v", changed, err)
	}
	wantHistory(t, n.Client, events.ScheduleRecord("daily"), "ScheduleDefined ScheduleSet")
	for ev, err := range n.Ledger().History(within(t), events.ScheduleRecord("daily")) {
		if b, is := ev.Body.(*events.ScheduleDefined); is && b.Reason != "moving house" || err != nil {
			t.Errorf("%+v, %v", ev.Body, err)
		}
	}
}

// The owner dies between ticks: each tick of the time still has one run.
func TestSchedules_GoOnWhenTheirOwnerDies(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	nodes := c.StartNodes(nil, func(string) []task.Behavior { return []task.Behavior{j} }, "a", "b")
	d := eachSecond()
	d.Overlap, d.Misfire = schedule.Allow, schedule.All
	if _, _, err := nodes[0].Client.Schedules().Set(within(t), "often", d, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		j.next(t).succeed("1")
	}
	nodes[0].Crash()
	for range 3 {
		j.next(t).succeed("1")
	}
	all := nodes[1].Client.Schedules()
	if err := all.Pause(within(t), "often", "", 0); err != nil {
		t.Fatal(err)
	}
	var next events.Millis
	for ev, err := range nodes[1].Client.Ledger().History(within(t), events.ScheduleRecord("often")) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := ev.Body.(type) {
		case *events.ScheduleSet:
			next = b.Next
		case *events.Ticked:
			if b.From != next {
				t.Errorf("tick %d is decided, want %d", b.From, next)
			}
			next = b.Next
		}
	}
	for len(j.runs) > 0 {
		j.next(t).succeed("1")
	}
}

func decimal(at events.Millis) string { return strconv.FormatInt(int64(at), 10) }

// An ended run of a schedule is retried as any task is, whatever became of the journal; a forgotten one is told from a
// task that somebody may submit again.
func TestRetry_OfARunOfASchedule(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newAged(t, mode, task.Policy{RetainCount: 1})
			d := daily()
			d.Behavior, d.Params, d.Keep = "echo", []byte(`{"n":1}`), -1
			if _, _, err := p.client.Schedules().Set(within(t), "daily", d, 0); err != nil {
				t.Fatal(err)
			}
			f, err := p.client.Schedules().Run(within(t), "daily", "", 0)
			if err != nil {
				t.Fatal(err)
			}
			want(t, f, `{"n":1}`)
			if _, err := p.client.Operations().Retry(within(t), f.ID()); err != nil {
				t.Fatal(err)
			}
			want(t, p.client.Attach(f.ID()), `{"n":1}`)
			p.pass()
			state := new(task.StateError)
			_, err = p.node.Operations().Retry(within(t), f.ID())
			if !errors.Is(err, task.ErrNotFound) && !errors.As(err, &state) {
				t.Errorf("retry of a forgotten run: %v", err)
			}
		})
	}
}
