package work

import (
	"encoding/binary"
	"hash"
)

// hasher sums up a definition: each text with its length before it, so no two definitions look alike.
type hasher struct{ hash.Hash }

func (h hasher) text(texts ...string) {
	for _, s := range texts {
		h.number(int64(len(s)))
		h.Write([]byte(s))
	}
}

func (h hasher) number(numbers ...int64) {
	for _, n := range numbers {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
	}
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func (h hasher) partition(p PartitionPlan) {
	h.text(p.ID)
	h.number(int64(p.Mode), p.Workers, p.Threads)
	s := p.Segmentation
	h.text(string(s.Kind))
	h.number(s.From, s.To, s.Size, s.Buckets, s.Depth, int64(len(s.Alphabets)))
	h.text(s.Alphabets...)
	h.number(int64(len(s.Explicit)))
	for _, c := range s.Explicit {
		h.text(string(c.Kind), c.Lower, c.Upper, c.Text)
		h.number(c.From, c.To)
	}
	h.number(int64(len(p.Thresholds)))
	for _, t := range p.Thresholds {
		h.text(t.Counter)
		h.number(t.Limit)
	}
}
