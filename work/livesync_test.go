package work_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/workledger"
)

type (
	stream = work.Stream[int, int]
	change = work.Change[int]
)

// resource is a source of changes, and what has been applied of them. The change at a place, from 1 on, has that as its
// token and value.
type resource struct {
	keys  []string // of the changes, by place - 1
	every int      // changes that have the same token; 0 = 1
	fetch func(ctx context.Context, place int) error

	mu      sync.Mutex
	applied []int
	process func(ctx context.Context, place int) error // before a change is applied; nil = nothing happens
}

// objects returns a resource with a change for each of n keys.
func objects(n int) *resource {
	r := &resource{}
	for i := range n {
		r.keys = append(r.keys, fmt.Sprintf("u%d", i+1))
	}
	return r
}

func (r *resource) token(place int) string {
	every := max(r.every, 1)
	return strconv.Itoa((place + every - 1) / every * every)
}

func (r *resource) key(place int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[place-1]
}

func (r *resource) changes(ctx context.Context, _ int, token string) iter.Seq2[change, error] {
	return func(yield func(change, error) bool) {
		for place := number(token) + 1; ; place++ {
			r.mu.Lock()
			last := place > len(r.keys)
			r.mu.Unlock()
			if last {
				return
			}
			if r.fetch != nil {
				if err := r.fetch(ctx, place); err != nil {
					yield(change{}, err)
					return
				}
			}
			c := change{
				Key:   r.key(place),
				Token: r.token(place),
				Value: place,
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// apply takes a while, so that threads go on side by side in the time of a test.
func (r *resource) apply(ctx context.Context, c change) error {
	time.Sleep(time.Millisecond)
	if r.process != nil {
		if err := r.process(ctx, c.Value); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied = append(r.applied, c.Value)
	return nil
}

// stream returns a stream of the resource, with the number of threads.
func (r *resource) stream(threads int64) stream {
	return stream{
		Threads: threads,
		Changes: r.changes,
		Process: r.apply,
	}
}

// users returns how many different changes were applied.
func (r *resource) users() int {
	slices.Sort(r.applied)
	return len(slices.Compact(slices.Clone(r.applied)))
}

// inOrder complains of changes of a key that were applied after later ones.
func (r *resource) inOrder(t *testing.T) {
	t.Helper()
	last := map[string]int{}
	for _, place := range r.applied {
		key := r.keys[place-1]
		if last[key] > place {
			t.Errorf("change %d of %s was applied after change %d", place, key, last[key])
		}
		last[key] = max(last[key], place)
	}
}

// attemptStream makes an attempt, and complains of what the record does.
func attemptStream(t *testing.T, ctx context.Context, r *streamRecord, s ...stream) error {
	t.Helper()
	w := work.DefineStream("sync", nil, s...)
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	a := r.attempt()
	state, err := w.Attempt(ctx, a, 0, work.Attempt{Number: 3, Stream: a})
	if len(r.wrong) > 0 {
		t.Errorf("%q", r.wrong)
	}
	if err == nil && state != work.Finished {
		t.Errorf("state %v", state)
	}
	return err
}

// runStream makes a run in one attempt.
func runStream(t *testing.T, r *streamRecord, s ...stream) {
	t.Helper()
	if err := attemptStream(t, t.Context(), r, s...); err != nil {
		t.Fatal(err)
	}
	r.again()
}

// withThreads runs a test with one thread and with three.
func withThreads(t *testing.T, test func(t *testing.T, threads int64)) {
	t.Helper()
	for _, threads := range []int64{1, 3} {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, threads) })
		})
	}
}

func wantToken(t *testing.T, r *streamRecord, want string) {
	t.Helper()
	if r.token != want {
		t.Errorf("token %q, want %q", r.token, want)
	}
}

func wantItems(t *testing.T, r *streamRecord, want work.Counts) {
	t.Helper()
	if got := r.items(); got != want {
		t.Errorf("items %+v, want %+v", got, want)
	}
}

func stopped(t *testing.T, err error, at string) {
	t.Helper()
	if stop, is := errors.AsType[*work.StopError](err); !is || stop.At != at {
		t.Errorf("%v, want a stop at %s", err, at)
	}
}

func TestLiveSync_SuspendedWhileFetchingGoesOnWhereItWas(t *testing.T) {
	for _, at := range []int{1, 8} {
		withThreads(t, func(t *testing.T, threads int64) {
			src, r := objects(20), newStreamRecord()
			ctx, suspend := context.WithCancelCause(t.Context())
			src.fetch = func(ctx context.Context, place int) error {
				if place == at {
					time.AfterFunc(time.Minute, func() { suspend(errSuspended) })
					<-ctx.Done()
				}
				return ctx.Err()
			}
			if err := attemptStream(t, ctx, r, src.stream(threads)); !errors.Is(err, errSuspended) {
				t.Fatal(err)
			}
			if want := strconv.Itoa(at - 1); r.token != want && at > 1 || src.users() != at-1 {
				t.Errorf("token %q with %d users, want %s", r.token, src.users(), want)
			}
			src.fetch = nil
			runStream(t, r, src.stream(threads))
			wantToken(t, r, "20")
			wantItems(t, r, work.Counts{Done: 20})
			if len(src.applied) != 20 {
				t.Errorf("applied %d", src.applied)
			}
		})
	}
}

func TestLiveSync_SuspendedWhileProcessingHasTheTokenOfWhatWasProcessed(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		for _, imprecise := range []bool{false, true} {
			src, r := objects(50), newStreamRecord()
			ctx, suspend := context.WithCancelCause(t.Context())
			src.process = func(ctx context.Context, place int) error {
				if place == 30 {
					suspend(errSuspended)
				}
				return ctx.Err()
			}
			s := src.stream(threads)
			s.Imprecise = imprecise
			if err := attemptStream(t, ctx, r, s); !errors.Is(err, errSuspended) {
				t.Fatal(err)
			}
			n := src.users()
			switch {
			case imprecise && (r.token != "" || r.items() != work.Counts{}):
				t.Errorf("imprecise: token %q, %+v", r.token, r.items())
			case !imprecise && (number(r.token) > n || number(r.token) < n-int(threads)+1):
				t.Errorf("token %q with %d users", r.token, n)
			case !imprecise && r.items().Done != int64(number(r.token)):
				t.Errorf("token %q with %+v", r.token, r.items())
			}
			src.process = nil
			runStream(t, r, s)
			wantToken(t, r, "50")
			wantItems(t, r, work.Counts{Done: 50})
			if n := src.users(); n != 50 {
				t.Errorf("%d users", n)
			}
		}
	})
}

func TestLiveSync_RunsInBatchesAndPassesAnErrorThatIsIgnored(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(30), newStreamRecord()
		src.process = func(_ context.Context, place int) error {
			if place == 25 {
				return behaviors.Code("duplicate", errDisk, nil)
			}
			return nil
		}
		s := src.stream(threads)
		s.Batch, s.Rules = 10, []work.Rule{{Code: "duplicate", React: work.Ignore}}
		for n := range 4 {
			runStream(t, r, s)
			wantToken(t, r, strconv.Itoa(min(10*(n+1), 30)))
		}
		if src.users() != 29 {
			t.Errorf("%d users", src.users())
		}
		wantItems(t, r, work.Counts{Done: 29, Skipped: 1})
	})
}

func TestLiveSync_AnErrorStopsItBeforeTheChangeUntilThereIsARemedy(t *testing.T) {
	for _, imprecise := range []bool{false, true} {
		withThreads(t, func(t *testing.T, threads int64) {
			src, r := objects(40), newStreamRecord()
			fails := func(_ context.Context, place int) error {
				if place == 17 {
					return errDisk
				}
				return nil
			}
			src.process = fails
			s := src.stream(threads)
			s.Imprecise = imprecise
			want := "16"
			if imprecise {
				want = ""
			}
			for range 2 {
				stopped(t, attemptStream(t, t.Context(), r, s), "17")
				wantToken(t, r, want)
			}
			src.process = nil
			runStream(t, r, s)
			wantToken(t, r, "40")
			wantItems(t, r, work.Counts{Done: 40})
			if !imprecise && threads == 1 && len(src.applied) != 40 {
				t.Errorf("applied %d", src.applied)
			}
			if src.users() != 40 {
				t.Errorf("%d users", src.users())
			}
		})
	}
}

func TestLiveSync_ADryRunLeavesTheTokenUnlessItMovesIt(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		for _, mode := range []work.Mode{work.DryRun, work.Simulate} {
			for _, moves := range []bool{false, true} {
				src, r := objects(12), newStreamRecord()
				s := src.stream(threads)
				s.Mode, s.MoveToken = mode, moves
				for range 2 {
					runStream(t, r, s)
				}
				want, items := "", int64(24)
				if moves {
					want, items = "12", 12
				}
				wantToken(t, r, want)
				wantItems(t, r, work.Counts{Done: items})
				if n := int64(len(src.applied)); n != 0 && mode == work.DryRun || n != items && mode == work.Simulate {
					t.Errorf("%s: %d changes were processed", mode, n)
				}
			}
		}
	})
}

func TestLiveSync_AFullStreamEndsWhereItsSimulationEnded(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(10), newStreamRecord()
		r.token = "2"
		modes := map[work.Mode]int{}
		src.process = func(ctx context.Context, place int) error {
			is, _ := work.Run(ctx)
			src.mu.Lock()
			defer src.mu.Unlock()
			if modes[is.Mode]++; modes[is.Mode] == 8 { // what comes while the simulation ends is for the next run
				src.keys = append(src.keys, "late")
			}
			return nil
		}
		simulated, full := src.stream(threads), src.stream(threads)
		simulated.ID, simulated.Mode, full.ID = "simulated", work.Simulate, "full"
		simulated.Changes = func(ctx context.Context, p int, token string) iter.Seq2[change, error] {
			all := slices.Collect(func(yield func(change) bool) {
				src.changes(ctx, p, token)(func(c change, _ error) bool { return yield(c) })
			})
			return func(yield func(change, error) bool) {
				for _, c := range all {
					if !yield(c, nil) {
						return
					}
				}
			}
		}
		runStream(t, r, simulated, full)
		wantToken(t, r, "10")
		if modes[work.Simulate] != 8 || modes[work.Full] != 8 {
			t.Errorf("processed %v", modes)
		}
		runStream(t, r, simulated, full)
		wantToken(t, r, "12")
		r.moves = nil
		runStream(t, r, simulated, full)
		wantToken(t, r, "12")
		wantItems(t, r, work.Counts{})
	})
}

// The source forgets the last simulated change, so nothing tells the full stream where to end.
func TestLiveSync_AFullStreamThatDoesNotMeetTheEndOfItsSimulationSaysSo(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		for want, tokens := range map[bool][]int{false: {1, 2, 99, 100}, true: {1, 2, 3, 12}} {
			var log bytes.Buffer
			r := newStreamRecord()
			source := func(tokens ...int) stream {
				var all []change
				for _, n := range tokens {
					all = append(all, change{Key: "k", Token: strconv.Itoa(n)})
				}
				return stream{
					Threads: threads,
					Changes: yields(all...),
					Process: func(context.Context, change) error { return nil },
				}
			}
			simulated, full := source(1, 2, 99), source(tokens...)
			simulated.ID, simulated.Mode, full.ID = "simulated", work.Simulate, "full"
			w, a := work.DefineStream("sync", nil, simulated, full), r.attempt()
			_, err := w.Attempt(t.Context(), a, 0, work.Attempt{Stream: a, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			wantToken(t, r, map[bool]string{false: "99", true: "12"}[want])
			said := strings.Contains(log.String(), "changes may have been taken that were not simulated") &&
				strings.Contains(log.String(), "stream=full simulated_to=99 token=12")
			if said != want {
				t.Errorf("of the changes %v is logged: %s", tokens, log.String())
			}
		}
	})
}

// Nothing was simulated, so the full stream takes nothing that came after.
func TestLiveSync_AFullStreamBehindASimulationOfNothingHasNothingToDo(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(5), newStreamRecord()
		r.token = "5"
		simulated, full := src.stream(threads), src.stream(threads)
		simulated.ID, simulated.Mode, full.ID = "simulated", work.Simulate, "full"
		fetches := 0
		simulated.Changes = func(ctx context.Context, p int, token string) iter.Seq2[change, error] {
			fetches++
			return func(yield func(change, error) bool) {
				src.keys = append(src.keys, "late")
			}
		}
		runStream(t, r, simulated, full)
		wantToken(t, r, "5")
		if fetches != 1 || len(src.applied) != 0 {
			t.Errorf("%d fetches, applied %d", fetches, src.applied)
		}
	})
}

func TestLiveSync_CountsEachChangeOnceAcrossFailures(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(60), newStreamRecord()
		broken := map[int]bool{13: true, 44: true}
		src.process = func(_ context.Context, place int) error {
			src.mu.Lock()
			defer src.mu.Unlock()
			switch {
			case broken[place]:
				return behaviors.Code("fatal", errDisk, nil)
			case place%10 == 5:
				return work.Skip("irrelevant")
			case place%10 == 6:
				return errDisk
			}
			return nil
		}
		s := src.stream(threads)
		s.Rules = []work.Rule{{Code: "fatal", React: work.Stop}, {React: work.GoOn}}
		for _, at := range []string{"13", "44"} {
			err := attemptStream(t, t.Context(), r, s)
			stopped(t, err, at)
			wantToken(t, r, strconv.Itoa(number(at)-1))
			src.mu.Lock()
			delete(broken, number(at))
			src.mu.Unlock()
		}
		runStream(t, r, s)
		wantToken(t, r, "60")
		wantItems(t, r, work.Counts{Done: 48, Failed: 6, Skipped: 6})
		told := 0
		for _, m := range r.moves {
			told += len(m.Errors)
		}
		if told != 6 {
			t.Errorf("%d errors are told", told)
		}
	})
}

func TestLiveSync_KeepsTheOrderOfAKey(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := &resource{}, newStreamRecord()
		for place := range 300 {
			key := "hot"
			if place%3 == 0 {
				key = fmt.Sprint(place % 7)
			}
			src.keys = append(src.keys, key)
		}
		var running sync.Map
		src.process = func(_ context.Context, place int) error {
			if other, busy := running.LoadOrStore(src.keys[place-1], place); busy {
				t.Errorf("changes %d and %v of a key are processed at once", place, other)
			}
			time.Sleep(time.Duration(place%5) * time.Millisecond)
			running.Delete(src.keys[place-1])
			return nil
		}
		runStream(t, r, src.stream(threads))
		src.inOrder(t)
		if len(src.applied) != 300 {
			t.Errorf("%d changes were applied", len(src.applied))
		}
		wantToken(t, r, "300")
	})
}

func TestLiveSync_IgnoredErrorsMoveTheToken(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(30), newStreamRecord()
		src.process = func(_ context.Context, place int) error {
			if place%3 == 0 {
				return errDisk
			}
			return nil
		}
		s := src.stream(threads)
		s.Rules = []work.Rule{{React: work.Ignore}}
		runStream(t, r, s)
		wantToken(t, r, "30")
		wantItems(t, r, work.Counts{Done: 20, Skipped: 10})
	})
}

func TestLiveSync_StopsAtTheCodesThatItsRulesName(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		process := func(_ context.Context, place int) error {
			switch place {
			case 3, 5:
				return behaviors.Code("partial", errDisk, nil)
			case 9:
				return behaviors.Code("fatal", errDisk, nil)
			}
			return nil
		}
		for _, c := range []struct {
			rules []work.Rule
			want  string
		}{
			{[]work.Rule{{Code: "fatal", React: work.Stop}, {React: work.GoOn}}, "9"},
			{[]work.Rule{{React: work.Stop}}, "3"},
			{[]work.Rule{{Code: "fatal", React: work.GoOn}}, "3"},
			{nil, "3"},
		} {
			src, r := objects(30), newStreamRecord()
			src.process = process
			s := src.stream(threads)
			s.Rules = c.rules
			stopped(t, attemptStream(t, t.Context(), r, s), c.want)
			wantToken(t, r, strconv.Itoa(number(c.want)-1))
		}
	})
}

func TestLiveSync_StopsAtTheFourthFailure(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(30), newStreamRecord()
		src.process = func(_ context.Context, place int) error {
			time.Sleep(time.Second)
			if place%3 == 0 {
				return errDisk
			}
			return nil
		}
		s := src.stream(threads)
		s.Rules = []work.Rule{{React: work.Stop, Times: 4}}
		stopped(t, attemptStream(t, t.Context(), r, s), "12")
		wantToken(t, r, "11")
		wantItems(t, r, work.Counts{Done: 8, Failed: 3})
	})
}

func TestLiveSync_AStopTellsTheChangeByItsKeyAndTokenAndNoBucket(t *testing.T) {
	for _, rules := range [][]work.Rule{nil, {{React: work.Stop}}, {{React: work.Stop, Times: 1}}} {
		synctest.Test(t, func(t *testing.T) {
			src := objects(1)
			src.process = func(context.Context, int) error { return errDisk }
			s := src.stream(1)
			s.ID, s.Rules = "people", rules
			err := attemptStream(t, t.Context(), newStreamRecord(), s)
			want := `change of u1 at "1" in stream people failed with code "failed", and `
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "bucket") {
				t.Errorf("rules %v: %v, want %s...", rules, err, want)
			}
		})
	}
}

// Only a reset of its counter lets such a stream go on, so its failure names the rule.
func TestLiveSync_AStopByACounterNamesItsRule(t *testing.T) {
	for times, want := range map[int64]string{1: "", 2: "0"} {
		src, r := objects(3), newStreamRecord()
		src.process = func(context.Context, int) error { return errDisk }
		s := src.stream(1)
		s.Rules = []work.Rule{{React: work.Stop, Times: times}}
		a := r.attempt()
		policy, _ := task.Policy{}.Complete()
		out := work.DefineStream("sync", nil, s).Run(a.access(t.Context()), task.Attempt{
			Task:   "a/p",
			Number: 1,
			Policy: policy,
			Params: []byte("0"),
		})
		if out.Err == nil || out.Err.Code != "stopped" || out.Err.Properties["rule"] != want {
			t.Errorf("stop at failure %d: %+v, want the rule %q", times, out.Err, want)
		}
	}
}

// A change that is processed again after a stop finds the permit that it had.
func TestLiveSync_AChangeThatComesAgainFindsItsPermit(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := &resource{keys: []string{"a", "b", "a", "b", "a", "b"}}, newStreamRecord()
		fails := true
		src.process = func(ctx context.Context, place int) error {
			if err := work.Permit(ctx, "deletes"); err != nil {
				return err
			}
			if place == 4 && fails {
				return errDisk
			}
			return nil
		}
		s := src.stream(threads)
		s.Thresholds = []work.Threshold{{Counter: "deletes", Limit: 6}}
		for range 3 {
			stopped(t, attemptStream(t, t.Context(), r, s), "4")
		}
		fails = false
		runStream(t, r, s)
		wantToken(t, r, "6")

		s.Thresholds[0].Limit = 2
		r.token = ""
		err := attemptStream(t, t.Context(), r, s)
		if _, trips := errors.AsType[*work.ThresholdError](err); !trips {
			t.Errorf("%v, want that the threshold ends it", err)
		}
		wantToken(t, r, "2")
	})
}

func TestLiveSync_RetriesLaterInOrderAndGoesOnMeanwhile(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := &resource{keys: []string{"a", "b", "a", "c", "a", "b", "d"}}, newStreamRecord()
		broken := true
		src.process = func(_ context.Context, place int) error {
			if broken && place == 1 {
				return behaviors.Code("busy", errDisk, nil)
			}
			return nil
		}
		s := src.stream(threads)
		s.Rules = []work.Rule{{Code: "busy", React: work.RetryLater}}
		runStream(t, r, s)
		wantToken(t, r, "7")
		wantItems(t, r, work.Counts{Done: 4, Failed: 1, Skipped: 2})
		if len(r.holds) != 1 || r.holds[0].String() != "1:busy 3: 5:" || r.holds[0].parked {
			t.Fatalf("holds %v", r.holds)
		}
		w := work.DefineStream("sync", nil, s)
		if got := r.retry(t.Context(), w, r.holds[0]); got != "retry busy" {
			t.Errorf("the hold fails again: %s", got)
		}
		src.keys = append(src.keys, "a", "d") // another node takes over: it is told which keys are held
		runStream(t, r, s)
		wantToken(t, r, "9")
		if got := r.holds[0].String(); got != "1:busy 3: 5: 8:" {
			t.Errorf("hold %s", got)
		}
		broken = false
		if got := r.retry(t.Context(), w, r.holds[0]); got != "success" {
			t.Errorf("the hold: %s", got)
		}
		src.keys = append(src.keys, "a")
		runStream(t, r, s)
		wantToken(t, r, "10")
		src.inOrder(t)
		if src.users() != 10 || len(src.applied) != 10 || len(r.wrong) > 0 {
			t.Errorf("applied %d, %q", src.applied, r.wrong)
		}
	})
}

func TestLiveSync_AHoldRecordsWhatItProcessedBeforeAChangeFails(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := &resource{keys: []string{"a", "a", "a", "a"}}, newStreamRecord()
		broken := 1
		src.process = func(_ context.Context, place int) error {
			if place == broken {
				return errDisk
			}
			return nil
		}
		s := src.stream(threads)
		s.Rules = []work.Rule{{React: work.RetryLater}}
		runStream(t, r, s)
		w := work.DefineStream("sync", nil, s)
		broken = 3
		if got := r.retry(t.Context(), w, r.holds[0]); got != "retry failed" || r.holds[0].String() != "3: 4:" {
			t.Errorf("%s, hold %v", got, r.holds[0])
		}
		ctx, stop := context.WithCancel(t.Context())
		src.process = func(ctx context.Context, place int) error {
			if place == 4 {
				stop()
			}
			return ctx.Err()
		}
		if got := r.retry(ctx, w, r.holds[0]); got != "release 1ms" || r.holds[0].String() != "4:" {
			t.Errorf("%s, hold %v", got, r.holds[0])
		}
		src.process = nil
		if got := r.retry(t.Context(), w, r.holds[0]); got != "success" || !slices.Equal(src.applied, []int{1, 2, 3, 4}) {
			t.Errorf("%s, applied %d", got, src.applied)
		}
	})
}

// The hold ends between the fetch of a later change and the move that would append it.
func TestLiveSync_ProcessesAChangeItselfWhoseHoldHasEnded(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := &resource{keys: []string{"a", "b", "a", "a", "c"}}, newStreamRecord()
		src.process = func(_ context.Context, place int) error {
			switch place {
			case 1:
				return errDisk
			case 2:
				r.mu.Lock()
				defer r.mu.Unlock()
				for _, h := range r.holds {
					r.endFirst = h
				}
			}
			return nil
		}
		s := src.stream(threads)
		s.Rules = []work.Rule{{React: work.RetryLater}}
		src.fetch = func(_ context.Context, place int) error {
			if place > 1 {
				time.Sleep(time.Second)
			}
			return nil
		}
		runStream(t, r, s)
		wantToken(t, r, "5")
		wantItems(t, r, work.Counts{Done: 4, Failed: 1})
		if !slices.Equal(src.applied, []int{2, 3, 4, 5}) || !r.holds[0].ended {
			t.Errorf("applied %d, holds %v", src.applied, r.holds)
		}
	})
}

// A target that refuses a fencing token below one that it has seen takes each change, and no late one of a hold.
func TestLiveSync_GoesOnWithATokenAboveThoseOfTheHoldThatHasEnded(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := &resource{keys: []string{"a", "b", "a", "c"}}, newStreamRecord()
		r.fence = 7 // an attempt of a hold has begun and ended since that of the stream began
		s := src.stream(threads)
		s.Rules = []work.Rule{{React: work.RetryLater}}
		src.fetch = func(_ context.Context, place int) error {
			if place > 1 {
				time.Sleep(time.Second)
			}
			return nil
		}
		var tokens []events.Ref
		s.Process = func(ctx context.Context, c change) error {
			a, _ := behaviors.Attempt(ctx)
			of, cancel := context.WithCancel(ctx)
			defer cancel()
			if below, _ := behaviors.Attempt(of); below.Token != a.Token || a.Task != "a/p" || a.Token.Shard != 3 {
				t.Errorf("attempt %+v, and %s in a context of its own", a, below.Token)
			}
			tokens = append(tokens, a.Token.Ref)
			switch c.Value {
			case 1:
				return errDisk
			case 2:
				r.mu.Lock()
				defer r.mu.Unlock()
				r.endFirst = r.holds[0]
			}
			return nil
		}
		policy, _ := task.Policy{}.Complete()
		out := work.DefineStream("sync", nil, s).Run(r.attempt().access(t.Context()), task.Attempt{
			Task:   "a/p",
			Number: 1,
			Token:  events.Position{Shard: 3, Ref: 5},
			Policy: policy,
			Params: []byte("0"),
		})
		if out.Err != nil || !slices.Equal(tokens, []events.Ref{7, 7, 17, 17}) {
			t.Errorf("%v: tokens %d, want those above each hold that has ended", out.Err, tokens)
		}
	})
}

func TestLiveSync_ParksAChangeAndLaterOnesOfItsKeyPassOnlyIfTheRuleSaysSo(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		for _, pass := range []bool{false, true} {
			src, r := &resource{keys: []string{"a", "b", "a"}}, newStreamRecord()
			src.process = func(_ context.Context, place int) error {
				if place == 1 {
					return errDisk
				}
				return nil
			}
			s := src.stream(threads)
			s.Rules = []work.Rule{{React: work.Park, Pass: pass}}
			runStream(t, r, s)
			wantToken(t, r, "3")
			want, applied := "1:failed 3:", 1
			if pass {
				want, applied = "1:failed", 2
			}
			h := r.holds[0]
			if len(r.holds) != 1 || h.String() != want || !h.parked || h.passed != pass || src.users() != applied {
				t.Errorf("holds %+v, applied %d", h, src.applied)
			}
			if message := h.changes[0].Message; message != "no disk" {
				t.Errorf("reason %q", message)
			}
		}
	})
}

// Each attempt repeats the whole fetch: what is held already is known, though several changes have its token, and two
// are equal.
func TestLiveSync_ImpreciseHoldsAChangeOnceHoweverManyAttemptsRepeatIt(t *testing.T) {
	for _, pass := range []bool{false, true} {
		withThreads(t, func(t *testing.T, threads int64) {
			r := newStreamRecord()
			s := stream{
				Threads:   threads,
				Imprecise: true,
				Rules:     []work.Rule{{Code: "busy", React: work.RetryLater}},
			}
			if pass {
				s.Rules[0] = work.Rule{Code: "busy", React: work.Park, Pass: true}
			}
			s.Process = func(_ context.Context, c change) error {
				if c.Value%2 == 1 {
					return behaviors.Code("busy", errDisk, nil)
				}
				return nil
			}
			for attempt := range 5 {
				s.Changes = func(context.Context, int, string) iter.Seq2[change, error] {
					return func(yield func(change, error) bool) {
						all := []change{{"a", "8", 1, false}, {"a", "8", 2, false}, {"b", "8", 3, false}, {"b", "8", 3, false}}
						if attempt%2 == 1 { // the keys come in another order
							all = slices.Concat(all[2:], all[:2])
						}
						for _, c := range all {
							yield(c, nil)
						}
						yield(change{Key: "c", Token: "8"}, behaviors.Code("busy", fmt.Errorf("unread for the time %d", attempt), nil))
						time.Sleep(time.Minute)
						yield(change{}, errDisk)
					}
				}
				if err := attemptStream(t, t.Context(), r, s); !errors.Is(err, errDisk) {
					t.Fatal(err)
				}
			}
			wantToken(t, r, "")
			held := map[string]int{}
			for _, h := range r.holds {
				held[h.key] += len(h.changes)
			}
			want := map[string]int{"a": 2, "b": 2, "c": 1}
			if pass {
				want["a"] = 1 // the other one passes
			}
			if !maps.Equal(held, want) || !strings.HasPrefix(r.holds[0].changes[0].At, "8#") {
				t.Errorf("held are %v, want %v: %v", held, want, r.holds)
			}
		})
	}
}

func TestLiveSync_NamesOfHeldChangesFitTheirLimit(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		r := newStreamRecord()
		token := strings.Repeat("\u00e9", work.MaxTokenBytes/2)
		s := stream{
			Imprecise: true,
			Threads:   threads,
			Rules:     []work.Rule{{React: work.Park}},
			Changes:   yields(change{Key: "a", Token: token, Value: 1}, change{Key: "a", Token: token, Value: 2}),
			Process:   func(context.Context, change) error { return errDisk },
		}
		runStream(t, r, s)
		all := r.holds[0].changes
		if len(all) != 2 || all[0].At == all[1].At || len(all[0].At) > work.MaxTokenBytes || !utf8.ValidString(all[0].At) {
			t.Errorf("%d changes, named by %d bytes", len(all), len(all[0].At))
		}
	})
}

func TestLiveSync_ASimulationHoldsNothing(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := &resource{keys: []string{"a", "b", "c"}}, newStreamRecord()
		r.holds = []*hold{{key: "c", changes: []workledger.HeldChange{{At: "0"}}}}
		src.process = func(_ context.Context, place int) error { return errDisk }
		s := src.stream(threads)
		s.Mode, s.Rules = work.Simulate, []work.Rule{{React: work.Park}}
		runStream(t, r, s)
		wantItems(t, r, work.Counts{Failed: 2, Skipped: 1})
		if len(r.holds) != 1 || len(r.holds[0].changes) != 1 {
			t.Errorf("holds %v", r.holds)
		}
	})
}

func TestLiveSync_AChangeThatCannotBeReadCountsAndTheRulesDecide(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		for _, c := range []struct {
			rules []work.Rule
			mode  work.Mode
			token string
			items work.Counts
			holds int
		}{
			{nil, work.Full, "1", work.Counts{Done: 1}, 0},
			{[]work.Rule{{Code: "unreadable", React: work.Ignore}}, work.Full, "3", work.Counts{Done: 2, Skipped: 1}, 0},
			{[]work.Rule{{React: work.GoOn}}, work.Full, "3", work.Counts{Done: 2, Failed: 1}, 0},
			{[]work.Rule{{React: work.Park}}, work.Full, "3", work.Counts{Done: 2, Failed: 1}, 1},
			{nil, work.DryRun, "", work.Counts{Done: 2, Failed: 1}, 0},
		} {
			src, r := objects(3), newStreamRecord()
			s := src.stream(threads)
			s.Rules, s.Mode = c.rules, c.mode
			s.Changes = func(ctx context.Context, p int, token string) iter.Seq2[change, error] {
				return func(yield func(change, error) bool) {
					src.changes(ctx, p, token)(func(c change, err error) bool {
						if c.Value == 2 {
							err = behaviors.Code("unreadable", errDisk, nil)
						}
						return yield(c, err)
					})
				}
			}
			err := attemptStream(t, t.Context(), r, s)
			if c.rules == nil && c.mode == work.Full {
				stopped(t, err, "2")
			} else if err != nil {
				t.Error(err)
			}
			if c.token != "1" || threads == 1 {
				wantItems(t, r, c.items)
			}
			wantToken(t, r, c.token)
			if len(r.holds) != c.holds {
				t.Fatalf("holds %v", r.holds)
			}
			for _, h := range r.holds {
				if got := r.retry(t.Context(), work.DefineStream("sync", nil, s), h); got != "retry unreadable" {
					t.Errorf("the hold: %s", got)
				}
			}
		}
	})
}

func TestLiveSync_AnErrorOfTheSourceFailsTheAttemptBehindWhatWasProcessed(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(10), newStreamRecord()
		src.fetch = func(_ context.Context, place int) error {
			if place == 6 {
				time.Sleep(time.Second)
				return errDisk
			}
			return nil
		}
		err := attemptStream(t, t.Context(), r, src.stream(threads))
		if _, is := errors.AsType[*work.ItemsError](err); !is || !errors.Is(err, errDisk) {
			t.Errorf("%v", err)
		}
		wantToken(t, r, "5")
	})
}

func TestLiveSync_ASourceWithoutAPastTellsWhereToBegin(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(7), newStreamRecord()
		s := src.stream(threads)
		s.Changes = func(ctx context.Context, p int, token string) iter.Seq2[change, error] {
			if token == "" {
				return func(yield func(change, error) bool) { yield(change{Token: "5", Position: true}, nil) }
			}
			return src.changes(ctx, p, token)
		}
		runStream(t, r, s)
		wantToken(t, r, "5")
		wantItems(t, r, work.Counts{})
		runStream(t, r, s)
		wantToken(t, r, "7")
		wantItems(t, r, work.Counts{Done: 2})
	})
}

func TestLiveSync_PositionsMoveTheTokenOnlyBehindWhatIsProcessed(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(3), newStreamRecord()
		src.process = func(_ context.Context, place int) error {
			if place == 3 {
				return errDisk
			}
			return nil
		}
		s := src.stream(threads)
		s.Changes = func(ctx context.Context, p int, token string) iter.Seq2[change, error] {
			return func(yield func(change, error) bool) {
				src.changes(ctx, p, token)(yield)
				yield(change{Token: "9", Position: true}, nil)
			}
		}
		stopped(t, attemptStream(t, t.Context(), r, s), "3")
		wantToken(t, r, "2")
		src.process = nil
		runStream(t, r, s)
		wantToken(t, r, "9")
		r.moves = nil
		runStream(t, r, s)
		if len(r.moves) > 0 {
			t.Errorf("moves %+v of a run without anything new", r.moves)
		}
	})
}

func TestLiveSync_APanicTellsTheFramesOfTheFunctionAlone(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(1), newStreamRecord()
		src.process = func(context.Context, int) error { panic("broken") }
		s := src.stream(threads)
		s.Rules = []work.Rule{{Code: work.CodePanic, React: work.GoOn}}
		runStream(t, r, s)
		lines := strings.Split(r.moves[0].Errors[0].Message, "\n")
		if !strings.Contains(lines[0], "broken") || !strings.HasPrefix(lines[1], "taskledger/work_test.") ||
			strings.Contains(strings.Join(lines, "\n"), "taskledger/work.") {
			t.Errorf("%q", lines)
		}
	})
}
