package cron

import "math/bits"

// set holds numbers of 0 to 255.
type set [4]uint64

// among returns the set of the numbers from lo to hi.
func among(lo, hi int) (s set) {
	for n := lo; n <= hi; n++ {
		s.add(n)
	}
	return s
}

func (s *set) add(n int) { s[n/64] |= 1 << (n % 64) }

func (s *set) has(n int) bool { return s[n/64]>>(n%64)&1 == 1 }

func (s *set) size() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// seek returns n if it is in the set, else the next number of the set in a direction, 1 or -1; -1 where there is none.
func (s *set) seek(n, direction int) int {
	if direction > 0 {
		return s.from(max(n, 0))
	}
	return s.upTo(min(n, 255))
}

// from returns the smallest number of the set that is n or more, -1 where there is none. n is 0 or more.
func (s *set) from(n int) int {
	above := ^uint64(0) << (n % 64)
	for i := n / 64; i < len(s); i++ {
		if word := s[i] & above; word != 0 {
			return i*64 + bits.TrailingZeros64(word)
		}
		above = ^uint64(0)
	}
	return -1
}

// upTo returns the largest number of the set that is n or less, -1 where there is none. n is 255 or less.
func (s *set) upTo(n int) int {
	if n < 0 {
		return -1
	}
	below := ^uint64(0) >> (63 - n%64)
	for i := n / 64; i >= 0; i-- {
		if word := s[i] & below; word != 0 {
			return i*64 + 63 - bits.LeadingZeros64(word)
		}
		below = ^uint64(0)
	}
	return -1
}
