package work

import "taskledger/work/workledger"

// wanted is a change that shall be held. It is set aside until recorded or freed is called.
type wanted struct {
	hold    workledger.Hold
	place   uint64
	outcome outcome

	recorded func()
	freed    func() // the hold of its key has ended: the change is to be processed
}

// size returns the bytes of a hold as they count for a move.
func (w *wanted) size() int {
	c := &w.hold.Change
	return len(w.hold.Key) + len(c.At) + len(c.Data) + len(c.Code) + len(c.Message)
}
