package ledger_test

import (
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"taskledger/events"
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
	if err := p.node.Operations().Delete(testcluster.Within(t), id); err != nil {
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
	if got, err := kindsOf(p.reader(nil).Ledger().History(testcluster.Within(t), id)); got != "" || !errors.Is(err, store.ErrTrimmed) || errors.Is(err, task.ErrNotFound) {
		t.Errorf("without the archive: %s, %v", got, err)
	}
	if got, err := kindsOf(p.reader(nil).Ledger().History(testcluster.Within(t), id+"/2")); got != "Succeeded" || !errors.Is(err, store.ErrTrimmed) {
		t.Errorf("of what is left: %s, %v; want the last event and ErrTrimmed", got, err)
	}
	if got, err := kindsOf(p.reader(p.archive).Ledger().History(testcluster.Within(t), "nobody")); got != "" || !errors.Is(err, task.ErrNotFound) {
		t.Errorf("of no task: %s, %v", got, err)
	}
}

// Where the first entries are gone, nobody can say that a task never was.
func TestHistory_DoesNotDenyWhatItNoLongerReaches(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	id := p.spread(2)[0]
	shard := id.Shard(pastShards)
	p.spread(4)
	nobody := events.TaskID(testcluster.IDIn(shard, pastShards) + "/nobody")
	last := p.Records(shard)
	p.Replace(shard, last[len(last)-1:])
	setArchive(p.archive, shard, nil) // the stream has lost what it held
	for name, archive := range map[string]store.ArchiveReader{"an archive that lost it": p.archive, "no archive": nil} {
		l := p.unserved(archive).Ledger()
		for what, ask := range map[string]func(id events.TaskID) error{
			"history": func(id events.TaskID) error { _, err := kindsOf(l.History(testcluster.Within(t), id)); return err },
			"state":   func(id events.TaskID) error { _, err := l.StateAt(testcluster.Within(t), id, time.Time{}); return err },
			"page": func(id events.TaskID) error {
				_, err := l.HistoryPage(testcluster.Within(t), id, ledger.HistoryOptions{})
				return err
			},
			"export": func(id events.TaskID) error { return l.ExportTask(testcluster.Within(t), id, io.Discard, nil) },
		} {
			for _, id := range []events.TaskID{id, nobody} {
				t.Run(name+", "+what+" of "+string(id), func(t *testing.T) {
					t.Parallel() // each waits for owners, of which there are none
					if err := ask(id); !errors.Is(err, store.ErrTrimmed) || errors.Is(err, task.ErrNotFound) {
						t.Error(err)
					}
				})
			}
		}
	}
}
