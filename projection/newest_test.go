package projection_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// listed returns the tasks that Newest yields, and how many stretches it yields.
func listed(s *projection.Shard, of projection.Sought) (all []*projection.Task, stretches int) {
	for stretch := range s.Newest(of) {
		stretches++
		for _, t := range slices.Backward(stretch.Tasks) {
			if t != nil {
				all = append(all, t)
			}
		}
	}
	return all, stretches
}

// wantNewest checks what the shard says of its tasks in the order of their creation against the tasks themselves.
func wantNewest(t tb, s *projection.Shard) {
	t.Helper()
	want := slices.SortedFunc(s.Tasks(), func(a, b *projection.Task) int { return cmp.Compare(b.Created, a.Created) })
	got, _ := listed(s, projection.Sought{})
	if !slices.Equal(got, want) {
		t.Fatalf("the shard lists %d tasks, want the %d that it has, newest first", len(got), len(want))
	}
	tallies, total := map[string]projection.Tally{}, projection.Tally{}
	for _, task := range want {
		of, sub := tallies[task.Kind.Behavior], s.Substatus(task)
		of[task.Status][sub]++
		total[task.Status][sub]++
		tallies[task.Kind.Behavior] = of
		for name, sought := range map[string]projection.Sought{"status": {Status: task.Status}, "substatus": {Substatus: sub}, "behavior": {Behavior: task.Kind.Behavior},
			"creator": {Creator: task.Kind.Creator}, "time": {Until: task.CreatedAt}, "event": {Before: task.Created + 1}} {
			if found, _ := listed(s, sought); !slices.Contains(found, task) {
				t.Fatalf("%s is not found by its %s", task.ID, name)
			}
		}
	}
	got2 := map[string]projection.Tally{}
	for behavior, of := range s.Tallies() {
		if *of != (projection.Tally{}) {
			got2[behavior] = *of
		}
	}
	if s.Tally() != total || !maps.Equal(got2, tallies) {
		t.Fatalf("tallies %v of %v, want %v of %v", got2, s.Tally(), tallies, total)
	}
}

func TestNewest_ListsEveryTaskByItsCreationAndCountsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(t)
		for range rapid.IntRange(1, 30).Draw(t, "entries") {
			stepEntry(t, j, func() {})
			wantNewest(t, j.state)
			j.state.MakeDue(j.now)
			wantNewest(t, j.state)
		}
		wantNewest(t, replay(t, j.entries))
		wantNewest(t, restore(t, write(j.state)))
	})
}

// Tasks that come and go in any order leave no trace, also where many stretches of them are poured together.
func TestNewest_HoldsWhatManyThatCameAndWentHaveLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(t)
		var there []events.TaskID
		for n := range rapid.IntRange(1, 6).Draw(t, "rounds") {
			for i := range rapid.IntRange(0, 300).Draw(t, "created") {
				id := events.TaskID(fmt.Sprintf("t-%d-%d", n, i))
				j.add(id, &events.Created{Behavior: rapid.SampledFrom([]string{"work", "purge"}).Draw(t, "behavior"), Policy: policy(t, events.Policy{}), NotBefore: j.now})
				there = append(there, id)
			}
			leave := rapid.Float64Range(0, 1).Draw(t, "share that leaves")
			chosen := rapid.Uint64().Draw(t, "chosen")
			j.seal(time.Second)
			var stay []events.TaskID
			for _, id := range there {
				chosen = chosen*6364136223846793005 + 1442695040888963407
				if float64(chosen>>33)/float64(1<<31) < leave {
					j.add(id, &events.Deleted{})
				} else {
					stay = append(stay, id)
				}
			}
			there = stay
			j.seal(time.Second)
			wantNewest(t, j.state)
			if _, stretches := listed(j.state, projection.Sought{}); stretches > 2+len(there)/16 {
				t.Fatalf("%d stretches for %d tasks", stretches, len(there))
			}
		}
		wantNewest(t, restore(t, write(j.state)))
	})
}

// The sums of stretches that were poured together are those of their tasks, until the last one leaves.
func TestNewest_SumsUpStretchesThatArePouredTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := delayed(t, 150)
		all := slices.SortedFunc(j.state.Tasks(), func(a, b *projection.Task) int { return cmp.Compare(a.ID, b.ID) })
		for gone, got := range rapid.Permutation(all).Draw(t, "order") {
			j.add(got.ID, &events.Deleted{})
			j.seal(time.Second)
			if found, _ := listed(j.state, projection.Sought{Status: task.Created}); len(found) != len(all)-gone-1 {
				t.Fatalf("%d tasks are found by their status, want %d", len(found), len(all)-gone-1)
			}
		}
	})
}

// What nobody is is passed over without a look at the tasks.
func TestNewest_PassesOverStretchesInWhichNothingCanMatch(t *testing.T) {
	j := delayed(t, 10_000)
	id := events.TaskID("rare")
	j.add(id, &events.Created{Behavior: "rare", Policy: policy(t, events.Policy{}), NotBefore: j.now})
	j.seal(time.Second)
	for i := range 1000 {
		j.add(events.TaskID(fmt.Sprint("later-", i)), &events.Created{Behavior: "work", Policy: policy(t, events.Policy{}), NotBefore: j.now.Add(time.Hour)})
	}
	j.seal(0)
	j.add(id, &events.Suspended{})
	j.seal(0)
	for name, of := range map[string]projection.Sought{"behavior": {Behavior: "rare"}, "substatus": {Substatus: task.SubSuspended}} {
		if found, _ := listed(j.state, of); len(found) > 64 || !slices.ContainsFunc(found, func(t *projection.Task) bool { return t.ID == id }) {
			t.Errorf("%d tasks are left to look at for a %s that one has", len(found), name)
		}
	}
	if found, _ := listed(j.state, projection.Sought{Status: task.Success}); len(found) > 0 {
		t.Errorf("%d tasks are left to look at for a status that none has", len(found))
	}
}
