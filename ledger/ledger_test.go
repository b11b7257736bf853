package ledger_test

import (
	"errors"
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/store"
)

func TestNew_OverTheJournalAlone(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	id := testcluster.IDIn(1, pastShards)
	p.do(id)
	l := ledger.New(ledger.Config{Cluster: p.Store.Cluster(), Journal: p.Store})
	ctx := testcluster.Within(t)
	if got, err := kindsOf(l.History(ctx, id)); got != "Created Started Succeeded" || err != nil {
		t.Errorf("History = %s, %v", got, err)
	}
	all, err := l.Verify(ctx, ledger.VerifyOptions{})
	if err != nil || len(all) != pastShards || all[1].Damage != "" || all[1].Entries == 0 {
		t.Errorf("Verify = %+v, %v", all, err)
	}
	_, notKept := l.Checkpoint(ctx)
	_, notReplayed := kindsOf(l.Replay(ctx, ledger.ReplayOptions{}))
	var notFollowed error
	for _, notFollowed = range l.Follow(ctx, nil) {
	}
	for what, err := range map[string]error{"Checkpoint": notKept, "Replay": notReplayed, "Follow": notFollowed} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
