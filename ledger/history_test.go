package ledger_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
)

func kindsOf(seq iter.Seq2[ledger.Event, error]) (string, error) {
	var kinds []string
	for ev, err := range seq {
		if err != nil {
			return strings.Join(kinds, " "), err
		}
		kinds = append(kinds, ev.Kind().String())
	}
	return strings.Join(kinds, " "), nil
}

func TestHistory_OfADeletedTaskComesFromJournalAndArchive(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	id := testcluster.IDIn(0, pastShards)
	p.do(id)
	if err := p.node.Delete(testcluster.Within(t), id); err != nil {
		t.Fatal(err)
	}
	const whole = "Created Started Succeeded Deleted"
	if got, err := kindsOf(p.node.Ledger().History(testcluster.Within(t), id)); got != whole || err != nil {
		t.Errorf("by the node: %s, %v", got, err)
	}
	p.do(id + "/2")
	if got, err := kindsOf(p.reader(nil).Ledger().History(testcluster.Within(t), id)); got != whole || err != nil {
		t.Errorf("by another client: %s, %v", got, err)
	}
	p.keep(0)
	if got, err := kindsOf(p.reader(p.archive).Ledger().History(testcluster.Within(t), id)); got != whole || err != nil {
		t.Errorf("from the archive: %s, %v", got, err)
	}
	if got, err := kindsOf(p.reader(nil).Ledger().History(testcluster.Within(t), id)); got != "" || !errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), "dropped") {
		t.Errorf("without the archive: %s, %v", got, err)
	}
	if got, err := kindsOf(p.reader(nil).Ledger().History(testcluster.Within(t), id+"/2")); got != "Succeeded" || !errors.Is(err, store.ErrTrimmed) {
		t.Errorf("of what is left: %s, %v; want the last event and ErrTrimmed", got, err)
	}
	if got, err := kindsOf(p.reader(p.archive).Ledger().History(testcluster.Within(t), "nobody")); got != "" || !errors.Is(err, task.ErrNotFound) {
		t.Errorf("of no task: %s, %v", got, err)
	}
}
