package work

import (
	"fmt"
	"slices"
)

// check implements flow.
func (s *flowOf[P, C]) check(name string, rules []Rule) error {
	holds := slices.IndexFunc(rules, Rule.holds)
	switch {
	case s.Changes == nil && s.Source == nil:
		return refuse(name+".changes", "nil, want a function, or one as the source")
	case s.Changes != nil && s.Source != nil:
		return refuse(name+".source", "a function, want nil with changes")
	case s.Batch < 0:
		return refuse(name+".batch", "%d, want 0 or more", s.Batch)
	case s.Batch > 0 && s.Imprecise:
		return refuse(name+".batch", "%d, want 0 with imprecise tokens: those of a part of the changes tell nothing", s.Batch)
	case holds >= 0 && len(s.Thresholds) > 0:
		return refuse(fmt.Sprintf("%s.rules[%d].react", name, holds),
			"%q, want no reaction that holds changes with thresholds: no permit covers what is processed later",
			rules[holds].React)
	case s.Source != nil:
		return s.checkPushed(name)
	case s.Convert != nil:
		return refuse(name+".convert", "a function, want nil without a source")
	case s.Idle != 0:
		return refuse(name+".idle", "%s, want 0 without a source: the run ends with its changes", s.Idle)
	}
	return nil
}

// checkPushed returns what is wrong with a stream that has a source.
func (s *flowOf[P, C]) checkPushed(name string) error {
	switch {
	case s.Convert == nil:
		return refuse(name+".convert", "nil, want a function")
	case s.Mode != Full:
		return refuse(name+".mode", "%s, want %s with a source: what was acknowledged does not come again", s.Mode, Full)
	case s.Imprecise:
		return refuse(name+".imprecise", "true, want false with a source, which has no tokens")
	case s.MoveToken:
		return refuse(name+".move_token", "true, want false with a source, which has no tokens")
	case s.Idle < 0:
		return refuse(name+".idle", "%s, want 0 or more", s.Idle)
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
		form, moves := p.flow.form()
		switch first, _ := w.partitions[0].flow.form(); {
		case form != first:
			return refuse(p.name(i), "a stream of another form than %s", p.name(0))
		case form == Pushed && i > 0:
			return refuse("streams", "%d, want 1 with a source", len(w.partitions))
		case p.Mode != Full && !moves:
			continue
		case mover >= 0:
			return refuse(p.name(i)+".mode", "%s moves the token, as %s does: want one stream that does", p.Mode, p.name(mover))
		}
		mover = i
	}
	return nil
}
