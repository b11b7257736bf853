package filelogs

import (
	"maps"
	"slices"
	"sort"

	"taskledger/events"
	"taskledger/tasklog"
)

// stored tells where a batch is, and what it reaches over.
type stored struct {
	in           *segment
	place        uint64
	at, next     int64 // offsets of its record
	first, last  uint64
	since, until events.Millis
}

// index knows the batches by shard, life and attempt.
type index map[uint16]map[events.Ref]map[uint32][]stored

// of returns the batches of an attempt, in order.
func (x index) of(a tasklog.Attempt) []stored { return x[a.Shard][a.Life][a.Number] }

// add notes a batch, and reports false where one of its place is there.
func (x index) add(a tasklog.Attempt, s stored) bool {
	if x[a.Shard] == nil {
		x[a.Shard] = map[events.Ref]map[uint32][]stored{}
	}
	lives := x[a.Shard]
	if lives[a.Life] == nil {
		lives[a.Life] = map[uint32][]stored{}
	}
	all := lives[a.Life][a.Number]
	if n := len(all); n > 0 && all[n-1].place >= s.place {
		return false
	}
	lives[a.Life][a.Number] = append(all, s)
	return true
}

// set replaces the batches of an attempt.
func (x index) set(a tasklog.Attempt, all []stored) {
	if len(all) > 0 {
		x[a.Shard][a.Life][a.Number] = all
		return
	}
	delete(x[a.Shard][a.Life], a.Number)
	if len(x[a.Shard][a.Life]) == 0 {
		delete(x[a.Shard], a.Life)
	}
}

// removes returns the attempts that a removal concerns.
func (x index) removes(shard uint16, r removal) (all []tasklog.Attempt) {
	lives := []events.Ref{r.life}
	if r.life == tasklog.EveryLife && r.attempt == 0 {
		lives = slices.Collect(maps.Keys(x[shard]))
	}
	for _, life := range lives {
		for number := range x[shard][life] {
			whole := r.life == tasklog.EveryLife || r.before == 0 || number < r.before
			if r.attempt == number || r.attempt == 0 && whole {
				all = append(all, tasklog.Attempt{Shard: shard, Life: life, Number: number})
			}
		}
	}
	return all
}

// remove takes out what a removal concerns, and returns it.
func (x index) remove(shard uint16, r removal) (gone []stored) {
	for _, a := range x.removes(shard, r) {
		all := x.of(a)
		n := len(all)
		if r.attempt != 0 {
			n = sort.Search(len(all), func(i int) bool { return all[i].place > r.upTo })
		}
		gone = append(gone, all[:n]...)
		x.set(a, slices.Clone(all[n:]))
	}
	return gone
}

// each calls f with every batch, which may change it, and takes out those of which it returns false.
func (x index) each(f func(*stored) bool) {
	for shard, lives := range x {
		for life, attempts := range lives {
			for number, all := range attempts {
				left := all[:0]
				for i := range all {
					if f(&all[i]) {
						left = append(left, all[i])
					}
				}
				if len(left) < len(all) {
					x.set(tasklog.Attempt{Shard: shard, Life: life, Number: number}, slices.Clone(left))
				}
			}
		}
	}
}
