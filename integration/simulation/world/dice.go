package world

import (
	"math/rand/v2"
	"sync"
	"time"
)

// dice draws what the seed decides. Its methods may be called concurrently.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{rnd: rand.New(rand.NewPCG(seed, 0))} }

// n draws from 0 to most-1.
func (d *dice) n(most int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(most)
}

// chance is true with the probability p.
func (d *dice) chance(p float64) bool {
	if p == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.Float64() < p
}

// between draws a duration from least to most.
func (d *dice) between(least, most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return least + time.Duration(d.rnd.Int64N(int64(most-least)+1))
}

// pick draws one of the choices.
func pick[T any](d *dice, choices ...T) T { return choices[d.n(len(choices))] }
