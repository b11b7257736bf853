package command

// Budget bounds the work that fronts do for one turn of an owner. A question that would need more is answered with
// what was found so far, or has to be asked again; other work goes on in the next turn.
type Budget struct {
	Items int         // to scan, or events to record
	Over  func() bool // reports that the time is over
}

// Spent reports whether nothing more may be done.
func (b *Budget) Spent() bool { return b.Items <= 0 || b.Over() }

// SpentAt reports whether a question that has scanned so many items has to stop. It reads the clock now and then.
func (b *Budget) SpentAt(scanned int) bool { return scanned >= b.Items || scanned%64 == 63 && b.Over() }

// Found is the outcome of a question that an owner answers from its state.
type Found struct {
	Items  int           // how many were scanned
	Bytes  int           // of the answer
	Linear bool          // the answer waits for a proof of ownership
	Answer func() Answer // encodes what was found; another goroutine may call it, later
}

// TryAgain has a question asked again.
func TryAgain() Answer { return Answer{Code: AnswerTryAgain} }
