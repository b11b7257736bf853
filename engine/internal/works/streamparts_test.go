package works_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/work/workledger"
)

// The node dies behind the first part of a Move: what the others hold is open, whether or not more is.
func TestStream_TheLagFallsByNoPartOfAMove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ open, want int64 }{{0, 2}, {1, 2}, {5, 5}} {
		w := streamed(t)
		came := w.now - 3000
		s := w.record(parent)
		w.moveTo(s, workledger.Move{Open: 8, Oldest: time.UnixMilli(int64(came))})
		w.now += 1000
		moved := w.work().Parts[0].Moved
		m := workledger.Move{Token: "9", Open: c.open, Oldest: time.UnixMilli(int64(came))}
		for i := range 3 {
			h := begins(fmt.Sprint(i), fmt.Sprint(i))
			h.Change.Data = bytes.Repeat([]byte("1"), events.MaxHeldBytes)
			m.Holds = append(m.Holds, h)
		}
		died := errors.New("the node has died")
		asked := 0
		name, started, node := w.attempt(parent)
		dying := works.NewStream(works.Asks{
			Ask: func(_ context.Context, _ int, c command.Command) (a command.Answer, err error) {
				if asked++; asked > 1 {
					return a, died
				}
				return w.decide(c), nil
			},
			Shards: 1,
		}, works.Attempt{
			Task:    events.TaskID(name),
			Started: events.Ref(started),
			Node:    node,
		})
		if _, err := dying.Move(context.Background(), m); !errors.Is(err, died) {
			t.Fatalf("moved: %v", err)
		}
		is := w.stream()
		if is.Len() != 1 || is.Token != "" {
			t.Fatalf("%d holds, token %q, want the first part alone", is.Len(), is.Token)
		}
		if int64(is.Open) != c.want || is.Oldest != came {
			t.Errorf("%d are open since %d, want %d since %d", is.Open, is.Oldest, c.want, came)
		}
		if got := w.work().Parts[0].Moved; got != moved {
			t.Errorf("it has got on at %d, before at %d", got, moved)
		}
		w.moveTo(s, m)
		if is := w.stream(); is.Len() != 3 || is.Token != "9" || int64(is.Open) != c.open {
			t.Errorf("%d holds, token %q, %d are open", is.Len(), is.Token, is.Open)
		}
	}
}
