package apply_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/collections"
	"taskledger/collections/apply"
	"taskledger/events"
	"taskledger/item"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

func TestApply_TheSameFileTwiceChangesNothingAndSaysSo(t *testing.T) {
	c := newCluster()
	p := newProcess(c)
	f := file(t, "{name: a}", "{name: b, timeout: 1s}")
	for _, want := range []string{
		"2 added, 0 changed, 0 removed, 0 same, recorded true",
		"0 added, 0 changed, 0 removed, 2 same, recorded false",
	} {
		done, err := p.apply(t.Context(), f)
		if got := summary(done); err != nil || got != want {
			t.Fatalf("%s, %v; want %s", got, err, want)
		}
	}
	wantState(t, c, &f, nil)
	if c.changes != 2 {
		t.Errorf("%d changes", c.changes)
	}
	if got := c.reasons["s_a"]; got != "file "+f.Hash[:16]+" sync.yaml, by sync apply" {
		t.Errorf("reason %q", got)
	}
}

// A part of such a file would be applied each time, and the rest never.
func TestCompare_RefusesMoreCollectionsThanAShardHolds(t *testing.T) {
	c := newCluster()
	p := newProcess(c)
	numbered := func(n int) apply.File {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("{name: c%05d}", i)
		}
		return file(t, list...)
	}
	large, fits := numbered(events.MaxSchedules+1), numbered(events.MaxSchedules)
	asked := func(shards int, f apply.File) error {
		a := p.applier()
		a.Shards = func(context.Context) (int, error) { return shards, nil }
		_, err := a.Compare(t.Context(), f)
		return err
	}
	const want = "s_c05000: shard 0 would get 5001 collections, and holds 5000 schedules at most"
	refused, is := errors.AsType[*apply.RefusedError](asked(1, large))
	if !is || !slices.Equal(refused.Problems, []string{want}) || p.commands > 0 || len(c.state()) > 0 {
		t.Errorf("%+v, %d commands; want %q alone", refused, p.commands, want)
	}
	if err := errors.Join(asked(2, large), asked(1, fits)); err != nil {
		t.Error(err)
	}
}

// What is added may need the room of what is removed.
func TestApply_RemovesBeforeItAdds(t *testing.T) {
	p := newProcess(newCluster())
	const removed = 20 // more than are under way at once
	var was, is []string
	for i := range removed {
		was, is = append(was, fmt.Sprintf("{name: z%02d}", i)), append(is, fmt.Sprintf("{name: a%02d}", i))
	}
	if _, err := p.apply(t.Context(), file(t, was...)); err != nil {
		t.Fatal(err)
	}
	began := p.commands
	p.after = func(command int) error {
		if command >= began+removed/2 {
			return errDied
		}
		return nil
	}
	if _, err := p.apply(t.Context(), file(t, is...)); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	added := 0
	for name := range p.of.state() {
		if strings.HasPrefix(name, "s_a") {
			added++
		}
	}
	if added > 0 {
		t.Errorf("%d were added before all were removed", added)
	}
}

func TestApply_WhatIsNotInTheFileIsRemovedAndOtherSchedulesStay(t *testing.T) {
	c := newCluster()
	c.put("nightly", schedule.Definition{Behavior: "noop", Cron: "@daily"})
	c.put("odd", schedule.Definition{Behavior: collections.Behavior, Params: []byte(`{"source":"s"}`), UUIDs: true})
	others := c.state()
	p := newProcess(c)
	was := file(t, "{name: a}", "{name: b}", "{name: c}", "{name: d}")
	if _, err := p.apply(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	f := file(t, "{name: a}", "{name: c, timeout: 1s}", "{name: e}")
	compared, err := p.applier().Compare(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if w := compared.Warnings; len(w) != 1 || !strings.HasPrefix(w[0], "schedule odd is of no collection") {
		t.Errorf("warnings %q", w)
	}
	done, err := p.applier().Apply(t.Context(), compared)
	const want = "s_a same, s_b removed, s_c changed, s_d removed, s_e added, "
	got := ""
	for _, change := range done.Changes {
		got += fmt.Sprintf("%s %s, ", change.ID, change.What)
	}
	if err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	wantState(t, c, &f, others)
}

func TestCompare_RefusesTheIDsOfOthersAndChangesNothing(t *testing.T) {
	c := newCluster()
	other := read(t, "sources: {a_b: {driver: noop, collections: [{name: c}]}}")
	c.put("a_b_c", other.Collections[0].Definition())
	c.put("s_a", schedule.Definition{Behavior: "noop"})
	c.put("s_b", schedule.Definition{Behavior: collections.Behavior, Params: []byte(`{}`), UUIDs: true})
	named := file(t, "{name: c}").Collections[0].Definition()
	named.UUIDs = false
	c.put("s_c", named)
	was := c.state()
	f := read(t, "sources: {a: {driver: noop, collections: [{name: b_c}]}, "+
		"s: {driver: noop, collections: [{name: a}, {name: b}, {name: c}, {name: d}]}}")
	_, err := newProcess(c).apply(t.Context(), f)
	refused, is := errors.AsType[*apply.RefusedError](err)
	if !is || len(refused.Problems) != 4 {
		t.Fatalf("error %v", err)
	}
	for i, want := range []string{
		`a_b_c: the cluster has a collection of this id, "c" of source "a_b"`,
		"s_a: there is a schedule of this name, of behavior noop",
		"s_b: there is a schedule of this name, and its definition is none",
		"s_c: there is a schedule of this name, and its definition is none",
	} {
		if !strings.HasPrefix(refused.Problems[i], want) {
			t.Errorf("%s, want %s", refused.Problems[i], want)
		}
	}
	if _, n := c.recorded(t); !maps.Equal(c.state(), was) || n != 0 {
		t.Errorf("the cluster has %v, and %d files are recorded", c.state(), n)
	}
}

// Whoever lost the answer to a command sends it again, and tells what it did as its own.
func TestApply_LostAnswersAreAskedForAgain(t *testing.T) {
	for lost := range 4 {
		c := newCluster()
		p := newProcess(c)
		if _, err := p.apply(t.Context(), file(t, "{name: a}", "{name: b}")); err != nil {
			t.Fatal(err)
		}
		before := p.commands
		p.after = func(command int) error {
			if command == before+1+lost {
				return task.ErrUnknown
			}
			return nil
		}
		f := file(t, "{name: b, timeout: 1s}", "{name: c}")
		done, err := p.apply(t.Context(), f)
		const want = "1 added, 1 changed, 1 removed, 0 same, recorded true"
		if got := summary(done); err != nil || got != want || p.commands != before+5 {
			t.Errorf("command %d: %s, %v, %d commands", lost, got, err, p.commands-before)
		}
		wantState(t, c, &f, nil)
		if _, n := c.recorded(t); n != 2 {
			t.Errorf("command %d: %d files are recorded", lost, n)
		}
	}
}

func TestApply_ACommandThatIsNotAnsweredIsRepeatedUntilTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := newProcess(newCluster())
	a := p.applier()
	pauses := 0
	a.Pause = func(context.Context, time.Duration) {
		if pauses++; pauses == 20 {
			cancel()
		}
	}
	f := file(t, "{name: a}")
	compared, err := a.Compare(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	p.before = func(int) error { return store.ErrUnavailable }
	done, err := a.Apply(ctx, compared)
	if !errors.Is(err, store.ErrUnavailable) || len(done.Changes) != 0 || pauses != 20 {
		t.Errorf("%+v, %v after %d pauses", done, err, pauses)
	}
}

// All of several that apply one file at the same time succeed: each collection is changed once, and the file is
// recorded once.
func TestApply_ManyAtOnceApplyAFileOnce(t *testing.T) {
	c := newCluster()
	if _, err := newProcess(c).apply(t.Context(), file(t, "{name: a}", "{name: b}", "{name: c}")); err != nil {
		t.Fatal(err)
	}
	c.changes = 0
	f := file(t, "{name: b, timeout: 1s}", "{name: c}", "{name: d}", "{name: e}")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := newProcess(c).apply(t.Context(), f); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	wantState(t, c, &f, nil)
	if _, n := c.recorded(t); c.changes != 4 || n != 2 {
		t.Errorf("%d changes, %d files are recorded", c.changes, n)
	}
}

// Of files that are applied at the same time the one that was recorded last is there, whole.
func TestApply_TheFileThatIsRecordedLastIsThere(t *testing.T) {
	for range 20 {
		c := newCluster()
		files := map[string]apply.File{}
		var all sync.WaitGroup
		for i := range 3 {
			var list []string
			for j := range 12 {
				if (j+i)%4 != 0 {
					list = append(list, fmt.Sprintf("{name: c%d, timeout: %ds}", j, j%(i+2)+1))
				}
			}
			f := file(t, list...)
			files[f.Hash] = f
			all.Go(func() {
				if _, err := newProcess(c).apply(t.Context(), f); err != nil && !errors.Is(err, schedule.ErrChanged) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		hash, _ := c.recorded(t)
		last := files[hash]
		if done, err := newProcess(c).apply(t.Context(), last); err != nil || done.Recorded {
			t.Fatalf("%s, %v", summary(done), err)
		}
		wantState(t, c, &last, nil)
	}
}

func TestRecord_KeepsTheLastHundredFiles(t *testing.T) {
	c := newCluster()
	p := newProcess(c)
	var all []apply.File
	for i := range apply.MaxApplied + 5 {
		f := read(t, fmt.Sprintf("sources: {} # %d", i))
		all = append(all, f)
		if done, err := p.apply(t.Context(), f); err != nil || !done.Recorded || len(done.Changes) != 0 {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	if hash, n := c.recorded(t); hash != all[len(all)-1].Hash || n != apply.MaxApplied {
		t.Errorf("%d files, the last one %s", n, hash)
	}
	a := p.applier()
	for i, there := range map[int]bool{4: false, 5: true, len(all) - 2: true} {
		s, err := a.Standing(t.Context(), &all[i])
		if err != nil || (s.Applied != nil) != there || s.IsNewest() || s.Newest.Hash != all[len(all)-1].Hash {
			t.Errorf("file %d: %+v, %v", i, s, err)
		}
		if there && (s.Applied.Hash != all[i].Hash || s.Applied.By != "tester" || s.Applied.At == 0) {
			t.Errorf("file %d was applied: %+v", i, s.Applied)
		}
	}
	if s, err := a.Standing(t.Context(), &all[len(all)-1]); err != nil || !s.IsNewest() {
		t.Errorf("the last file: %+v, %v", s, err)
	}
	// An older file is applied all the same, and is the newest then.
	if done, err := p.apply(t.Context(), all[50]); err != nil || !done.Recorded {
		t.Errorf("%+v, %v", done, err)
	}
	if s, err := a.Standing(t.Context(), &all[50]); err != nil || !s.IsNewest() {
		t.Errorf("%+v, %v", s, err)
	}
}

// What others have written into the record, or removed from it, hinders nobody.
func TestRecord_OutlivesWhatOthersDoToIt(t *testing.T) {
	c := newCluster()
	p := newProcess(c)
	one, two, three := file(t, "{name: a}"), file(t, "{name: b}"), file(t, "{name: c}")
	if _, err := p.apply(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	junk := &item.Update{Client: 7, Adds: []item.Add{
		{Group: apply.Group, Data: []byte("{")}, {Group: apply.Group, Data: []byte("{}")},
	}}
	made, err := c.stores.Update(t.Context(), apply.Store, junk)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.applier().Standing(t.Context(), &one); err != nil || !s.IsNewest() {
		t.Errorf("%+v, %v", s, err)
	}
	if done, err := p.apply(t.Context(), two); err != nil || !done.Recorded {
		t.Errorf("%+v, %v", done, err)
	}
	// Without its item the key of the last file is still remembered.
	gone := &item.Update{Client: 7, Deletes: []int64{made[1].ID + 1}}
	if _, err := c.stores.Update(t.Context(), apply.Store, gone); err != nil {
		t.Fatal(err)
	}
	if done, err := p.apply(t.Context(), three); err != nil || !done.Recorded {
		t.Errorf("%+v, %v", done, err)
	}
	if s, err := p.applier().Standing(t.Context(), &three); err != nil || !s.IsNewest() {
		t.Errorf("%+v, %v", s, err)
	}
	wantState(t, c, &three, nil)
}

// A file that is applied in the midst of another, between any two of its calls, leaves nothing behind: that other one
// ends after it.
func TestApply_AFileInTheMidstOfAnotherLeavesNothing(t *testing.T) {
	files := []apply.File{
		file(t), file(t, "{name: a}", "{name: b}", "{name: c}"), file(t, "{name: b, timeout: 1s}", "{name: d}"),
	}
	for i := range len(files) * len(files) * len(files) {
		first, outer, inner := files[i%3], files[i/3%3], files[i/9]
		for at, last := 1, 1; at <= last; at++ {
			c := newCluster()
			if _, err := newProcess(c).apply(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			p := newProcess(c)
			p.before = func(call int) error {
				if call != at {
					return nil
				}
				_, err := newProcess(c).apply(t.Context(), inner)
				return err
			}
			if _, err := p.apply(t.Context(), outer); err != nil {
				t.Fatalf("case %d, call %d: %v", i, at, err)
			}
			wantState(t, c, &outer, nil)
			if hash, _ := c.recorded(t); hash != outer.Hash {
				t.Fatalf("case %d, call %d: %s is recorded last", i, at, hash)
			}
			last = p.calls
		}
	}
}

// What has changed since it was compared is compared anew: nothing is done where somebody else has done it.
func TestApply_DoesNotCountWhatSomebodyElseHasDone(t *testing.T) {
	c := newCluster()
	p := newProcess(c)
	if _, err := p.apply(t.Context(), file(t, "{name: a}", "{name: b}", "{name: c}")); err != nil {
		t.Fatal(err)
	}
	f := file(t, "{name: a, timeout: 1s}", "{name: c, timeout: 1s}", "{name: d}", "{name: e}")
	a := p.applier()
	compared, err := a.Compare(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	c.put("s_a", f.Collections[0].Definition())
	c.put("s_c", file(t, "{name: c, timeout: 9s}").Collections[0].Definition())
	c.put("s_d", f.Collections[2].Definition())
	delete(c.schedules, "s_b")
	done, err := a.Apply(t.Context(), compared)
	const want = "1 added, 1 changed, 0 removed, 2 same, recorded true"
	if got := summary(done); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for _, change := range done.Changes {
		if change.ID == "s_c" && (len(change.Fields) != 1 || change.Fields[0].Was != "9s") {
			t.Errorf("%+v", change)
		}
	}
	wantState(t, c, &f, nil)
}

// The name of a file stands in the history of schedules and in the record, whatever bytes it has.
func TestRead_NamesAFileAsAHistoryTakesIt(t *testing.T) {
	for path, want := range map[string]string{
		"/etc/taskledger/sync.yaml":    "sync.yaml",
		"-":                            "-",
		"a/\xffb":                      "?b",
		strings.Repeat("ä", 100):       strings.Repeat("ä", 64),
		"/" + strings.Repeat("a", 300): strings.Repeat("a", 128),
	} {
		f, _, err := apply.Read(path, []byte("sources: {}"))
		if err != nil || f.Name != want || len(f.Hash) != 64 {
			t.Errorf("%q: %+v, %v, want %q", path, f, err, want)
		}
	}
}
