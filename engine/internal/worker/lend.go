package worker

import (
	"context"
)

// lendKey finds the attempt that a context belongs to.
type lendKey struct{}

// Lend lends the slot of the attempt that ctx belongs to, if it does to one, until it is taken back.
func Lend(ctx context.Context) (takeBack func()) {
	if a, ok := ctx.Value(lendKey{}).(*attempt); ok {
		return a.lend()
	}
	return func() {}
}

// lend lends the slot while a goroutine of the attempt waits.
func (a *attempt) lend() (takeBack func()) {
	x := a.x
	x.Lock()
	a.waits++
	freed := func() {}
	if a.waits == 1 && !a.done.Load() {
		a.lent = true
		freed = x.LendLocked()
	}
	x.Unlock()
	freed()
	return func() {
		x.Lock()
		defer x.Unlock()
		if a.waits--; a.waits == 0 {
			x.endLoanLocked(a)
		}
	}
}

// endLoan takes the slot of an attempt back whose function has returned, whoever of its goroutines still waits.
func (x *Executor) endLoan(a *attempt) {
	x.Lock()
	defer x.Unlock()
	x.endLoanLocked(a)
}

func (x *Executor) endLoanLocked(a *attempt) {
	if a.lent {
		a.lent = false
		if x.TakeBackLocked() {
			x.overbooked()
		}
	}
}
