package works

import (
	"encoding/binary"
	"errors"

	"github.com/tidwall/btree"
)

// Ranges is a set of the numbers of buckets. Numbers that follow one another take the room of one. The zero value is
// the empty set. A copy by Copy stays as it is whatever becomes of the original.
type Ranges struct {
	last  *btree.Map[uint64, uint64] // the last number of a range, by its first; nil = none
	count uint64
}

// Copy returns the set as it is now.
func (r *Ranges) Copy() Ranges {
	c := Ranges{count: r.count}
	if r.last != nil {
		c.last = r.last.Copy()
	}
	return c
}

// Len returns how many ranges there are, and Count how many numbers.
func (r *Ranges) Len() int {
	if r.last == nil {
		return 0
	}
	return r.last.Len()
}

// Count returns how many numbers the set has.
func (r *Ranges) Count() uint64 { return r.count }

// before returns the range that begins with n, or the last one before it; 0 = there is none.
func (r *Ranges) before(n uint64) (from, to uint64) {
	if r.last == nil {
		return 0, 0
	}
	r.last.Descend(n, func(f, t uint64) bool {
		from, to = f, t
		return false
	})
	return from, to
}

// Has reports whether the set has a number.
func (r *Ranges) Has(n uint64) bool {
	from, to := r.before(n)
	return from != 0 && n <= to
}

// Absent returns the least number from n on that the set does not have.
func (r *Ranges) Absent(n uint64) uint64 {
	if from, to := r.before(n); from != 0 && n <= to {
		return to + 1
	}
	return n
}

// Add adds a number, which is not 0.
func (r *Ranges) Add(n uint64) { r.AddAll(n, n) }

// AddAll adds the numbers from one to another, of which the set has none.
func (r *Ranges) AddAll(from, to uint64) {
	if from > to || r.Has(from) {
		return
	}
	if r.last == nil {
		r.last = new(btree.Map[uint64, uint64])
	}
	r.count += to - from + 1
	if f, t := r.before(from); f != 0 && t == from-1 {
		from = f
	}
	if t, is := r.last.Get(to + 1); is {
		r.last.Delete(to + 1)
		to = t
	}
	r.last.Set(from, to)
}

// Remove takes a number out.
func (r *Ranges) Remove(n uint64) {
	from, to := r.before(n)
	if from == 0 || n > to {
		return
	}
	r.count--
	r.last.Delete(from)
	if from < n {
		r.last.Set(from, n-1)
	}
	if n < to {
		r.last.Set(n+1, to)
	}
}

// All yields the ranges in order.
func (r *Ranges) All(yield func(from, to uint64) bool) {
	if r.last != nil {
		r.last.Scan(yield)
	}
}

// Complement returns the numbers from 1 to a last one that the set does not have.
func (r *Ranges) Complement(last uint64) (c Ranges) {
	next := uint64(1)
	r.All(func(from, to uint64) bool {
		c.AddAll(next, min(from-1, last))
		next = to + 1
		return next <= last
	})
	c.AddAll(next, last)
	return c
}

// span makes the set one of all numbers between its first and its last.
func (r *Ranges) span() {
	from, _, _ := r.last.Min()
	_, to, _ := r.last.Max()
	*r = Ranges{}
	r.AddAll(from, to)
}

// encode returns how far each range begins behind the one before, and how many numbers it has behind its first.
func (r *Ranges) encode() (b []byte) {
	end := uint64(0)
	r.All(func(from, to uint64) bool {
		b = binary.AppendUvarint(b, from-end-1)
		b = binary.AppendUvarint(b, to-from)
		end = to + 1
		return true
	})
	return b
}

// decodeRanges reads what encode wrote, of numbers up to a last one.
func decodeRanges(b []byte, last uint64) (r Ranges, err error) {
	end := uint64(0)
	for first := true; len(b) > 0; first = false {
		skip, n := binary.Uvarint(b)
		if n <= 0 {
			return r, errors.New("ranges that break off")
		}
		more, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return r, errors.New("ranges that break off")
		}
		b = b[n+m:]
		if skip > last || more > last || end+1+skip+more > last {
			return r, errors.New("ranges behind the last bucket")
		}
		from := end + 1 + skip
		if !first && r.Has(from-1) {
			return r, errors.New("ranges that touch")
		}
		r.AddAll(from, from+more)
		end = from + more + 1
	}
	return r, nil
}
