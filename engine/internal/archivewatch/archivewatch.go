// Package archivewatch looks at the archive as a whole, also while there is nothing to archive: whoever may change its
// settings could have it lose everything unseen.
package archivewatch

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"taskledger/store"
)

// Every is the time between two looks.
const Every = time.Minute

// emptied is the problem of an archive that has lost everything.
const emptied = "it holds nothing, although entries were archived: it was removed"

// Watch knows what is wrong with an archive. The zero value knows of nothing.
type Watch struct{ problem atomic.Pointer[string] }

// Problem says why the archive does not keep everything, as it was last looked at; "" = nothing is known.
func (w *Watch) Problem() string {
	if problem := w.problem.Load(); problem != nil {
		return *problem
	}
	return ""
}

// Run looks until ctx ends, and logs what changes. held says whether entries are known to be in the archive. An archive
// that cannot be looked at is left alone.
func (w *Watch) Run(ctx context.Context, archive store.Archive, held func() bool, log *slog.Logger) {
	of, can := archive.(store.Inspecting)
	if !can {
		<-ctx.Done()
		return
	}
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	for {
		w.look(ctx, of, held, log)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look notes what is wrong. While the archive does not answer, what was noted holds.
func (w *Watch) look(ctx context.Context, archive store.Inspecting, held func() bool, log *slog.Logger) {
	some := held() // before it is looked at what is there
	is, err := archive.Inspect(ctx)
	if err != nil {
		log.DebugContext(ctx, "the archive was not looked at", "err", err)
		return
	}
	problem, before := is.Problem, w.Problem()
	if problem == "" && is.Empty && some {
		problem = emptied
	}
	if problem == before {
		return
	}
	w.problem.Store(&problem)
	if problem == "" {
		log.WarnContext(ctx, "the archive keeps everything again") // at the level of serve, which told of the problem
		return
	}
	log.WarnContext(ctx, "the archive does not keep everything", "problem", problem)
}
