package work

import (
	"fmt"
	"slices"
)

// check returns what is wrong with a stream, beside what a partition may have wrong.
func (s *flowOf[P, C]) check(name string, rules []Rule) error {
	holds := slices.IndexFunc(rules, Rule.holds)
	switch {
	case s.Changes == nil:
		return refuse(name+".changes", "nil, want a function")
	case s.Batch < 0:
		return refuse(name+".batch", "%d, want 0 or more", s.Batch)
	case s.Batch > 0 && s.Imprecise:
		return refuse(name+".batch", "%d, want 0 with imprecise tokens: those of a part of the changes tell nothing", s.Batch)
	case s.Idle != 0:
		return refuse(name+".idle", "%s, want 0: the run ends with its changes", s.Idle)
	case holds >= 0 && len(s.Thresholds) > 0:
		return refuse(fmt.Sprintf("%s.rules[%d].react", name, holds),
			"%q, want none of those that hold changes with thresholds: no permit covers what is processed later",
			rules[holds].React)
	}
	return nil
}

// checkStreams returns what is wrong with the streams of a work beside one another.
func (w *Work[P, I]) checkStreams() error {
	mover := -1
	for i := range w.partitions {
		p := &w.partitions[i]
		if p.flow == nil {
			continue
		}
		if first := w.partitions[0].flow; p.flow.form() != first.form() {
			return refuse(p.name(i), "a stream of another form than %s", p.name(0))
		}
		if p.Mode != Full && !p.flow.movesToken() {
			continue
		}
		if mover >= 0 {
			return refuse(p.name(i)+".mode", "%s moves the token, as %s does: want one stream that does", p.Mode, p.name(mover))
		}
		mover = i
	}
	return nil
}
