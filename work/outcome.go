package work

// outcome tells what became of a change. The zero value stands for a position, which counts as nothing.
type outcome struct {
	of    ending
	error *ItemError
}

// ending says how a change counts.
type ending uint8

const (
	uncounted ending = iota
	changeDone
	changeFailed
	changeSkipped
)

// sum sums up outcomes, and keeps the first errors.
type sum struct {
	counts Counts
	firstErrors
}

func (s *sum) add(o outcome) {
	switch o.of {
	case changeDone:
		s.counts.Done++
	case changeFailed:
		s.counts.Failed++
	case changeSkipped:
		s.counts.Skipped++
	}
	if o.error != nil {
		s.keep(*o.error)
	}
}

// join adds what another sum has.
func (s *sum) join(other sum) {
	s.counts.Done += other.counts.Done
	s.counts.Failed += other.counts.Failed
	s.counts.Skipped += other.counts.Skipped
	for _, e := range other.errors {
		s.keep(e)
	}
}
