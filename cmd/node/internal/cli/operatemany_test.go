package cli

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"taskledger/api/operations"
	"taskledger/bulk"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/task"
)

// changing is a cluster that tells reports of a bulk operation, and notes how often one was begun.
type changing struct {
	operations.Client
	reports []bulk.Report
	ends    error // with the last report
	begun   int
}

func (c *changing) Each(context.Context, task.Filter, task.Operation, bulk.Options) iter.Seq2[bulk.Report, error] {
	c.begun++
	return func(yield func(bulk.Report, error) bool) {
		for i, r := range c.reports {
			var err error
			if i == len(c.reports)-1 {
				err = c.ends
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// A bound that would select all tasks is wrong usage, and nothing is deleted.
func TestDelete_OfATimeThatWouldBeNoBoundDeletesNothing(t *testing.T) {
	for _, field := range []string{"created-from", "created-to", "ended-from", "ended-to"} {
		for _, text := range []string{"1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"} {
			var out bytes.Buffer
			a, c := &app{Program: Program{Out: &out, Err: &out}, output: "table"}, &changing{}
			err := a.operateMany(t.Context(), c, operations.Delete, manyOptions{filters: []string{field + "=" + text}, yes: true}, "")
			if _, usage := errors.AsType[*exitcode.UsageError](err); !usage || !strings.Contains(err.Error(), "--filter: "+field) || !strings.Contains(err.Error(), "want a time after 1970") {
				t.Errorf("%s=%s: %v", field, text, err)
			}
			if c.begun > 0 {
				t.Errorf("%s=%s: tasks are deleted", field, text)
			}
		}
	}
}

// Before a task has matched, to go on is to begin anew.
func TestOperateMany_NamesACursorOnceThereIsSomethingToGoOnWith(t *testing.T) {
	var out, said bytes.Buffer
	a := &app{Program: Program{Out: &out, Err: &said}, output: "table"}
	c := &changing{reports: []bulk.Report{{Cursor: "none"}, {Matched: 2, Changed: 2, Cursor: "some"}, {Matched: 2, Changed: 2}}}
	if err := a.operateMany(t.Context(), c, operations.Cancel, manyOptions{filters: []string{"behavior=noop"}, yes: true}, ""); err != nil {
		t.Error(err)
	}
	if want := "2 tasks, 2 changed; if this is interrupted, go on with --cursor some\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
}

// Tasks that are left are told with why, in the table and beside JSON.
func TestOperateMany_SaysHowManyTasksAreLeftAndWhy(t *testing.T) {
	for verb, why := range map[operations.Verb]string{operations.Cancel: "match no more", operations.Retry: "an event since it began", operations.Delete: "an event since it began"} {
		for _, format := range []string{"table", "json"} {
			for left, want := range map[int64]bool{0: false, 3: true} {
				var out, said bytes.Buffer
				a := &app{Program: Program{Out: &out, Err: &said}, output: format}
				c := &changing{reports: []bulk.Report{{Matched: 2, Changed: 2, Cursor: "c"}, {Matched: 9, Changed: 9 - left, Left: left}}}
				if err := a.operateMany(t.Context(), c, verb, manyOptions{filters: []string{"status=RUNNING"}, yes: true}, ""); err != nil {
					t.Errorf("%s: %v", verb, err)
				}
				if got := strings.Contains(said.String(), "3 tasks are left as they are: ") && strings.Contains(said.String(), why); got != want {
					t.Errorf("%s, %d left: said %q", verb, left, said.String())
				}
			}
		}
	}
}
