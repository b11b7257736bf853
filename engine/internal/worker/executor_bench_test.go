package worker_test

import (
	"context"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
)

// An attempt from its launch to the answer to its outcome, of a function that does nothing; many at once, as on a
// busy node.
func BenchmarkAttempt(b *testing.B) {
	nothing := func(context.Context, task.Attempt) task.Outcome { return task.Outcome{} }
	for name, of := range map[string]struct {
		logs tasklog.Store
		run  func(context.Context, task.Attempt) task.Outcome
	}{
		"nothing":                    {nil, nothing},
		"nothing, and keeps its log": {memlog.New(), nothing},
		"logs a line": {memlog.New(), func(_ context.Context, a task.Attempt) task.Outcome {
			a.Log.Info("a line")
			return task.Outcome{}
		}},
		"looks at its context": {nil, func(ctx context.Context, _ task.Attempt) task.Outcome {
			ctx.Done()
			return task.Outcome{}
		}},
	} {
		b.Run(name, func(b *testing.B) {
			const wave = 64 // attempts at once; an outcome comes before its slot is free
			w := newLogged(b, of.logs, 16*wave, nil, &script{id: "b", run: of.run})
			as := command.Assignment{
				AttemptName: command.AttemptName{Task: "a"},
				Behavior:    "b",
				Number:      1,
			}
			b.ReportAllocs()
			for left := b.N; left > 0; {
				n := min(wave, left)
				left -= n
				for range n {
					if !w.take("b") {
						b.Fatal("no slot")
					}
					as.Started++
					as.Life = as.Started
					w.exec.Launch(w.session, 0, as)
				}
				for n > 0 {
					<-w.inbox.woken
					n -= len(w.reported())
				}
			}
		})
	}
}
