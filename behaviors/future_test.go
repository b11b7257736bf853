package behaviors_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/task"
)

// task stands for a future of the engine. Its callbacks run in the goroutine that resolves or closes it.
type pendingTask struct {
	id   events.TaskID
	done chan struct{}

	mu      sync.Mutex
	over    bool
	result  []byte
	err     error
	waiting []func([]byte, error)
	closed  int
}

func newTask(id events.TaskID) *pendingTask { return &pendingTask{id: id, done: make(chan struct{})} }

func (f *pendingTask) ID() events.TaskID     { return f.id }
func (f *pendingTask) Joined() bool          { return true }
func (f *pendingTask) Repeated() bool        { return true }
func (f *pendingTask) Done() <-chan struct{} { return f.done }

func (f *pendingTask) Wait(ctx context.Context) ([]byte, error) {
	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *pendingTask) Then(fn func([]byte, error)) {
	f.mu.Lock()
	if !f.over {
		defer f.mu.Unlock()
		f.waiting = append(f.waiting, fn)
		return
	}
	f.mu.Unlock()
	fn(f.result, f.err)
}

func (f *pendingTask) Close() {
	f.mu.Lock()
	f.closed++
	f.mu.Unlock()
	f.resolve("", task.ErrClosed)
}

func (f *pendingTask) resolve(result string, err error) {
	f.mu.Lock()
	if f.over {
		f.mu.Unlock()
		return
	}
	f.over, f.err = true, err
	if result != "" {
		f.result = []byte(result)
	}
	waiting := f.waiting
	close(f.done)
	f.mu.Unlock()
	for _, fn := range waiting {
		fn(f.result, f.err)
	}
}

// tasks makes n tasks and their futures.
func tasks(n int) (ts []*pendingTask, fs []*behaviors.Future[int]) {
	for range n {
		t := newTask("t")
		ts, fs = append(ts, t), append(fs, behaviors.NewFuture[int](t))
	}
	return ts, fs
}

var errTask = &task.Error{Task: "t", Code: "failed", Message: "no luck"}

// want checks that a future has resolved as given.
func want[R comparable](t *testing.T, f *behaviors.Future[R], value R, err error) {
	t.Helper()
	select {
	case <-f.Done():
	default:
		t.Fatal("future has not resolved")
	}
	got, gotErr := f.Wait(t.Context())
	if got != value || !errors.Is(gotErr, err) {
		t.Errorf("resolved with %v, %v; want %v, %v", got, gotErr, value, err)
	}
}

func pending[R any](t *testing.T, f *behaviors.Future[R]) {
	t.Helper()
	select {
	case <-f.Done():
		t.Fatal("future has resolved")
	default:
	}
}

func TestFuture_DecodesTheOutcomeOfItsTask(t *testing.T) {
	ts, fs := tasks(2)
	if fs[0].ID() != "t" || !fs[0].Joined() {
		t.Errorf("future of %q, joined %t", fs[0].ID(), fs[0].Joined())
	}
	pending(t, fs[0])
	ts[0].resolve("42", nil)
	want(t, fs[0], 42, nil)
	ts[1].resolve("", errTask)
	want(t, fs[1], 0, errTask)
}

func TestFuture_AVoidResultIsNone(t *testing.T) {
	source := newTask("t")
	source.resolve("", nil)
	want(t, behaviors.NewFuture[behaviors.None](source), behaviors.None{}, nil)
}

type explosive struct{}

func (*explosive) UnmarshalJSON([]byte) error { panic("boom") }

func TestFuture_AResultThatDoesNotFitIsAnErrorThatNamesTheTask(t *testing.T) {
	check := func(err error, cause string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "task some/task: ") || !strings.Contains(err.Error(), cause) {
			t.Errorf("error %v, want one with the task and %q", err, cause)
		}
	}
	text, void := newTask("some/task"), newTask("some/task")
	text.resolve(`"text"`, nil)
	void.resolve("", nil)
	_, err := behaviors.NewFuture[int](text).Wait(t.Context())
	check(err, "is string, want a whole number")
	_, err = behaviors.NewFuture[int](void).Wait(t.Context())
	check(err, "none, want a whole number")
	_, err = behaviors.NewFuture[explosive](text).Wait(t.Context())
	check(err, "panic: boom")
	one := func(explosive) (int, error) { return 1, nil }
	_, err = behaviors.Then(behaviors.NewFuture[explosive](text), one).Wait(t.Context())
	check(err, "panic: boom")
}

func TestFuture_WaitEndsWithItsContext(t *testing.T) {
	_, fs := tasks(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	same := func(n int) (int, error) { return n, nil }
	for _, f := range []*behaviors.Future[int]{fs[0], behaviors.Then(fs[0], same)} {
		if _, err := f.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
	}
}

func TestThen_RunsOnceWhetherOrNotAnybodyWaits(t *testing.T) {
	ts, fs := tasks(1)
	runs := 0
	f := behaviors.Then(fs[0], func(n int) (string, error) { runs++; return strings.Repeat("x", n), nil })
	pending(t, f)
	ts[0].resolve("3", nil)
	if runs != 1 {
		t.Errorf("%d runs after the outcome, want 1", runs)
	}
	want(t, f, "xxx", nil)
	want(t, f, "xxx", nil)
	if runs != 1 || f.ID() != "" || f.Joined() {
		t.Errorf("%d runs, id %q", runs, f.ID())
	}
}

func TestThen_AFailurePassesThroughAChain(t *testing.T) {
	ts, fs := tasks(1)
	f := fs[0]
	for range 3 {
		f = behaviors.Then(f, func(int) (int, error) { t.Error("ran on failure"); return 0, nil })
	}
	ts[0].resolve("", errTask)
	want(t, f, 0, errTask)
}

func TestHandle_RunsOnEitherOutcome(t *testing.T) {
	ts, fs := tasks(2)
	orZero := func(n int, err error) (int, error) {
		if err != nil {
			return -1, nil
		}
		return n, nil
	}
	good, bad := behaviors.Handle(fs[0], orZero), behaviors.Handle(fs[1], orZero)
	ts[0].resolve("7", nil)
	ts[1].resolve("", errTask)
	want(t, good, 7, nil)
	want(t, bad, -1, nil)
	want(t, behaviors.Handle(bad, func(n int, err error) (int, error) { return n - 1, err }), -2, nil)
}

func TestThen_APanicBecomesTheError(t *testing.T) {
	ts, fs := tasks(1)
	f := behaviors.Then(fs[0], func(int) (int, error) { panic("boom") })
	after := behaviors.Then(f, func(n int) (int, error) { return n, nil })
	ts[0].resolve("1", nil)
	for _, f := range []*behaviors.Future[int]{f, after} {
		if _, err := f.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "panic: boom") {
			t.Errorf("error %v, want the panic", err)
		}
	}
}

// An attempt that returns the error stores its beginning.
func TestThen_APanicWithALongValueTellsItsStackToo(t *testing.T) {
	ts, fs := tasks(1)
	f := behaviors.Then(fs[0], func(int) (int, error) { panic(strings.Repeat("x", 1<<20)) })
	ts[0].resolve("1", nil)
	_, err := f.Wait(t.Context())
	if err == nil {
		t.Fatal("no error")
	}
	if stored := (events.Error{Message: err.Error()}).Fit().Message; !strings.Contains(stored, "future_test.go") {
		t.Errorf("no stack in what is stored: %.200q", stored)
	}
}

func TestThen_AFunctionThatEndsItsGoroutineLeavesNobodyWaiting(t *testing.T) {
	ts, fs := tasks(1)
	f := behaviors.Then(fs[0], func(int) (int, error) { runtime.Goexit(); return 0, nil })
	go ts[0].resolve("1", nil)
	if _, err := f.Wait(t.Context()); err == nil {
		t.Error("resolved without error")
	}
}

func TestAll_ResolvesWithEveryResultInOrder(t *testing.T) {
	ts, fs := tasks(3)
	all := behaviors.All(fs...)
	for i, text := range map[int]string{2: "30", 0: "10", 1: "20"} {
		pending(t, all)
		ts[i].resolve(text, nil)
	}
	if got, err := all.Wait(t.Context()); err != nil || !slices.Equal(got, []int{10, 20, 30}) {
		t.Errorf("resolved with %v, %v", got, err)
	}
	if got, err := behaviors.All[int]().Wait(t.Context()); err != nil || got == nil || len(got) != 0 {
		t.Errorf("all of none resolved with %v, %v", got, err)
	}
}

func TestAll_ResolvesWithTheFirstFailure(t *testing.T) {
	ts, fs := tasks(3)
	all := behaviors.All(fs...)
	ts[1].resolve("", errTask)
	if got, err := all.Wait(t.Context()); got != nil || err != errTask {
		t.Errorf("resolved with %v, %v", got, err)
	}
	ts[0].resolve("", task.ErrCancelled)
	if _, err := all.Wait(t.Context()); err != errTask {
		t.Errorf("resolved again with %v", err)
	}
}

func TestAny_ResolvesWithTheFirstSuccess(t *testing.T) {
	ts, fs := tasks(3)
	first := behaviors.Any(fs...)
	ts[2].resolve("", errTask)
	pending(t, first)
	ts[1].resolve("5", nil)
	ts[0].resolve("6", nil)
	want(t, first, 5, nil)
}

func TestAny_ResolvesWithTheLastFailure(t *testing.T) {
	ts, fs := tasks(2)
	first := behaviors.Any(fs...)
	ts[1].resolve("", task.ErrUnknown)
	pending(t, first)
	ts[0].resolve("", errTask)
	want(t, first, 0, errTask)
	if _, err := behaviors.Any[int]().Wait(t.Context()); err == nil {
		t.Error("any of none succeeded")
	}
}

func TestClose_OfAComposedFutureClosesWhatItIsMadeOf(t *testing.T) {
	ts, fs := tasks(3)
	ran := func(int, error) (int, error) { t.Error("function ran"); return 0, nil }
	sum := behaviors.Handle(behaviors.Any(fs...), ran)
	sum.Close()
	sum.Close()
	want(t, sum, 0, task.ErrClosed)
	for i, source := range ts {
		if source.closed == 0 {
			t.Errorf("source %d is still watched", i)
		}
	}
}

func TestClose_OfATaskReachesWhatWasMadeOfIt(t *testing.T) {
	_, fs := tasks(2)
	f := behaviors.Handle(fs[0], func(_ int, err error) (bool, error) { return errors.Is(err, task.ErrClosed), nil })
	all := behaviors.All(fs...)
	fs[0].Close()
	want(t, f, true, nil)
	if _, err := all.Wait(t.Context()); !errors.Is(err, task.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}

func TestClose_AfterTheOutcomeKeepsIt(t *testing.T) {
	ts, fs := tasks(1)
	f := behaviors.Then(fs[0], func(n int) (int, error) { return n, nil })
	ts[0].resolve("1", nil)
	f.Close()
	want(t, f, 1, nil)
}

func TestCompose_ResolvesOnceUnderRaces(t *testing.T) {
	for range 100 {
		ts, fs := tasks(8)
		var runs atomic.Int32
		count := func(n int) (int, error) { runs.Add(1); return n, nil }
		first := behaviors.Then(behaviors.Any(fs...), count)
		all := behaviors.Then(behaviors.All(fs...), func(ns []int) (int, error) { return count(len(ns)) })
		closed := behaviors.Then(behaviors.Then(fs[0], count), count)
		var group sync.WaitGroup
		for _, source := range ts {
			group.Go(func() { source.resolve("1", nil) })
		}
		group.Go(func() {
			if n, err := all.Wait(t.Context()); n != 8 && err == nil {
				t.Errorf("all resolved with %d", n)
			}
		})
		group.Go(closed.Close)
		group.Go(func() { _, _ = behaviors.Then(first, count).Wait(t.Context()) })
		group.Wait()
		<-closed.Done()
		if n := runs.Load(); n > 5 {
			t.Errorf("%d runs of 5 functions", n)
		}
	}
}
