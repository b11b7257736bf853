package engine

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"taskledger/store"
)

// watchArchiveEvery is the time between two looks at the archive.
const watchArchiveEvery = time.Minute

// archiveEmptied is the problem of an archive that has lost everything.
const archiveEmptied = "it holds nothing, although entries were archived: it was removed"

// archiveWatch looks at the archive as a whole, also while there is nothing to archive: whoever may change its settings
// could have it lose everything unseen. The zero value knows of no problem.
type archiveWatch struct{ problem atomic.Pointer[string] }

// Problem says why the archive does not keep everything, as it was last looked at; "" = nothing is known.
func (w *archiveWatch) Problem() string {
	if problem := w.problem.Load(); problem != nil {
		return *problem
	}
	return ""
}

// Run looks until ctx ends, and logs what changes. held says whether entries are known to be in the archive. An archive
// that cannot be looked at is left alone.
func (w *archiveWatch) Run(ctx context.Context, archive store.Archive, held func() bool, log *slog.Logger) {
	of, can := archive.(store.Inspecting)
	if !can {
		<-ctx.Done()
		return
	}
	ticker := time.NewTicker(watchArchiveEvery)
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
func (w *archiveWatch) look(ctx context.Context, archive store.Inspecting, held func() bool, log *slog.Logger) {
	some := held() // before it is looked at what is there
	is, err := archive.Inspect(ctx)
	if err != nil {
		log.DebugContext(ctx, "the archive was not looked at", "err", err)
		return
	}
	problem, before := is.Problem, w.Problem()
	if problem == "" && is.Empty && some {
		problem = archiveEmptied
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
