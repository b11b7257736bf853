package engine

import "context"

// lendKey finds the attempt that a context belongs to.
type lendKey struct{}

// lendSlot lends the slot of the attempt that ctx belongs to, if it does to one, until it is taken back.
func lendSlot(ctx context.Context) (takeBack func()) {
	if a, ok := ctx.Value(lendKey{}).(*attempt); ok {
		return a.lend()
	}
	return func() {}
}

// lend lends the slot while a goroutine of the attempt waits.
func (a *attempt) lend() (takeBack func()) {
	x := a.m.exec
	x.mu.Lock()
	a.waits++
	lends := a.waits == 1 && !a.done.Load()
	var woken map[*inbox]struct{}
	if lends {
		a.lent = true
		x.lent++
		x.used--
		woken = x.wakeLocked()
	}
	x.mu.Unlock()
	if lends {
		for i := range woken {
			i.wake.notify()
		}
		x.freed()
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if a.waits--; a.waits == 0 {
			x.endLoanLocked(a)
		}
	}
}

// endLoan takes the slot of an attempt back whose function has returned, whoever of its goroutines still waits.
func (x *executor) endLoan(a *attempt) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.endLoanLocked(a)
}

func (x *executor) endLoanLocked(a *attempt) {
	if a.lent {
		a.lent = false
		x.lent--
		x.used++
		if x.offered > 0 && x.used+x.offered > x.slots {
			a.m.offers.wake.notify() // an offer would bring what must not start
		}
	}
}
