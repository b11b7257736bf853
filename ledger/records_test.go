package ledger_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
)

// Events of records that are no tasks stand between those of tasks, and have neither a behavior nor a status.
func TestReplay_SelectsByRecord(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	ids := p.spread(2)
	if err := p.node.Operations().Pause(testcluster.Within(t), "other", "a migration"); err != nil {
		t.Fatal(err)
	}
	p.spread(2)
	if err := p.node.Operations().Unpause(testcluster.Within(t), "other"); err != nil {
		t.Fatal(err)
	}
	all := replayed(t, p.node.Client, ledger.ReplayOptions{})
	for _, row := range []struct {
		what    string
		options ledger.ReplayOptions
		events  int
		is      func(ev ledger.Event) bool
	}{
		{"nothing", ledger.ReplayOptions{}, 14, func(ledger.Event) bool { return true }},
		{"settings", ledger.ReplayOptions{Records: []events.Record{events.OfSettings}}, 2, func(ev ledger.Event) bool { return ev.Task == "" }},
		{"journal", ledger.ReplayOptions{Records: []events.Record{events.OfJournal}}, 0, nil},
		{"kinds of settings", ledger.ReplayOptions{Kinds: []events.Kind{events.KindPaused, events.KindUnpaused}}, 2, func(ev ledger.Event) bool { return ev.Task == "" }},
		{"kinds", ledger.ReplayOptions{Kinds: []events.Kind{events.KindPaused, events.KindStarted}}, 5, func(ev ledger.Event) bool {
			return ev.Kind() == events.KindPaused || ev.Kind() == events.KindStarted
		}},
		{"a kind of another record", ledger.ReplayOptions{Kinds: []events.Kind{events.KindPaused}, Records: []events.Record{events.OfTask}}, 0, nil},
		{"tasks", ledger.ReplayOptions{Records: []events.Record{events.OfTask}}, 12, func(ev ledger.Event) bool { return ev.Task != "" }},
		{"a task", ledger.ReplayOptions{Task: ids[0]}, 3, func(ev ledger.Event) bool { return ev.Task == ids[0] }},
		{"a behavior", ledger.ReplayOptions{Behavior: "job"}, 12, func(ev ledger.Event) bool { return ev.Task != "" }},
		{"a status", ledger.ReplayOptions{Status: task.Running}, 4, func(ev ledger.Event) bool { return ev.Kind() == events.KindStarted }},
		{"a behavior of a record", ledger.ReplayOptions{Behavior: "job", Records: []events.Record{events.OfSettings}}, 0, nil},
	} {
		got := replayed(t, p.node.Client, row.options)
		want := slices.DeleteFunc(slices.Clone(all), func(ev ledger.Event) bool { return row.is == nil || !row.is(ev) })
		same := func(a, b ledger.Event) bool { return a.Position == b.Position }
		if len(got) != row.events || !slices.EqualFunc(got, want, same) {
			t.Errorf("by %s: %d events, want %d of %d", row.what, len(got), row.events, len(want))
		}
	}
}

// followed appends an entry with events of the journal's own record to the journal of shard 1.
func (p *past) followed(all []store.Record, bodies func(last *events.Entry) []events.Body) []store.Record {
	p.t.Helper()
	last := testcluster.Decoded(p.t, all[len(all)-1].Data)
	e := &events.Entry{Shard: last.Shard, Number: last.Number + 1, Epoch: last.Epoch, Owner: last.Owner, Time: last.Time, Prev: last.Hash}
	var prev events.Ref
	for i, body := range bodies(last) {
		e.Events = append(e.Events, events.Event{Seq: uint64(i + 1), Prev: prev, Body: body})
		prev = events.RefOf(e.Number, i)
	}
	next := store.Record{Data: testcluster.Sealed(p.t, e)}
	next.Number = e.Number
	return append(slices.Clip(all), next)
}

// What was given up or lost is no damage, and is said; in what is exported, too.
func TestVerify_SaysWhatWasGivenUpAndLost(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(8)
	all := p.Records(1)
	p.node.Kill()
	p.Replace(1, p.followed(all, func(last *events.Entry) []events.Body {
		return []events.Body{&events.AcceptedLoss{Entry: last.Number + 1, Sound: last.Hash, Reason: "torn"}, &events.Recovered{Entry: last.Number, Sound: last.Hash}}
	}))
	want := []string{fmt.Sprintf("entry %d was given up", len(all)+1), fmt.Sprintf("the entries after %d were lost", len(all))}
	c := p.unserved(nil)
	wantLosses := func(v ledger.Verification) {
		t.Helper()
		if v.Damage != "" || len(v.Losses) != len(want) {
			t.Fatalf("%+v, want %d losses and no damage", v, len(want))
		}
		for i, l := range v.Losses {
			if !strings.HasPrefix(l.String(), want[i]) {
				t.Errorf("loss %d is %q, want %q", i, l, want[i])
			}
		}
	}
	found := verified(t, c, ledger.VerifyOptions{})
	wantLosses(found[1])
	if len(found[0].Losses) != 0 {
		t.Errorf("the other shard has lost %v", found[0].Losses)
	}
	var whole bytes.Buffer
	if err := c.Ledger().ExportShard(testcluster.Within(t), 1, &whole, nil); err != nil {
		t.Fatal(err)
	}
	v, err := ledger.VerifyExport(strings.NewReader(whole.String()))
	if err != nil {
		t.Fatal(err)
	}
	wantLosses(v.Verification)
	if v, err = ledger.VerifyExport(strings.NewReader(withoutTheFirst(t, whole.String(), all[0]))); err != nil || v.From != 2 {
		t.Fatalf("from entry 2 on: %+v, %v", v, err)
	}
	wantLosses(v.Verification)

	p.Replace(1, p.followed(all, func(last *events.Entry) []events.Body {
		return []events.Body{&events.AcceptedLoss{Entry: last.Number + 2}}
	}))
	wantDamage(t, verified(t, c, ledger.VerifyOptions{})[1], ledger.DamageTransition, uint64(len(all)+1))
}

// withoutTheFirst is an export without its first entry.
func withoutTheFirst(t *testing.T, export string, first store.Record) string {
	t.Helper()
	lines := strings.SplitAfter(export, "\n")
	header := strings.Replace(lines[0], fmt.Sprintf(`"from":1,"prev":"%s"`, events.Hash{}), fmt.Sprintf(`"from":2,"prev":"%s"`, testcluster.Decoded(t, first.Data).Hash), 1)
	if header == lines[0] {
		t.Fatalf("the export begins with %s", header)
	}
	return header + strings.Join(lines[2:], "")
}

// Whoever can write a journal must not be able to blame losses for what is there.
func TestVerify_FindsLossesThatTheEntriesContradict(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(8)
	all := p.Records(1)
	p.node.Kill()
	c := p.unserved(nil)
	for what, body := range map[string]func(last *events.Entry) events.Body{
		"an entry that is sound is given up": func(last *events.Entry) events.Body {
			return &events.AcceptedLoss{Entry: last.Number, Sound: last.Prev}
		},
		"another hash before what was given up": func(last *events.Entry) events.Body {
			return &events.AcceptedLoss{Entry: last.Number + 1, Sound: last.Prev}
		},
		"another hash of the last that was left": func(last *events.Entry) events.Body {
			return &events.Recovered{Entry: last.Number, Sound: last.Prev}
		},
		"another hash of an earlier one": func(last *events.Entry) events.Body {
			return &events.Recovered{Entry: last.Number - 1, Sound: last.Hash}
		},
	} {
		p.Replace(1, p.followed(all, func(last *events.Entry) []events.Body { return []events.Body{body(last)} }))
		found := []ledger.Verification{verified(t, c, ledger.VerifyOptions{})[1]}
		var whole bytes.Buffer
		if err := c.Ledger().ExportShard(testcluster.Within(t), 1, &whole, nil); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{whole.String(), withoutTheFirst(t, whole.String(), all[0])} {
			v, err := ledger.VerifyExport(strings.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, v.Verification)
		}
		for _, v := range found {
			if v.Damage != ledger.DamageLoss || v.At != uint64(len(all)+1) {
				t.Errorf("%s: found %q at entry %d: %s", what, v.Damage, v.At, v.Problem)
			}
		}
	}
}
