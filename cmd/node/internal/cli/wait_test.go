package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"taskledger/api/operations"
	"taskledger/events"
)

// endless is a task that goes on.
type endless struct {
	operations.Handle
	id events.TaskID
}

func (e endless) ID() events.TaskID { return e.id }
func (endless) Close()              {}

func (endless) Wait(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestWait_ThatIsInterruptedSaysHowToWaitAgain(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out, said bytes.Buffer
	a := &app{Program: Program{Name: "node", Out: &out, Err: &said}, output: "table"}
	a.access.flags()
	err := a.awaitAll(ctx, []operations.Handle{endless{id: "a"}, endless{id: "b"}})
	if stopped, is := errors.AsType[*pausedError](err); !is || !errors.Is(err, context.Canceled) ||
		stopped.text != "what was waited for goes on; wait again with: node wait a b" {
		t.Errorf("%v", err)
	}
}
