package storetest

import (
	"context"
	"errors"
	"reflect"
	"time"

	"taskledger/store"
)

var sessions = map[string]func(*world){
	"Join/ShowsTheNodeToEverybody": func(w *world) {
		info := store.NodeInfo{Name: "n1", Version: "v1", Behaviors: []string{"purge", "reindex"},
			Types: "abc", Slots: -1, Limits: map[string]int{"purge": 0}, Owner: true, Draining: true, Joined: 1_700_000_000_123, Load: []byte{0, 1},
			Reads: store.Reads{Kind: 200, Entry: 300, Snapshot: 400, Rules: 500}}
		session, err := w.A.Join(w.ctx, info, time.Minute)
		if err != nil {
			w.Fatal(err)
		}
		m, err := w.B.ReadMembers(w.ctx)
		if err != nil {
			w.Fatal(err)
		}
		if store.NodeName(session.ID) != info.Name || !store.IsSessionID(session.ID) {
			w.Errorf("session %q of node %q does not tell its name", session.ID, info.Name)
		}
		info.ID, info.Revision, info.Modified = session.ID, session.Revision, session.Revision
		if got := m.Nodes[session.ID]; !reflect.DeepEqual(got, info) {
			w.Errorf("node is %+v, want %+v", got, info)
		}
		if m.Revision < session.Revision {
			w.Errorf("read at revision %d, before the join at %d", m.Revision, session.Revision)
		}
	},
	"Join/IdsAreNeverTheSame": func(w *world) {
		one := w.join(w.A)
		w.leave(w.A, one)
		if two := w.join(w.A); two.ID == one.ID || two.Revision <= one.Revision {
			w.Errorf("second session %+v after %+v", two, one)
		}
	},
	"Join/OfWhoReadsLessThanIsWrittenIsRefused": func(w *world) {
		w.raise(w.A, store.Reads{Kind: 50, Entry: 30, Snapshot: 20, Rules: 10})
		for _, reads := range []store.Reads{{}, {Kind: 49, Entry: 90, Snapshot: 90, Rules: 90}, {Kind: 99, Entry: 29, Snapshot: 90, Rules: 90},
			{Kind: 99, Entry: 90, Snapshot: 19, Rules: 90}, {Kind: 99, Entry: 90, Snapshot: 90, Rules: 9}} {
			if _, err := w.B.Join(w.ctx, store.NodeInfo{Name: "old", Reads: reads}, time.Minute); !errors.Is(err, store.ErrOutdated) {
				w.Errorf("join of who reads %+v: %v, want %v", reads, err, store.ErrOutdated)
			}
		}
		if n := len(w.members().Nodes); n != 0 {
			w.Errorf("%d nodes are there", n)
		}
		if _, err := w.B.Join(w.ctx, store.NodeInfo{Name: "new", Reads: store.Reads{Kind: 50, Entry: 30, Snapshot: 20, Rules: 10}}, time.Minute); err != nil {
			w.Error(err)
		}
	},
	"Raise/NoNumberEverFalls": func(w *world) {
		want, highest := store.Reads{Kind: 50, Entry: 30, Snapshot: 70, Rules: 40}, store.Reads{}
		for _, need := range []store.Reads{{Kind: 50, Entry: 20, Snapshot: 10, Rules: 40}, {Kind: 40, Entry: 30, Snapshot: 10}, {Kind: 1, Entry: 1, Snapshot: 70}, {}, want} {
			w.raise(w.A, need)
			highest = highest.With(need)
			if got := w.members().Written; got.Lacks(highest) != "" {
				w.Errorf("written is %+v after %+v", got, need)
			}
		}
		if got := w.members().Written; got != want {
			w.Errorf("written is %+v, want %+v", got, want)
		}
	},
	"Raise/IsSeenByWhoeverWatches": func(w *world) {
		next := pull(w, w.B.WatchMembers(w.ctx))
		next()
		w.raise(w.A, store.Reads{Kind: 50})
		for next().Written.Kind != 50 {
		}
	},
	"Join/SessionLapsesWithoutRenewal": func(w *world) {
		session, err := w.A.Join(w.ctx, store.NodeInfo{Name: "short"}, time.Second)
		if err != nil {
			w.Fatal(err)
		}
		for m, err := range w.B.WatchMembers(w.ctx) {
			if err != nil {
				w.Fatal(err)
			}
			if _, ok := m.Nodes[session.ID]; !ok {
				break
			}
		}
		w.wantEnded(session)
	},
	"Renew/ExtendsALivingSession": func(w *world) {
		session := w.join(w.A)
		if err := w.A.Renew(w.ctx, session); err != nil {
			w.Error(err)
		}
	},
	"Leave/EndsTheSessionForEver": func(w *world) {
		session := w.join(w.A)
		w.leave(w.A, session)
		w.wantEnded(session)
		w.leave(w.A, session)
		if n := len(w.members().Nodes); n != 0 {
			w.Errorf("%d nodes are left", n)
		}
	},
	"Update/ChangesTheNodeAndNotTheSession": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		modified := o.Session.Revision
		for _, info := range []store.NodeInfo{{Name: "x", Draining: true}, {Name: "y"}, {Name: "y"}} {
			if err := w.A.Update(w.ctx, o.Session, func() store.NodeInfo { return info }); err != nil {
				w.Fatal(err)
			}
			got := w.members().Nodes[o.Session.ID]
			if got.Name != info.Name || got.Draining != info.Draining || got.Revision != o.Session.Revision {
				w.Errorf("node is %+v, want %+v at revision %d", got, info, o.Session.Revision)
			}
			if got.Modified <= modified {
				w.Errorf("node was modified at revision %d, after revision %d", got.Modified, modified)
			}
			modified = got.Modified
		}
		w.append(w.A, o, one, "two")
		w.leave(w.A, o.Session)
		if n := len(w.members().Nodes); n != 0 {
			w.Errorf("%d nodes are left: an updated key stays bound to its lease", n)
		}
	},
	"Update/AsksForTheValueAgainWhenTheNodeHasChanged": func(w *world) {
		session := w.join(w.A)
		update := func(info func() store.NodeInfo) {
			w.Helper()
			if err := w.A.Update(w.ctx, session, info); err != nil {
				w.Fatal(err)
			}
		}
		asked, draining := 0, false
		update(func() store.NodeInfo {
			info := store.NodeInfo{Name: "early", Draining: draining}
			if asked++; asked == 1 {
				draining = true
				update(func() store.NodeInfo { return store.NodeInfo{Name: "late", Draining: draining} })
			}
			return info
		})
		if got := w.members().Nodes[session.ID]; got.Name != "early" || !got.Draining || asked != 2 {
			w.Errorf("node is %+v, asked %d times; want early, draining, after two questions", got, asked)
		}
	},
	"WatchMembers/ShowsEveryChange": func(w *world) {
		next := pull(w, w.B.WatchMembers(w.ctx))
		until := func(what string, holds func(store.Membership) bool) store.Membership {
			w.Helper()
			for before := int64(0); ; {
				m := next()
				if m.Revision < before {
					w.Fatalf("revision %d after %d while waiting for %s", m.Revision, before, what)
				}
				if before = m.Revision; holds(m) {
					return m
				}
			}
		}
		first := until("the empty cluster", func(m store.Membership) bool { return len(m.Nodes)+len(m.Owners) == 0 })
		session := w.join(w.A)
		until("a join", func(m store.Membership) bool { return len(m.Nodes) == 1 })
		w.take(w.A, session, 0, store.Owner{})
		until("a take", func(m store.Membership) bool { return m.Owners[0].Node == session.ID })
		w.leave(w.A, session)
		last := until("a leave", func(m store.Membership) bool { return len(m.Nodes) == 0 })
		if last.Owners[0].Node != session.ID {
			w.Errorf("owners are %v: an owner key outlives its session", last.Owners)
		}
		if len(first.Owners) != 0 {
			w.Error("an earlier membership changed")
		}
	},
	"WatchMembers/EndsWithItsContext": func(w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		for _, err := range w.B.WatchMembers(ctx) {
			if err != nil {
				w.Fatal(err)
			}
			cancel()
		}
	},
}

func (w *world) raise(s store.Store, need store.Reads) {
	w.Helper()
	if err := s.Raise(w.ctx, need); err != nil {
		w.Fatal(err)
	}
}

// wantEnded asserts that nothing can be done with the session.
func (w *world) wantEnded(session store.Session) {
	w.Helper()
	if err := w.A.Renew(w.ctx, session); !errors.Is(err, store.ErrSessionEnded) {
		w.Errorf("renew: %v, want %v", err, store.ErrSessionEnded)
	}
	if err := w.A.Update(w.ctx, session, func() store.NodeInfo { return store.NodeInfo{} }); !errors.Is(err, store.ErrSessionEnded) {
		w.Errorf("update: %v, want %v", err, store.ErrSessionEnded)
	}
	if _, err := w.A.Take(w.ctx, session, 1, store.Owner{}); !errors.Is(err, store.ErrFenced) {
		w.Errorf("take: %v, want %v", err, store.ErrFenced)
	}
}
