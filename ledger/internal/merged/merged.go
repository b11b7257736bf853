// Package merged makes one sequence of several.
package merged

import "iter"

// Of yields the values of sequences, each of which is in order, in one order. It holds one value of each, and ends with
// the first error.
func Of[V any](all iter.Seq[iter.Seq2[V, error]], before func(a, b V) bool) iter.Seq2[V, error] {
	type head struct {
		value V
		next  func() (V, error, bool)
	}
	return func(yield func(V, error) bool) {
		var heads []*head
		advance := func(h *head) (ok bool, err error) {
			h.value, err, ok = h.next()
			return ok && err == nil, err
		}
		for seq := range all {
			next, stop := iter.Pull2(seq)
			defer stop()
			h := &head{next: next}
			if ok, err := advance(h); err != nil {
				yield(h.value, err)
				return
			} else if ok {
				heads = append(heads, h)
			}
		}
		for len(heads) > 0 {
			first := 0
			for i, h := range heads {
				if before(h.value, heads[first].value) {
					first = i
				}
			}
			if !yield(heads[first].value, nil) {
				return
			}
			ok, err := advance(heads[first])
			if err != nil {
				yield(heads[first].value, err)
				return
			}
			if !ok {
				heads[first] = heads[len(heads)-1]
				heads = heads[:len(heads)-1]
			}
		}
	}
}
