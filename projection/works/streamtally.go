package works

// StreamTally counts what streams have not done.
type StreamTally struct {
	Open    int64 // changes that are known and not processed, as last told
	Oldest  int64 // when the oldest of them came, in milliseconds since 1970; 0 = there is none, or it is not known
	Keys    int64 // that wait for a hold
	Retried int64 // holds
	Parked  int64 // holds
	Failed  int64 // holds, for good
}

// Tally counts what the stream of a work has not done; the zero value for a work that is none.
func (w *Work) Tally() (t StreamTally) {
	if w == nil || w.Stream == nil {
		return t
	}
	t.Open, t.Oldest, t.Keys = int64(w.Stream.Open), int64(w.Stream.Oldest), int64(len(w.Stream.byKey))
	for _, h := range w.Stream.holds {
		switch {
		case h.Final:
			t.Failed++
		case h.Parked:
			t.Parked++
		default:
			t.Retried++
		}
	}
	return t
}

// Plus returns the sum with so many times another tally. Its Oldest is as before: times have no sum.
func (t StreamTally) Plus(times int64, other StreamTally) StreamTally {
	t.Open += times * other.Open
	t.Keys += times * other.Keys
	t.Retried += times * other.Retried
	t.Parked += times * other.Parked
	t.Failed += times * other.Failed
	return t
}
