package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"

	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
)

// paged is a cluster that lists a task on every page, for ever, and with the last one the cause of its context once
// that has ended.
type paged struct {
	operations.Client
	pages int
	ends  int // the page during which end is called
	end   func()
}

func (p *paged) Ledger() *ledger.Ledger {
	return ledger.New(ledger.Config{Cluster: store.Cluster{Shards: 1}})
}

func (p *paged) ListPage(ctx context.Context, _ task.Filter, cursor string) (task.Page, error) {
	if want := fmt.Sprint("c", p.pages); cursor != want && p.pages > 0 {
		return task.Page{}, fmt.Errorf("cursor %q, want %q", cursor, want)
	}
	if p.pages++; p.pages == p.ends {
		p.end()
	}
	page := task.Page{
		Tasks:  []task.Task{{ID: events.TaskID(fmt.Sprint("t", p.pages)), Behavior: "work"}},
		Cursor: fmt.Sprint("c", p.pages),
	}
	if ctx.Err() != nil {
		return page, fmt.Errorf("the list is not through: %w: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	return page, nil
}

// An interrupt, or --timeout, between two pages ends a list: it has printed what it was told, and tells where it goes
// on.
func TestList_EndsBetweenPagesWithWhatItHas(t *testing.T) {
	for _, cause := range []error{context.Canceled, exitcode.ErrTimeout} {
		for _, ends := range []int{1, 3} {
			ctx, end := context.WithCancelCause(t.Context())
			var out, said bytes.Buffer
			a := &app{Program: Program{Out: &out, Err: &said}, output: "table"}
			p := &paged{ends: ends, end: func() { end(cause) }}
			_, err := a.list(ctx, p, task.Filter{}, 1000, "", nil)
			if !errors.Is(err, cause) || p.pages != ends {
				t.Errorf("%v during page %d: it ends with %v after %d pages", cause, ends, err, p.pages)
			}
			if code := exitcode.Of(err); code != exitcode.Unavailable {
				t.Errorf("exit code %d, want %d", code, exitcode.Unavailable)
			}
			if last := fmt.Sprint("t", ends); !strings.Contains(out.String(), last+" ") {
				t.Errorf("%v during page %d: it has not printed %s: %s", cause, ends, last, out.String())
			}
			if want := fmt.Sprintf("--cursor c%d\n", ends); !strings.HasSuffix(said.String(), want) {
				t.Errorf("%v during page %d: it says %q, want %s", cause, ends, said.String(), want)
			}
		}
	}
}

// A cursor of a list by the name of a node is of its session: when that is another one, the refusal says so.
func TestList_SaysThatTheNodeMayHaveBegunAnotherSession(t *testing.T) {
	refused := &store.InvalidError{Field: "cursor", Problem: "it is of another filter"}
	if err := ofSession(refused, "a", "a-bbbbbbbbbb", "c"); !errors.Is(err, refused) || !strings.Contains(err.Error(), "node a, which is a-bbbbbbbbbb now, has begun another session") {
		t.Errorf("%v", err)
	}
	for name, err := range map[string]error{
		"a session":  ofSession(refused, "a-bbbbbbbbbb", "a-bbbbbbbbbb", "c"),
		"first page": ofSession(refused, "a", "a-bbbbbbbbbb", ""),
		"no node":    ofSession(refused, "", "", "c"),
	} {
		if !errors.Is(err, refused) || strings.Contains(err.Error(), "session") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if other := errors.New("other"); ofSession(other, "a", "a-bbbbbbbbbb", "c") != other {
		t.Error("another error is changed")
	}
}
