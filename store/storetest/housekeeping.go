package storetest

import (
	"errors"

	"taskledger/store"
)

var housekeeping = map[string]func(*world){
	"Usage/IsThatOfAnEtcdInUse": func(w *world) {
		before := w.usage()
		head := w.append(w.A, w.own(w.A), store.Head{}, "one")
		after := w.usage()
		for _, u := range []store.Usage{before, after} {
			if u.InUse <= 0 || u.Size < u.InUse || u.Quota < u.Size || u.Full {
				w.Errorf("usage is %+v", u)
			}
		}
		if before.Revision >= head.Revision || after.Revision < head.Revision {
			w.Errorf("revisions are %d and %d, that of the write between is %d", before.Revision, after.Revision, head.Revision)
		}
	},
	"Compact/OfTheFutureIsAnError": func(w *world) {
		if err := w.A.Compact(w.ctx, 1<<60); err == nil {
			w.Error("compacted to a revision that was never written")
		}
	},
	"Defragment/OfAnothersStoreIsRefused": func(w *world) {
		if err := w.A.Defragment(w.ctx); !errors.Is(err, store.ErrRefused) {
			w.Errorf("defragment: %v, want %v", err, store.ErrRefused)
		}
	},
}

func (w *world) usage() store.Usage {
	w.Helper()
	u, err := w.A.Usage(w.ctx)
	if err != nil {
		w.Fatalf("usage: %v", err)
	}
	return u
}
