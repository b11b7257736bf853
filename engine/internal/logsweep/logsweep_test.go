package logsweep_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"taskledger/engine/internal/logsweep"
	"taskledger/engine/internal/outcome"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const at = 3 // the shard

// fixture is a shard whose owner sweeps it, and a store of logs that tells two lives a page.
type fixture struct {
	tb
	*memlog.Store
	state *projection.Shard
	sweep *logsweep.Sweep
	shard.Extension
	now   events.Millis
	away  bool
	reads int
	read  func() // called by the next read of a page; nil = nothing is
}

type tb interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

func newFixture(t tb) *fixture {
	f := &fixture{
		tb:    t,
		Store: memlog.New(),
		state: projection.NewShard(at),
		now:   events.MillisOf(time.Date(2027, 3, 1, 9, 30, 0, 0, time.UTC)),
	}
	f.sweep = logsweep.New(f, func() time.Time { return time.UnixMilli(int64(f.now)) }, slog.New(slog.DiscardHandler))
	f.Extension = f.sweep.AtOwner(f.state)
	return f
}

// Lives implements tasklog.Store.
func (f *fixture) Lives(ctx context.Context, shard uint16, page int) (lives []events.Ref, next int, err error) {
	if f.away {
		return nil, 0, store.ErrUnavailable
	}
	f.reads++
	all, _, err := f.Store.Lives(ctx, shard, 0)
	if f.read != nil {
		f.read()
		f.read = nil
	}
	const size = 2
	lives = all[min(page*size, len(all)):min(page*size+size, len(all))]
	if (page+1)*size < len(all) {
		next = page + 1
	}
	return lives, next, err
}

// Forget implements tasklog.Store.
func (f *fixture) Forget(ctx context.Context, shard uint16, life events.Ref, before uint32) error {
	if f.away {
		return store.ErrUnavailable
	}
	return f.Store.Forget(ctx, shard, life, before)
}

// apply records an event in an entry of its own, and returns it.
func (f *fixture) apply(id events.TaskID, body events.Body) events.Ref {
	f.Helper()
	number := f.state.Number + 1
	ev := events.Event{
		Task:     id,
		Seq:      1,
		Body:     body,
		Position: events.Position{Shard: at, Ref: events.RefOf(number, 0)},
		At:       f.now,
	}
	before := f.state.Task(id)
	if before != nil {
		ev.Seq, ev.Prev = before.Seq+1, before.Last
	}
	if _, err := f.state.Apply(before, &ev); err != nil {
		f.Fatal(err)
	}
	f.state.Seal(&events.Entry{Number: number, Time: f.now})
	return ev.Position.Ref
}

func (f *fixture) create(id events.TaskID) events.Ref {
	f.Helper()
	policy, err := task.Policy{}.Complete()
	if err != nil {
		f.Fatal(err)
	}
	return f.apply(id, &events.Created{Behavior: "work", Policy: policy, NotBefore: f.now})
}

// log gives a life a log.
func (f *fixture) log(shard uint16, life events.Ref) {
	f.Helper()
	of := tasklog.Attempt{Shard: shard, Life: life, Number: 1}
	line := tasklog.Batch{First: 1, Lines: []tasklog.Line{{}}}
	if _, err := f.Append(context.Background(), of, tasklog.End{}, line); err != nil {
		f.Fatal(err)
	}
}

// logs returns the lives that have one.
func (f *fixture) logs() []events.Ref {
	f.Helper()
	all, _, err := f.Store.Lives(context.Background(), at, 0)
	if err != nil {
		f.Fatal(err)
	}
	return all
}

// after lets time pass, and has the owner take turns until it waits again.
func (f *fixture) after(d time.Duration) {
	f.Helper()
	f.now += events.Millis(d.Milliseconds())
	f.MakeDue(f.now)
	for turns := 0; ; turns++ {
		if turns == 10_000 {
			f.Fatal("the sweep does not end")
		}
		work := f.Prepare(f.now)
		if work == nil {
			break
		}
		if prepared := work(context.Background()); prepared != nil {
			prepared()
		}
	}
	if due := f.NextDue(); due <= f.now || due > f.now+events.Millis((15*time.Minute).Milliseconds()) {
		f.Errorf("the next sweep is due in %d ms", due-f.now)
	}
}

func TestSweep_ForgetsTheLogsOfLivesThatAreGoneAndNoOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		var stays []events.Ref
		for i := range rapid.IntRange(0, 300).Draw(t, "tasks") {
			id := events.TaskID(fmt.Sprint("task-", i%200)) // some live twice
			if f.state.Task(id) != nil {
				f.apply(id, &events.Deleted{})
			}
			f.log(at, f.create(id))
		}
		for _, life := range f.logs() {
			if f.state.Lives(life) {
				stays = append(stays, life)
			}
		}
		for i := range stays {
			if rapid.Bool().Draw(t, "goes") {
				for task := range f.state.Tasks() {
					if task.Created == stays[i] {
						f.apply(task.ID, &events.Deleted{})
						break
					}
				}
				stays[i] = 0
			}
		}
		stays = slices.DeleteFunc(stays, func(r events.Ref) bool { return r == 0 })
		f.log(at+1, events.RefOf(1, 0)) // of another shard
		f.after(15 * time.Minute)
		if got := f.logs(); !slices.Equal(got, stays) {
			t.Fatalf("%d logs are left, want those of %d tasks", len(got), len(stays))
		}
		if other, _, _ := f.Store.Lives(context.Background(), at+1, 0); len(other) != 1 {
			t.Fatal("the log of another shard is gone")
		}
	})
}

func TestSweep_ComesEveryTenMinutesOrSo(t *testing.T) {
	f := newFixture(t)
	for range 60 {
		f.after(time.Minute)
	}
	if f.reads < 4 || f.reads > 8 {
		t.Errorf("%d sweeps in an hour", f.reads)
	}
}

// A life may begin when the page was read, and another owner may have taken over: its entries are not in the state.
func TestSweep_LeavesLivesThatItsStateDoesNotHaveYet(t *testing.T) {
	f := newFixture(t)
	f.create("old")
	later := events.RefOf(f.state.Number+1, 0)
	f.log(at, later)
	f.after(15 * time.Minute)
	if got := f.logs(); !slices.Equal(got, []events.Ref{later}) {
		t.Errorf("logs of %d are left, want that of %d", got, later)
	}
	f.read = func() { f.log(at, f.create("new")) }
	f.after(15 * time.Minute)
	if got := f.logs(); len(got) != 1 || !f.state.Lives(got[0]) {
		t.Errorf("logs of %d are left, want that of the life", got)
	}
}

func TestSweep_IsPutOffWhileTheStoreIsAway(t *testing.T) {
	f := newFixture(t)
	f.log(at, f.create("x"))
	f.apply("x", &events.Deleted{})
	f.away = true
	f.after(15 * time.Minute)
	f.after(15 * time.Minute)
	f.away = false
	f.after(0)
	if len(f.logs()) != 1 {
		t.Error("it is swept at once")
	}
	f.after(15 * time.Minute)
	if got := f.logs(); len(got) != 0 {
		t.Errorf("logs of %d are left", got)
	}
}

// A shard whose owner's clock was hours ahead is swept again in minutes.
func TestSweep_GoesOnWhenTheClockIsSetBack(t *testing.T) {
	f := newFixture(t)
	f.after(time.Minute)
	f.log(at, f.create("x"))
	f.apply("x", &events.Deleted{})
	f.after(-5 * time.Hour)
	f.after(15 * time.Minute)
	if got := f.logs(); len(got) != 0 {
		t.Errorf("logs of %d are left", got)
	}
}

func TestSweep_OfNoLogsIsNone(t *testing.T) {
	s := logsweep.New(nil, time.Now, slog.New(slog.DiscardHandler))
	if x := s.AtOwner(projection.NewShard(at)); x.NextDue != nil || x.Prepare != nil {
		t.Error("there is something to do")
	}
	s.Deleted(at, []outcome.Outcome{{Life: 1, Attempt: 1}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestDeleted_LogsAreForgottenAtOnceAndThoseOfEndedTasksStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for n := range uint64(3) {
			f.log(at, events.RefOf(1+n, 0))
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.sweep.Run(ctx) }()
		f.sweep.Deleted(at, []outcome.Outcome{
			{Life: events.RefOf(1, 0), Attempt: 1},
			{Life: events.RefOf(2, 0), Attempt: 1, Status: task.Success},
			{Life: events.RefOf(3, 0)}, // it has never run: to ask the store would be in vain
		})
		synctest.Wait()
		if got, want := f.logs(), []events.Ref{events.RefOf(2, 0), events.RefOf(3, 0)}; !slices.Equal(got, want) {
			t.Errorf("logs of %d are left, want %d", got, want)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Deletes come as fast as entries are committed: whoever commits them waits for no store of logs.
func TestDeleted_NeverWaits(t *testing.T) {
	f := newFixture(t)
	for n := range uint64(100_000) {
		f.sweep.Deleted(at, []outcome.Outcome{{Life: events.RefOf(1+n, 0), Attempt: 1}})
	}
}
