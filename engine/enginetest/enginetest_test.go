package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/engine/enginetest"
	"taskledger/engine/local"
	"taskledger/events"
	"taskledger/filestore"
	"taskledger/task"
	"taskledger/work"
)

var (
	double = behaviors.Define[int, int]("double", nil)
	notify = behaviors.Define[string, string]("notify", nil)
	hourly = behaviors.Define("hourly", &behaviors.Rules[int, int]{
		AfterSuccess: func(_, _ int, now time.Time) time.Time { return now.Add(time.Hour) },
	})
)

// twice doubles a number, fails once of 3, and for good of 4.
func twice(ctx context.Context, n int) (int, error) {
	a, _ := behaviors.Attempt(ctx)
	switch {
	case n == 3 && a.Number == 1:
		return 0, behaviors.RetryAfter(time.Millisecond, errors.New("once"))
	case n == 4:
		return 0, behaviors.Cancel(behaviors.Code("four", errors.New("no fours"), nil))
	}
	return 2 * n, nil
}

func submit(t *testing.T, n *enginetest.Node, b *behaviors.Behavior[int, int], params int, id events.TaskID) {
	t.Helper()
	f, err := b.SubmitWith(t.Context(), n.Client, params, task.SubmitOptions{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestNode_RunsBehaviorsInMemoryAndInFiles(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...task.Behavior) *enginetest.Node{
		"Memory": enginetest.Memory, "Files": enginetest.Files,
	} {
		t.Run(name, func(t *testing.T) {
			var n *enginetest.Node
			leads := func(ctx context.Context, text string) (string, error) {
				f, err := double.SubmitWith(ctx, n.Client, len(text), task.SubmitOptions{ID: "led/1"})
				if err == nil {
					f.Close()
				}
				return text, err
			}
			n = start(t, double.Bind(twice), notify.Bind(leads))
			if none := n.Submitted(t, "double"); len(none) > 0 {
				t.Errorf("there are %v", none)
			}
			f, err := notify.Submit(t.Context(), n.Client, "abc")
			if err != nil {
				t.Fatal(err)
			}
			if done := n.Await(t, f.ID()); done.Status != task.Success || string(done.Result) != `"abc"` {
				t.Errorf("it is %+v", done)
			}
			led := n.RequireSubmitted(t, "double")
			if len(led) != 1 || led[0].ID != "led/1" || string(led[0].Params) != "3" {
				t.Errorf("submitted are %+v", led)
			}
			if done := n.Await(t, "led/1"); string(done.Result) != "6" || done.Attempt != 2 {
				t.Errorf("it is %+v", done)
			}
			submit(t, n, double, 4, "four")
			if done := n.Await(t, "four"); done.Status != task.Failure || done.Error.Code != "four" {
				t.Errorf("it is %+v", done)
			}
		})
	}
}

func TestAdvance_LetsHoursPassAtOnceBelowSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := enginetest.Memory(t, hourly.Bind(func(_ context.Context, n int) (int, error) { return n, nil }))
		submit(t, n, hourly, 1, "clock")
		n.Await(t, "clock")
		n.Advance(t, 3*time.Hour+time.Minute)
		if is := n.RequireSubmitted(t, "hourly")[0]; is.Runs != 4 {
			t.Errorf("after three hours it has run %d times, want 4", is.Runs)
		}
	})
}

// said is a test that notes what it would have failed with.
type said struct {
	testing.TB
	texts []string
}

func (s *said) Errorf(format string, args ...any) {
	s.texts = append(s.texts, fmt.Sprintf(format, args...))
}

func (s *said) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	panic(s)
}

// fails returns what a check fails with, "" for nothing.
func fails(t *testing.T, check func(testing.TB)) string {
	t.Helper()
	s := &said{TB: t}
	func() {
		defer func() {
			if v := recover(); v != nil && v != any(s) {
				panic(v)
			}
		}()
		check(s)
	}()
	return strings.Join(s.texts, "\n")
}

func TestChecks_FailWithWhatIsWrong(t *testing.T) {
	n := enginetest.Memory(t, double.Bind(twice))
	submit(t, n, double, 2, "a/1")
	n.Await(t, "a/1")
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("ENGINETEST_UPDATE") != "" {
		t.Skip("golden files are written, and not compared")
	}
	for want, check := range map[string]func(testing.TB){
		"await none: ":                          func(t testing.TB) { n.Await(t, "none") },
		"no task of the behavior notify":        func(t testing.TB) { n.RequireSubmitted(t, "notify") },
		"run the test below synctest.Test":      func(t testing.TB) { n.Advance(t, time.Hour) },
		"differs from " + wrong + ", from line": func(t testing.TB) { n.Golden(t, "a/1", wrong) },
		"ENGINETEST_UPDATE=1 go test -run":      func(t testing.TB) { n.Golden(t, "a/1", wrong+"none") },
		"history of none":                       func(t testing.TB) { n.Golden(t, "none", wrong) },
		"export none":                           func(t testing.TB) { n.Export(t, "none") },
		"not an export":                         func(t testing.TB) { enginetest.RequireSame(t, wrong, double.Bind(twice)) },
	} {
		if got := fails(t, check); !strings.Contains(got, want) {
			t.Errorf("said %q, want %q", got, want)
		}
	}
}

func TestGolden_HistoriesAreThoseOfTheFiles(t *testing.T) {
	for range 2 { // whatever is new each time is left out
		n := enginetest.Memory(t, double.Bind(twice))
		for id, params := range map[events.TaskID]int{"golden/two": 2, "golden/three": 3, "golden/four": 4} {
			submit(t, n, double, params, id)
			n.Await(t, id)
			n.Golden(t, id, filepath.Join("testdata", strings.TrimPrefix(string(id), "golden/")+".golden"))
		}
	}
}

func TestGolden_OfAPanicIsTheSameEachTime(t *testing.T) {
	boom := behaviors.Define("boom", &behaviors.Rules[int, int]{Policy: task.Policy{MaxAttempts: 1}})
	tears := boom.Bind(func(context.Context, int) (int, error) { panic("torn\nin two") })
	file := filepath.Join(t.TempDir(), "torn.golden")
	for range 2 {
		n := enginetest.Memory(t, tears)
		submit(t, n, boom, 1, "torn")
		n.Await(t, "torn")
		t.Setenv("ENGINETEST_UPDATE", "1")
		if _, err := os.Stat(file); err == nil {
			t.Setenv("ENGINETEST_UPDATE", "")
		}
		n.Golden(t, "torn", file)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"message":"torn"`) {
		t.Errorf("it is %s, %v", text, err)
	}
}

func TestGolden_OfADeadlineIsTheSameEachTime(t *testing.T) {
	dir := t.TempDir()
	recorded := map[events.TaskID]string{
		"kept":   `"deadline":"(time)"`,
		"missed": `"message":"the deadline, (time), has passed"`,
		"none":   `"reason":"the deadline, (time), has passed"`,
	}
	for hours := time.Duration(1); hours <= 2; hours++ {
		t.Setenv("ENGINETEST_UPDATE", []string{"1", ""}[hours-1])
		synctest.Test(t, func(t *testing.T) {
			rerun := behaviors.Define("rerun", &behaviors.Rules[int, int]{Policy: task.Policy{Existing: task.RunAgain}})
			n := enginetest.Memory(t, double.Bind(twice), rerun.Bind(twice))
			begin := func(b *behaviors.Behavior[int, int], o task.SubmitOptions) {
				f, err := b.SubmitWith(t.Context(), n.Client, 2, o)
				if err != nil {
					t.Fatal(err)
				}
				f.Close()
			}
			by := time.Now().Add(hours * time.Hour)
			begin(double, task.SubmitOptions{ID: "kept", Deadline: by})
			n.Await(t, "kept")
			begin(rerun, task.SubmitOptions{ID: "none"})
			n.Await(t, "none")
			for _, paused := range []string{"double", "rerun"} {
				if err := n.Operations().Pause(t.Context(), paused, ""); err != nil {
					t.Fatal(err)
				}
			}
			begin(double, task.SubmitOptions{ID: "missed", Deadline: by})
			begin(rerun, task.SubmitOptions{ID: "none", Deadline: by})
			n.Advance(t, hours*time.Hour+time.Second)
			for id := range recorded {
				n.Golden(t, id, filepath.Join(dir, string(id)))
			}
		})
	}
	for id, want := range recorded {
		if text, err := os.ReadFile(filepath.Join(dir, string(id))); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is %s, %v; want %s", id, text, err, want)
		}
	}
}

func TestGolden_OfAStreamThatHasStoppedIsTheSameEachTime(t *testing.T) {
	stream := work.DefineStream("letters", nil, work.Stream[string, string]{
		Changes: func(_ context.Context, all, from string) iter.Seq2[work.Change[string], error] {
			return func(yield func(work.Change[string], error) bool) {
				for _, letter := range strings.Split(all, "") {
					if letter > from && !yield(work.Change[string]{Key: letter, Token: letter, Value: letter}, nil) {
						return
					}
				}
			}
		},
		Process: func(_ context.Context, c work.Change[string]) error {
			if c.Value == "c" {
				return errors.New("no c")
			}
			return nil
		},
	})
	file := filepath.Join(t.TempDir(), "stopped.golden")
	for range 2 {
		n := enginetest.Memory(t, stream)
		f, err := stream.Submit(t.Context(), n.Client, "abcd", task.SubmitOptions{ID: "stopped"})
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		n.Await(t, "stopped")
		t.Setenv("ENGINETEST_UPDATE", "1")
		if _, err := os.Stat(file); err == nil {
			t.Setenv("ENGINETEST_UPDATE", "")
		}
		n.Golden(t, "stopped", file)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"oldest":"(time)"`) {
		t.Errorf("it is %s, %v", text, err)
	}
}

func TestSubmitted_ReturnsAllTasksHoweverManyThereAre(t *testing.T) {
	n := enginetest.Memory(t, double.Bind(twice))
	const half = 550
	for range 2 {
		for _, made := range double.SubmitMany(t.Context(), n.Client, make([]int, half), task.SubmitOptions{}) {
			if made.Err != nil {
				t.Fatal(made.Err)
			}
			made.Close()
		}
	}
	got := map[events.TaskID]bool{}
	for _, is := range n.RequireSubmitted(t, "double") {
		got[is.ID] = true
	}
	if len(got) != 2*half {
		t.Errorf("%d tasks are returned, want %d", len(got), 2*half)
	}
}

func TestSubmitted_IsInOrderInAShardWithinAMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, shards := range map[string]int{"one": 1, "four": 4} {
			n := enginetest.StartWith(t, local.Config{Store: filestore.Config{Shards: shards}}, double.Bind(twice))
			for i := range 20 {
				submit(t, n, double, 2, events.TaskID(fmt.Sprint("task-", i)))
			}
			last := map[uint16]int{} // by shard
			for at, is := range n.RequireSubmitted(t, "double") {
				var i int
				if _, err := fmt.Sscanf(string(is.ID), "task-%d", &i); err != nil {
					t.Fatal(err)
				}
				if i++; i <= last[is.Version.Shard] || shards == 1 && i != at+1 {
					t.Errorf("%s: %s comes as number %d", name, is.ID, at)
				}
				last[is.Version.Shard] = i
			}
		}
	})
}

// asking is a test that calls a function each time that it is asked for its context.
type asking struct {
	testing.TB
	asked func()
}

func (a *asking) Context() context.Context {
	a.asked()
	return a.TB.Context()
}

func TestSubmitted_PassesOverATaskThatGoesWhileItIsListed(t *testing.T) {
	n := enginetest.Memory(t, double.Bind(twice))
	for _, id := range []events.TaskID{"stays", "goes"} {
		submit(t, n, double, 2, id)
		n.Await(t, id)
	}
	calls := 0
	got := n.Submitted(&asking{t, func() {
		if calls++; calls == 2 { // it has the list, and reads the first task
			if err := n.Operations().Delete(t.Context(), "goes"); err != nil {
				t.Fatal(err)
			}
		}
	}}, "double")
	if len(got) != 1 || got[0].ID != "stays" || calls != 3 {
		t.Errorf("after %d calls there are %+v", calls, got)
	}
}

func TestSubmitted_ReturnsWhatIsStillInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short := behaviors.Define("short", &behaviors.Rules[int, int]{Policy: task.Policy{Retain: time.Minute}})
		cfg := local.Config{Store: filestore.Config{Shards: 1}}
		n := enginetest.StartWith(t, cfg, short.Bind(twice))
		submit(t, n, short, 2, "succeeds")
		submit(t, n, short, 4, "fails")
		n.Await(t, "succeeds")
		n.Await(t, "fails")
		n.Advance(t, 2*time.Minute)
		submit(t, n, short, 2, "later") // a shard looks what it need not keep when it records something
		got := n.Submitted(t, "short")
		if len(got) != 2 || got[0].ID != "fails" || got[1].ID != "later" {
			t.Errorf("there are %+v", got)
		}
		if is, err := n.GetForgotten(t.Context(), "succeeds"); err != nil || !is.Forgotten {
			t.Errorf("it is %+v, %v", is, err)
		}
	})
}

func TestAgain_TellsWhatChangedCodeDoesOtherwise(t *testing.T) {
	n := enginetest.Memory(t, double.Bind(twice))
	submit(t, n, double, 3, "again/3")
	submit(t, n, double, 4, "again/4")
	n.Await(t, "again/3")
	n.Await(t, "again/4")
	three, four := n.Export(t, "again/3"), n.Export(t, "again/4")
	changed := func(how func(ctx context.Context, n int) (int, error)) task.Behavior { return double.Bind(how) }
	for what, c := range map[string]struct {
		export []byte
		code   task.Behavior
		ran    int
		want   []string
	}{
		"the same code":         {three, changed(twice), 2, nil},
		"the same of a failure": {four, changed(twice), 1, nil},
		"another result": {
			three,
			changed(func(ctx context.Context, n int) (int, error) {
				double, err := twice(ctx, n)
				return double + 1, err
			}),
			2,
			[]string{"attempt 2 of again/3: recorded is the result 6, now it is the result 7"},
		},
		"no failure": {
			three,
			changed(func(context.Context, int) (int, error) { return 6, nil }),
			2,
			[]string{"attempt 1 of again/3: recorded is a failure that is tried again, failed: once, now it is the result 6"},
		},
		"a panic": {
			four,
			changed(func(context.Context, int) (int, error) { panic("torn") }),
			1,
			[]string{"attempt 1 of again/4: recorded is a final failure, four: no fours, now it is a panic"},
		},
		"another behavior": {four, notify.Bind(func(_ context.Context, s string) (string, error) { return s, nil }), 0, nil},
	} {
		ran, different, err := enginetest.Again(t.Context(), strings.NewReader(string(c.export)), c.code)
		if err != nil || ran != c.ran || fmt.Sprint(different) != fmt.Sprint(c.want) {
			t.Errorf("%s: %d attempts, %v, %v; want %d, %v", what, ran, different, err, c.ran, c.want)
		}
	}
	torn := strings.Replace(string(four), "\"shown\"", "\"shewn\"", 1)
	if _, _, err := enginetest.Again(t.Context(), strings.NewReader(torn), double.Bind(twice)); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("of a damaged file: %v", err)
	}
	file := filepath.Join(t.TempDir(), "four.export")
	if err := os.WriteFile(file, four, 0o600); err != nil {
		t.Fatal(err)
	}
	enginetest.RequireSame(t, file, double.Bind(twice))
	lazy := changed(func(context.Context, int) (int, error) { return 0, nil })
	if got := fails(t, func(t testing.TB) { enginetest.RequireSame(t, file, lazy) }); !strings.Contains(got, "no fours") {
		t.Errorf("said %q", got)
	}
}

// A test of a user links neither a server nor a client of one.
func TestEnginetest_LinksNeitherEtcdNorNATS(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	for _, dep := range deps {
		for _, foreign := range []string{"go.etcd.io/", "github.com/nats-io/", "google.golang.org/grpc", "net/http"} {
			if strings.HasPrefix(dep, foreign) {
				t.Errorf("it links %s", dep)
			}
		}
	}
	if len(deps) < 50 {
		t.Errorf("the list is of something else: %v", deps)
	}
}

func TestAwait_FailsForARunThatWaitsForItsNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := func(context.Context, int) (int, error) { return 0, behaviors.RetryAfter(time.Hour, errors.New("busy")) }
		n := enginetest.Memory(t, double.Bind(late))
		submit(t, n, double, 1, "late")
		if said := fails(t, func(t testing.TB) { n.Await(t, "late") }); !strings.Contains(said, "await late: it is FAILURE") {
			t.Errorf("said %q", said)
		}
	})
}
