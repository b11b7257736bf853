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
		var out bytes.Buffer
		a, p := &app{Program: Program{Out: &out}, output: "table"}, &picky{names: true, refuses: map[events.TaskID]error{"": err}}
		all := lines()[:1]
		all[0].ID = ""
		_ = a.submitBatch(t.Context(), p, submitOptions{skipBad: true}, all)
		if row := strings.Fields(strings.Split(out.String(), "\n")[1]); row[1] != want {
			t.Errorf("%v: row %q, want %s", err, row, want)
		}
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
		"all is well":                         {nil, submitOptions{}, 3, 0},
		"a line of the last part is refused":  {map[events.TaskID]error{"t2100": refused}, submitOptions{}, 3, 2001},
		"a line is refused":                   {map[events.TaskID]error{"t5": refused}, submitOptions{}, 1, 1},
		"a line is refused, and skipped":      {map[events.TaskID]error{"t5": refused}, submitOptions{skipBad: true}, 3, 0},
		"the cluster is gone":                 {map[events.TaskID]error{"t1500": store.ErrUnavailable}, submitOptions{skipBad: true}, 2, 2001},
		"it is not known what became of some": {map[events.TaskID]error{"t7": task.ErrUnknown}, submitOptions{skipBad: true}, 1, 1001},
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
