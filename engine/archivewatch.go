package engine

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"taskledger/store"
)

// watchArchiveEvery is the interval at which the archive is inspected.
const watchArchiveEvery = time.Minute

// archiveEmptied is the problem of an archive that has lost everything.
const archiveEmptied = "it holds nothing, although entries were archived: it was removed"

// archiveWatch inspects the archive as a whole, also while there is nothing to archive: a change of its settings could
// make it lose everything unnoticed. The zero value knows of no problem.
type archiveWatch struct{ problem atomic.Pointer[string] }

// Problem returns why the archive does not retain everything, as of the last inspection; "" = no problem is known.
func (w *archiveWatch) Problem() string {
	if problem := w.problem.Load(); problem != nil {
		return *problem
	}
	return ""
}

// Run inspects the archive until ctx ends, and logs changes. archived reports whether entries are known to be in the
// archive. Run does nothing for an archive that cannot be inspected.
func (w *archiveWatch) Run(ctx context.Context, archive store.Archive, archived func() bool, log *slog.Logger) {
	of, can := archive.(store.Inspecting)
	if !can {
		<-ctx.Done()
		return
	}
	ticker := time.NewTicker(watchArchiveEvery)
	defer ticker.Stop()
	for {
		w.inspect(ctx, of, archived, log)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// inspect notes the problem of the archive. While the archive does not answer, the last one stays.
func (w *archiveWatch) inspect(ctx context.Context, archive store.Inspecting, archived func() bool, log *slog.Logger) {
	some := archived() // before the inspection
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
		log.WarnContext(ctx, "the archive keeps everything again") // at the level at which the problem was logged
		return
	}
	log.WarnContext(ctx, "the archive does not keep everything", "problem", problem)
}
