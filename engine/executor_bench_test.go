package engine

import (
	"context"
	"testing"

	"taskledger/engine/internal/command"
)

// An attempt from its launch to the answer to its outcome, of a function that does nothing; many at once, as on a busy node.
func BenchmarkAttempt(b *testing.B) {
	for name, run := range map[string]func(context.Context, Attempt) Outcome{
		"nothing": func(context.Context, Attempt) Outcome { return Outcome{} },
		"looks at its context": func(ctx context.Context, _ Attempt) Outcome {
			ctx.Done()
			return Outcome{}
		},
	} {
		b.Run(name, func(b *testing.B) {
			const wave = 64                                           // attempts at once
			p := newPost(b, 16*wave, nil, &script{id: "b", run: run}) // an outcome comes before its slot is free
			as := command.Assignment{AttemptName: command.AttemptName{Task: "a"}, Behavior: "b", Number: 1}
			b.ReportAllocs()
			for left := b.N; left > 0; {
				n := min(wave, left)
				left -= n
				for range n {
					if !p.exec.take("b") {
						b.Fatal("no slot")
					}
					as.Started++
					p.exec.launch(p.member, 0, as)
				}
				for n > 0 {
					<-p.inbox.Woken()
					n -= len(p.reported())
				}
			}
		})
	}
}
