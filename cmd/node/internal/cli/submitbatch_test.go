package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/requests"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// picky is a cluster that refuses requests by their ids, and submits none of one key while it refuses one of them.
type picky struct {
	submitter
	refuses  map[events.TaskID]error
	asked    [][]events.TaskID
	deadline time.Time
	names    bool // the tasks of requests without an id, as the engine does
	heals    int  // refuses nothing from this call on; 0 = never
	called   func()
}

type submitted struct {
	operations.Handle
	id events.TaskID
}

func (s submitted) ID() events.TaskID { return s.id }
func (submitted) Joined() bool        { return false }
func (submitted) Repeated() bool      { return false }

func (p *picky) SubmitMany(ctx context.Context, all []task.Request, o task.ManyOptions) (results []operations.Submitted) {
	p.deadline, _ = ctx.Deadline()
	if p.called != nil {
		p.called()
	}
	if p.heals > 0 && len(p.asked) >= p.heals {
		p.refuses = nil
	}
	var ids []events.TaskID
	var first error
	for _, q := range all {
		ids = append(ids, q.ID)
		if err := p.refuses[q.ID]; first == nil && err != nil {
			first = fmt.Errorf("%w: request %d: %w", task.ErrNoneSubmitted, len(ids)-1, err)
		}
	}
	for _, q := range all {
		err := p.refuses[q.ID]
		if err == nil && (o.RequestKey != "" || o.AllValid) {
			err = first
		}
		id := q.ID
		if p.names && id == "" {
			id = "random"
		}
		results = append(results, operations.Submitted{Handle: submitted{id: id}, Err: err})
	}
	p.asked = append(p.asked, ids)
	return results
}

// joining is a cluster where each task is there already.
type joining struct {
	submitter
	status task.Status
}

func (j joining) Get(_ context.Context, id events.TaskID) (task.Task, error) {
	return task.Task{ID: id, Status: j.status}, nil
}

type joined struct{ submitted }

func (joined) Joined() bool { return true }

func (joining) SubmitRaw(context.Context, string, []byte, task.SubmitOptions) (operations.Handle, error) {
	return joined{submitted{id: "a"}}, nil
}

func TestSubmit_ThatJoinsSaysThatItsParametersAreNotTaken(t *testing.T) {
	for params, want := range map[string]string{
		"":  "the request has joined it\n",
		"1": "the request has joined it; the parameters of the task stay, unless its behavior combines them with these\n",
	} {
		var out, said bytes.Buffer
		a := &app{Program: Program{Out: &out, Err: &said}, output: "table"}
		if err := a.submit(t.Context(), joining{}, submitOptions{id: "a"}, "noop", []byte(params)); err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(said.String(), want) {
			t.Errorf("with parameters %q: said %q, want %q", params, said.String(), want)
		}
	}
}

func TestSubmit_ThatJoinsATaskThatHasEndedSaysThatNothingRuns(t *testing.T) {
	for status, want := range map[task.Status]string{
		task.Running: "the request has joined it\n",
		task.Success: "it has ended with SUCCESS, and nothing runs\n",
		task.Failure: "it has ended with FAILURE, and nothing runs: node retry a runs it again\n",
	} {
		var out, said bytes.Buffer
		a := &app{Program: Program{Name: "node", Out: &out, Err: &said}, output: "table"}
		a.access.flags()
		if err := a.submit(t.Context(), joining{status: status}, submitOptions{id: "a"}, "noop", nil); err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(said.String(), want) {
			t.Errorf("%s: said %q, want %q", status, said.String(), want)
		}
	}
}

// lines are requests with the ids a, b and c.
func lines() (all []requests.Line) {
	for i, id := range []events.TaskID{"a", "b", "c"} {
		all = append(all, requests.Line{Number: i + 1, Request: task.Request{Name: "noop", SubmitOptions: task.SubmitOptions{ID: id}}})
	}
	return all
}

func TestSubmit_OfABatchWithAKeyLeavesOutWhatIsWrong(t *testing.T) {
	refused := &store.InvalidError{Field: "params", Problem: "none"}
	for name, row := range map[string]struct {
		refuses map[events.TaskID]error
		want    [][]events.TaskID
	}{
		"refused":                  {map[events.TaskID]error{"b": refused}, [][]events.TaskID{{"a", "b", "c"}, {"a", "c"}}},
		"of no behavior":           {map[events.TaskID]error{"a": task.ErrUnknownBehavior}, [][]events.TaskID{{"a", "b", "c"}, {"b", "c"}}},
		"all":                      {map[events.TaskID]error{"a": refused, "b": refused, "c": refused}, [][]events.TaskID{{"a", "b", "c"}}},
		"none":                     {nil, [][]events.TaskID{{"a", "b", "c"}}},
		"not to be planned by now": {map[events.TaskID]error{"b": &task.OverloadError{}}, [][]events.TaskID{{"a", "b", "c"}}},
	} {
		var out bytes.Buffer
		a, p := &app{Program: Program{Out: &out}, output: "table"}, &picky{refuses: row.refuses}
		if err := a.submitBatch(t.Context(), p, submitOptions{key: "k", skipBad: true}, lines()); (err == nil) != (row.refuses == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.EqualFunc(p.asked, row.want, slices.Equal) {
			t.Errorf("%s: submitted %v, want %v", name, p.asked, row.want)
		}
	}
}

// When one line is to blame that none is submitted, the others tell its number, and no tasks that there are not.
func TestSubmit_OfABatchNamesTheLineThatIsToBlame(t *testing.T) {
	for name, o := range map[string]submitOptions{"all valid": {}, "of a key": {key: "k"}} {
		all := lines()
		for i, number := range []int{2, 5, 9} {
			all[i].Number = number
		}
		all[0].ID, all[2].ID = "", ""
		var out bytes.Buffer
		a, p := &app{Program: Program{Out: &out}, output: "table"}, &picky{names: true, refuses: map[events.TaskID]error{"b": &store.InvalidError{Field: "params", Problem: "none"}}}
		err := a.submitBatch(t.Context(), p, o, all)
		if err == nil || !strings.Contains(err.Error(), "line 5: params: none") || strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", name, err)
		}
		rows := strings.Split(strings.TrimSpace(out.String()), "\n")
		for i, want := range []string{"2 - none is submitted: line 5: params: none", "5 b params: none", "9 - none is submitted: line 5: params: none"} {
			if got := strings.Join(strings.Fields(rows[i+1]), " "); got != want {
				t.Errorf("%s: row %q, want %q", name, got, want)
			}
		}
	}
}

// What was refused for certain has made no task; what is not known may have made one.
func TestSubmit_OfABatchTellsNoTaskOfWhatWasRefused(t *testing.T) {
	for err, want := range map[error]string{
		&task.OverloadError{Cause: "full"}: "-", task.ErrUnknownBehavior: "-", store.ErrUnavailable: "-", task.ErrUnknown: "random",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, said bytes.Buffer
			a, p := &app{Program: Program{Out: &out, Err: &said}, output: "table"}, &picky{names: true, refuses: map[events.TaskID]error{"": err}}
			a.access.flags()
			all := lines()[:1]
			all[0].ID = ""
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			_ = a.submitBatch(ctx, p, submitOptions{skipBad: true}, all)
			if row := strings.Fields(strings.Split(out.String(), "\n")[1]); row[1] != want {
				t.Errorf("%v: row %q, want %s", err, row, want)
			}
		})
	}
}

func TestSubmit_OfABatchTakesAsLongAsTheTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: answerWithin, time.Second: time.Second, 5 * time.Minute: 5 * time.Minute} {
		var out bytes.Buffer
		a, p := &app{Program: Program{Out: &out}, output: "table"}, &picky{}
		a.access.timeout = timeout
		began := time.Now()
		if err := a.submitBatch(t.Context(), p, submitOptions{}, lines()); err != nil {
			t.Fatal(err)
		}
		if got := p.deadline.Sub(began); got < want || got > want+time.Minute {
			t.Errorf("with --timeout %s it may take %s", timeout, got)
		}
	}
}

// full is an output to which nothing can be written.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func (p *picky) SubmitRaw(context.Context, string, []byte, task.SubmitOptions) (operations.Handle, error) {
	return submitted{id: "full/1"}, nil
}

// What was accepted stays accepted: who cannot be told on standard output is told on standard error.
func TestSubmit_TellsWhatWasAcceptedWhereItCannotBePrinted(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "json"} {
		a := &app{Program: Program{Out: full{}}, output: format}
		one := a.submit(t.Context(), &picky{}, submitOptions{}, "noop", nil)
		refuses := map[events.TaskID]error{"b": task.ErrUnknownBehavior}
		many := a.submitBatch(t.Context(), &picky{refuses: refuses}, submitOptions{skipBad: true}, lines())
		for want, err := range map[string]error{"accepted: full/1, but": one, "accepted: a c, but": many} {
			if exitcode.Of(err) != exitcode.Unavailable || !strings.Contains(err.Error(), want) || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s: %v, want code %d and %q", format, err, exitcode.Unavailable, want)
			}
		}
	}
}

// manyLines are requests with the ids t1 to tN.
func manyLines(n int) (all []requests.Line) {
	for i := range n {
		o := task.SubmitOptions{ID: events.TaskID(fmt.Sprint("t", i+1))}
		all = append(all, requests.Line{Number: i + 1, Request: task.Request{Name: "noop", SubmitOptions: o}})
	}
	return all
}

func TestSubmit_OfABatchOfAnyLengthGoesInPartsAndSaysWhereItGoesOn(t *testing.T) {
	refused := &store.InvalidError{Field: "params", Problem: "none"}
	for name, c := range map[string]struct {
		refuses map[events.TaskID]error
		options submitOptions
		parts   int
		goesOn  int // line; 0 = all is submitted, or refused
	}{
		"all is well":                        {nil, submitOptions{}, 3, 0},
		"a line of the last part is refused": {map[events.TaskID]error{"t2100": refused}, submitOptions{}, 3, 2001},
		"a line is refused":                  {map[events.TaskID]error{"t5": refused}, submitOptions{}, 1, 1},
		"a line is refused, and skipped":     {map[events.TaskID]error{"t5": refused}, submitOptions{skipBad: true}, 3, 0},
		"nobody answers at first":            {map[events.TaskID]error{"t2": store.ErrUnavailable}, submitOptions{}, 1, 0},
		"no node is alive at first":          {map[events.TaskID]error{"t999": fmt.Errorf("%w: %w", store.ErrUnavailable, task.ErrNoNode)}, submitOptions{}, 1, 0},
	} {
		var out bytes.Buffer
		a, p := &app{Program: Program{Out: &out}, output: "table"}, &picky{refuses: c.refuses}
		err := a.submitBatch(t.Context(), p, c.options, manyLines(2100))
		if len(p.asked) != c.parts || len(p.asked[0]) != events.MaxRequestTasks || (err == nil) != (c.refuses == nil) {
			t.Errorf("%s: %d parts: %v", name, len(p.asked), err)
		}
		if says := err != nil && strings.Contains(err.Error(), fmt.Sprintf("go on with --from-line %d", c.goesOn)); says != (c.goesOn != 0) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// paused runs a batch of 2,100 lines until it ends or has waited for a minute.
func paused(t *testing.T, p *picky, o submitOptions, end func(context.CancelCauseFunc)) (out, said string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		time.AfterFunc(time.Minute, func() { end(cancel) })
		var printed, problems bytes.Buffer
		a := &app{Program: Program{Name: "node", Out: &printed, Err: &problems}, output: "table"}
		a.access.flags()
		err = a.submitBatch(ctx, p, o, manyLines(2100))
		out, said = printed.String(), problems.String()
	})
	return out, said, err
}

func TestSubmit_OfABatchWaitsWhileTheClusterIsAwayAndGoesOn(t *testing.T) {
	for _, away := range []error{store.ErrUnavailable, task.ErrUnknown, &task.OverloadError{Cause: "full"}} {
		p := &picky{heals: 5, refuses: map[events.TaskID]error{"t1500": away, "t1700": away}}
		out, said, err := paused(t, p, submitOptions{batch: "f", skipBad: true}, func(context.CancelCauseFunc) {})
		const waits = "node: waiting for the cluster, with 1000 of 2100 requests submitted: "
		if err != nil || strings.Count(out, "\n") != 2101 || strings.Count(said, waits) != 1 {
			t.Errorf("%v: %v, %d lines, said %q", away, err, strings.Count(out, "\n"), said)
		}
		if len(p.asked) != 7 || !slices.Equal(p.asked[5], []events.TaskID{"t1500", "t1700"}) || len(p.asked[6]) != 100 {
			t.Errorf("%v: %d parts were submitted", away, len(p.asked))
		}
	}
}

// What may be submitted already is submitted again as the same task, or under the same key.
func TestSubmit_OfABatchSubmitsWhatIsNotKnownAgainAsTheSame(t *testing.T) {
	for name, o := range map[string]submitOptions{"of no key": {batch: "f", skipBad: true}, "of a key": {batch: "f", key: "k"}} {
		synctest.Test(t, func(t *testing.T) {
			all := lines()
			all[1].ID = ""
			var out, said bytes.Buffer
			a := &app{Program: Program{Name: "node", Out: &out, Err: &said}, output: "table"}
			a.access.flags()
			p := &picky{names: true, heals: 2, refuses: map[events.TaskID]error{"": task.ErrUnknown, "random": task.ErrUnknown}}
			want := [][]events.TaskID{{"a", "", "c"}, {"random"}, {"random"}}
			if o.key != "" {
				want = [][]events.TaskID{{"a", "", "c"}, {"a", "", "c"}, {"a", "", "c"}}
			}
			if err := a.submitBatch(t.Context(), p, o, all); err != nil || !slices.EqualFunc(p.asked, want, slices.Equal) {
				t.Errorf("%s: submitted %v, want %v, %v", name, p.asked, want, err)
			}
		})
	}
}

func TestSubmit_OfABatchThatEndsEarlySaysInOneLineWhereItGoesOn(t *testing.T) {
	interrupt := func(cancel context.CancelCauseFunc) { cancel(nil) }
	over := func(cancel context.CancelCauseFunc) { cancel(exitcode.ErrNoOutcome) }
	for name, c := range map[string]struct {
		away    error
		options submitOptions
		end     func(context.CancelCauseFunc)
		code    int
		says    string
	}{
		"interrupted while the cluster is away": {store.ErrUnavailable, submitOptions{}, interrupt, exitcode.Failed,
			"1000 of 2100 requests are submitted; go on with: node submit --batch f --from-line 1001"},
		"over while the cluster is away": {store.ErrUnavailable, submitOptions{}, over, exitcode.Unavailable,
			"no answer within --timeout: 1000 of 2100 requests are submitted; go on with: node submit --batch f --from-line 1001"},
		"some may be there already": {task.ErrUnknown, submitOptions{skipBad: true}, over, exitcode.Unavailable,
			"1999 of 2100 requests are submitted; go on with: node submit --batch f --from-line 1500 --skip-bad; up to line 2000"},
	} {
		p := &picky{refuses: map[events.TaskID]error{"t1500": c.away}}
		c.options.batch = "f"
		_, _, err := paused(t, p, c.options, c.end)
		if text := fmt.Sprint(err); exitcode.Of(err) != c.code || !strings.Contains(text, c.says) || strings.Contains(text, "\n") || len(text) > 300 {
			t.Errorf("%s: %v", name, err)
		}
		if stopped, is := errors.AsType[*pausedError](err); !is || !strings.HasPrefix(stopped.text, c.says[strings.Index(c.says, "1"):]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An interrupt between two parts, or during one, leaves nothing open: the part under way is answered.
func TestSubmit_OfABatchThatIsInterruptedHasTheAnswersOfItsPart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, said bytes.Buffer
	a := &app{Program: Program{Name: "node", Out: &out, Err: &said}, output: "table"}
	a.access.flags()
	p := &picky{}
	p.called = func() {
		if len(p.asked) == 1 {
			cancel()
		}
	}
	err := a.submitBatch(ctx, p, submitOptions{batch: "f"}, manyLines(2100))
	if stopped, is := errors.AsType[*pausedError](err); !is || !errors.Is(err, context.Canceled) ||
		stopped.text != "2000 of 2100 requests are submitted; go on with: node submit --batch f --from-line 2001" {
		t.Errorf("%v", err)
	}
	if strings.Count(out.String(), "\n") != 2001 {
		t.Errorf("%d lines are told of", strings.Count(out.String(), "\n"))
	}
}
