package paging_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"taskledger/engine/internal/paging"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/task"
)

// shards is a cluster whose tasks are numbered; those match whose number is in matching.
type shards struct {
	t        *rapid.T
	mu       sync.Mutex
	tasks    [][]projection.Task // by shard, oldest first
	away     []bool
	matching map[events.TaskID]bool
	now      []events.Millis // by shard
	number   int
	looked   int
}

var errAway = errors.New("away")

// ask looks at tasks from a place on, sometimes at fewer than it may.
func (s *shards) ask(_ context.Context, shard int, from listing.Place, limit, scan int) (p listing.Part, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away[shard] {
		return p, errAway
	}
	p.Next = from
	most := min(scan, 2+(s.number*7+shard*13)%40)
	for _, task := range slices.Backward(s.tasks[shard]) {
		if from.Before != 0 && task.Created >= from.Before || from.Until != 0 && task.CreatedAt > from.Until {
			continue
		}
		if p.Looked == most || len(p.Tasks) == limit {
			return p, nil
		}
		p.Looked++
		s.looked++
		p.Next = listing.Place{Before: task.Created, Until: task.CreatedAt}
		if s.matching[task.ID] {
			p.Tasks = append(p.Tasks, task)
		}
	}
	p.Done = true
	return p, nil
}

// change creates tasks, and lets others go, or match no more.
func (s *shards) change(n int) (gone []events.TaskID) {
	for range n {
		shard := rapid.IntRange(0, len(s.tasks)-1).Draw(s.t, "shard")
		if have := s.tasks[shard]; len(have) > 0 && rapid.IntRange(0, 2).Draw(s.t, "change") == 0 {
			at := rapid.IntRange(0, len(have)-1).Draw(s.t, "task")
			id := have[at].ID
			gone = append(gone, id)
			if delete(s.matching, id); rapid.Bool().Draw(s.t, "leaves") {
				s.tasks[shard] = slices.Delete(have, at, at+1)
			}
			continue
		}
		s.number++
		s.now[shard] += events.Millis(rapid.IntRange(0, 3).Draw(s.t, "pause"))
		task := projection.Task{ID: events.TaskID(fmt.Sprint(s.number)), Created: events.RefOf(uint64(s.number), 0), CreatedAt: s.now[shard]}
		s.tasks[shard] = append(s.tasks[shard], task)
		if rapid.IntRange(0, 2).Draw(s.t, "matches") > 0 {
			s.matching[task.ID] = true
		}
	}
	return gone
}

func newShards(t *rapid.T) *shards {
	n := rapid.IntRange(1, 5).Draw(t, "shards")
	s := &shards{t: t, tasks: make([][]projection.Task, n), away: make([]bool, n), now: make([]events.Millis, n), matching: map[events.TaskID]bool{}}
	for i := range s.now {
		s.now[i] = 1000 + events.Millis(rapid.IntRange(0, 50).Draw(t, "clock"))
	}
	s.change(rapid.IntRange(0, 200).Draw(t, "tasks"))
	return s
}

// Whatever is created, changed and away between the pages of a list, it tells no task twice, and all that was there
// at the first page and matched to the end; in order, unless a shard was away.
func TestPage_TellsEachTaskOnceThatMatchesThroughout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShards(t)
		throughout, listed := map[events.TaskID]bool{}, map[events.TaskID]bool{}
		for id := range s.matching {
			throughout[id] = true
		}
		from := slices.Repeat([]listing.Key{listing.Newest}, len(s.tasks))
		last, wasAway := listing.Newest, false
		for pages := 0; from != nil; pages++ {
			for shard := range s.away {
				s.away[shard] = pages < 20 && rapid.IntRange(0, 5).Draw(t, "away") == 0
				wasAway = wasAway || s.away[shard]
			}
			limit := rapid.IntRange(1, 30).Draw(t, "limit")
			s.looked = 0
			p := paging.Page(t.Context(), from, limit, s.ask)
			if len(p.Tasks) > limit || s.looked > paging.Most {
				t.Fatalf("%d tasks of %d that were looked at", len(p.Tasks), s.looked)
			}
			for _, m := range p.Missing {
				if !s.away[m.Shard] || !errors.Is(m.Err, errAway) {
					t.Fatalf("shard %d is missing: %v", m.Shard, m.Err)
				}
			}
			if p.Through && len(p.Missing) == 0 != (p.Next == nil) {
				t.Fatalf("through, %d shards missing, and the list goes on at %v", len(p.Missing), p.Next)
			}
			for _, task := range p.Tasks {
				key := s.key(task)
				if listed[task.ID] || !wasAway && key.Compare(last) >= 0 {
					t.Fatalf("task %s comes twice, %t, or after %v", task.ID, listed[task.ID], last)
				}
				listed[task.ID], last = true, key
			}
			from = p.Next
			for _, id := range s.change(rapid.IntRange(0, 5).Draw(t, "changes")) {
				delete(throughout, id)
			}
			if pages > 2000 {
				t.Fatal("the list does not end")
			}
		}
		for id := range throughout {
			if !listed[id] {
				t.Fatalf("task %s was left out", id)
			}
		}
	})
}

func (s *shards) key(task projection.Task) listing.Key {
	for shard, tasks := range s.tasks {
		if slices.ContainsFunc(tasks, func(t projection.Task) bool { return t.ID == task.ID }) {
			return listing.KeyOf(&task, shard)
		}
	}
	s.t.Fatalf("task %s is nowhere", task.ID)
	return listing.Key{}
}

// A shard whose owner has no time for the list costs the page what it has there, and no more than that.
func TestPage_IsShortWhereItsTimeIsOver(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	asked := 0
	p := paging.Page(ctx, []listing.Key{listing.Newest}, 10, func(_ context.Context, _ int, from listing.Place, _, _ int) (listing.Part, error) {
		if asked++; asked == 3 {
			stop()
		}
		return listing.Part{Next: from}, nil
	})
	if asked != 3 || len(p.Tasks) != 0 || p.Through || !slices.Equal(p.Next, []listing.Key{listing.Newest}) {
		t.Errorf("asked %d times for %+v", asked, p)
	}
}

// What hardly any task matches is looked for in a bounded number of tasks.
func TestPage_LooksAtABoundedNumberOfTasks(t *testing.T) {
	const shards, each = 16, 10_000
	var mu sync.Mutex
	looked := 0
	p := paging.Page(t.Context(), slices.Repeat([]listing.Key{listing.Newest}, shards), 100, func(_ context.Context, _ int, from listing.Place, _, scan int) (listing.Part, error) {
		mu.Lock()
		defer mu.Unlock()
		left := int(from.Before)
		if left == 0 {
			left = each
		}
		scan = min(scan, 2000, left-1)
		looked += scan
		return listing.Part{Next: listing.Place{Before: events.Ref(left - scan), Until: events.Millis(left - scan)}, Looked: scan}, nil
	})
	if looked > paging.Most || looked < paging.Most-shards || len(p.Tasks) != 0 || p.Through || p.Next == nil {
		t.Errorf("looked at %d tasks for %+v", looked, p)
	}
}

// A page of large tasks is short, and goes on where it was full.
func TestPage_HasABoundedNumberOfBytes(t *testing.T) {
	const tasks, size = 60, 200 << 10
	all := make([]projection.Task, tasks)
	for i := range all {
		all[i] = projection.Task{ID: events.TaskID(fmt.Sprint("t-", i)), Created: events.Ref(tasks-i) << 20, CreatedAt: events.Millis(tasks - i), Params: make(events.Payload, size)}
	}
	ask := func(_ context.Context, _ int, from listing.Place, limit, _ int) (p listing.Part, err error) {
		for i := range all {
			if k := listing.KeyOf(&all[i], 0); len(p.Tasks) < limit && (from == listing.Place{} || k.Compare(from.Key(0)) < 0) {
				p.Tasks = append(p.Tasks, all[i])
			}
		}
		p.Done, p.Looked = len(p.Tasks) < limit, len(p.Tasks)
		if n := len(p.Tasks); n > 0 {
			k := listing.KeyOf(&p.Tasks[n-1], 0)
			p.Next = k.In(0)
		}
		return p, nil
	}
	var listed []events.TaskID
	for from := listing.Begin(task.Filter{}, 1).From; from != nil; {
		r := paging.Page(t.Context(), from, 1000, ask)
		bytes := 0
		for i := range r.Tasks {
			listed = append(listed, r.Tasks[i].ID)
			bytes += len(r.Tasks[i].Params)
		}
		if bytes > 4<<20+size || len(r.Tasks) == 0 && r.Next != nil {
			t.Fatalf("a page of %d tasks has %d bytes", len(r.Tasks), bytes)
		}
		from = r.Next
	}
	for i := range listed {
		if listed[i] != all[i].ID {
			t.Fatalf("%v", listed)
		}
	}
	if len(listed) != tasks {
		t.Errorf("%d tasks of %d", len(listed), tasks)
	}
}
