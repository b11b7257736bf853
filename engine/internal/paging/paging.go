// Package paging asks the owners of all shards, and makes a page of a list of what they find.
package paging

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/task"
)

// Most bounds the tasks that a page scans, in all shards together. A page for which that is not enough is short.
const Most = 20_000

// maxBytes is after how many bytes of parameters and results a page is full.
const maxBytes = 4 << 20

// Ask asks the owner of a shard for at most limit tasks that match, for which it scans no more than scan.
type Ask func(ctx context.Context, shard int, from listing.Place, limit, scan int) (listing.Part, error)

// Result is a page, and where the next one goes on.
type Result struct {
	Tasks   []projection.Task
	Missing []task.Missing
	Next    []listing.Key // by shard, the zero Key where there is nothing more; nil = nowhere is
	Through bool          // but in missing shards there is nothing more
	Nexts   []uint64      // as in task.Page
}

// Page makes a page of at most limit tasks, in the order of the list, of those in each shard whose keys are smaller
// than the one of from; a zero Key there stands for none. A shard for which ask fails is missing; a later page goes
// on in it where this one left it. Once ctx has ended nobody is asked any more, and the page has what was found.
func Page(ctx context.Context, from []listing.Key, limit int, ask Ask) Result {
	p := page{limit: limit, left: Most}
	for shard, key := range from {
		p.shards = append(p.shards, &reading{
			shard: shard,
			begin: key,
			at:    key,
			done:  key == listing.Key{},
		})
	}
	for p.take(); !p.full(); p.take() {
		wanted := p.wanted()
		if len(wanted) == 0 || p.left < len(wanted) || ctx.Err() != nil {
			break
		}
		p.askAll(ctx, wanted, ask)
	}
	return p.result()
}

// page is a page in the making.
type page struct {
	limit  int
	left   int // how many tasks may still be scanned
	bytes  int // of parameters and results
	shards []*reading
	tasks  []projection.Task
}

// reading holds what is known of a shard.
type reading struct {
	shard int
	begin listing.Key       // of the page
	at    listing.Key       // all that matches and is not smaller was found
	found []projection.Task // and not taken yet
	done  bool              // nothing smaller is left
	next  uint64            // number of its next entry when it was asked first; 0 = not heard
	err   error             // it is missing
}

// rest is greater than the keys of all tasks that were not taken; the zero Key when there are none.
func (r *reading) rest() listing.Key {
	switch {
	case len(r.found) > 0:
		k := listing.KeyOf(&r.found[0], r.shard)
		k.Ref++
		return k
	case r.done:
		return listing.Key{}
	}
	return r.at
}

// wanted are the shards of which the next task is not known.
func (p *page) wanted() (all []*reading) {
	for _, r := range p.shards {
		if r.err == nil && !r.done && len(r.found) == 0 {
			all = append(all, r)
		}
	}
	return all
}

// askAll asks shards side by side. Each is asked for twice its share of what the page lacks, so that most pages ask
// once.
func (p *page) askAll(ctx context.Context, wanted []*reading, ask Ask) {
	lacks := p.limit - len(p.tasks)
	limit := min(2*lacks/len(wanted)+4, lacks)
	scan := p.left / len(wanted)
	parts := make([]listing.Part, len(wanted))
	var all sync.WaitGroup
	for i, r := range wanted {
		all.Go(func() { parts[i], r.err = ask(ctx, r.shard, r.at.In(r.shard), limit, scan) })
	}
	all.Wait()
	for i, r := range wanted {
		if r.err == nil {
			r.heard(parts[i])
			p.left -= parts[i].Looked
		}
	}
}

func (r *reading) heard(p listing.Part) {
	r.found, r.done, r.next = p.Tasks, p.Done, cmp.Or(r.next, p.Head+1)
	if p.Next.Before != 0 { // it has scanned something
		r.at = p.Next.Key(r.shard)
	}
}

func (p *page) full() bool { return len(p.tasks) >= p.limit || p.bytes >= maxBytes }

// take moves what was found into the page as long as no shard can have something greater.
func (p *page) take() {
	for !p.full() {
		var first *reading
		for _, r := range p.shards {
			if r.err == nil && (first == nil || r.rest().Compare(first.rest()) > 0) {
				first = r
			}
		}
		if first == nil || len(first.found) == 0 {
			return
		}
		t := first.found[0]
		p.tasks, p.bytes = append(p.tasks, t), p.bytes+len(t.Params)+len(t.Result)
		first.found = first.found[1:]
	}
}

// result returns the page, and where the next one goes on: shards that answered from the first task left in any of
// them, each missing shard from its own place.
func (p *page) result() Result {
	r := Result{Tasks: p.tasks, Next: make([]listing.Key, len(p.shards))}
	var rest listing.Key
	for _, s := range p.shards {
		if k := s.rest(); s.err == nil && k.Compare(rest) > 0 {
			rest = k
		}
	}
	r.Through = rest == listing.Key{}
	for i, s := range p.shards {
		r.Next[i], r.Nexts = rest, append(r.Nexts, s.next)
		if s.err != nil {
			r.Missing = append(r.Missing, missing(s.shard, s.err))
			r.Next[i] = s.rest()
		} else if s.begin.Compare(rest) < 0 {
			r.Next[i] = s.begin
		}
	}
	if !slices.ContainsFunc(r.Next, func(k listing.Key) bool { return k != listing.Key{} }) {
		r.Next = nil
	}
	return r
}
