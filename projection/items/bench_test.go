package items_test

import (
	"fmt"
	"testing"
	"time"

	"taskledger/item"
)

// BenchmarkCycle claims an item, and removes it for another one, in a store of so many items, half of them held.
func BenchmarkCycle(b *testing.B) {
	for _, depth := range []int{1000, 10_000, 500_000} {
		b.Run(fmt.Sprint("depth=", depth), func(b *testing.B) {
			s := newShard()
			s.fill(b, depth)
			s.later(0)
			data := []byte("0123456789abcdef")
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n%100 == 0 {
					s.later(0)
				}
				c := &item.Claim{Client: 9, Group: "a", Duration: time.Minute}
				claimed, err := s.state.DecideClaim("s", c, "", uint64(n), s.now)
				if err == nil {
					err = s.apply(&claimed, "")
				}
				if err != nil {
					b.Fatal(err)
				}
				u := &item.Update{Client: 9, Deletes: []int64{int64(claimed.First)}, Adds: []item.Add{{Group: "a", Data: data}}}
				done, err := s.state.DecideUpdate("s", u, "", s.now)
				if err == nil {
					err = s.apply(&done, "")
				}
				if err != nil {
					b.Fatal(err)
				}
				s.all = s.all[:0]
			}
		})
	}
}
