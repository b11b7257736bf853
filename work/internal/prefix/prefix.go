// Package prefix tells how far a stream of changes has been processed: up to the last change before which none is open.
// It starts nothing and asks no clock.
package prefix

import "time"

// Prefix holds the changes of a stream from the first that was not passed on, in the order of their arrival, with what
// became of each, an O. The zero value is empty. One goroutine at a time uses it.
type Prefix[O any] struct {
	passed  uint64 // the place of the last change that was passed
	entries []entry[O]
	open    int
}

type entry[O any] struct {
	token   string
	came    time.Time
	ended   bool
	outcome O
}

// Add adds a change that came after all others, and returns its place: 1 for the first one.
func (p *Prefix[O]) Add(token string, came time.Time) (place uint64) {
	p.entries = append(p.entries, entry[O]{token: token, came: came})
	p.open++
	return p.passed + uint64(len(p.entries))
}

// End tells what became of the open change at a place.
func (p *Prefix[O]) End(place uint64, outcome O) {
	e := p.at(place)
	e.ended, e.outcome = true, outcome
	p.open--
}

// Reopen takes back an End of a change that was not passed.
func (p *Prefix[O]) Reopen(place uint64) {
	var none O
	e := p.at(place)
	e.ended, e.outcome = false, none
	p.open++
}

func (p *Prefix[O]) at(place uint64) *entry[O] { return &p.entries[place-p.passed-1] }

// Front calls each with the outcomes of the changes before which none is open, in their order, and returns the place
// and the token of the last of them. It returns the place that was passed last, and no token, if there are none.
func (p *Prefix[O]) Front(each func(O)) (last uint64, token string) {
	last = p.passed
	for i := range p.entries {
		e := &p.entries[i]
		if !e.ended {
			break
		}
		each(e.outcome)
		last, token = last+1, e.token
	}
	return last, token
}

// Pass drops the changes up to a place that Front returned.
func (p *Prefix[O]) Pass(last uint64) {
	n := last - p.passed
	clear(p.entries[:n])
	p.entries, p.passed = p.entries[n:], last
}

// Passed returns the place of the change that was passed last.
func (p *Prefix[O]) Passed() uint64 { return p.passed }

// Len returns the number of changes that were not passed.
func (p *Prefix[O]) Len() int { return len(p.entries) }

// Open returns the number of changes that have not ended.
func (p *Prefix[O]) Open() int { return p.open }

// Oldest returns when the first came of the changes that have not ended, the zero time if there are none.
func (p *Prefix[O]) Oldest() time.Time {
	for i := range p.entries {
		if e := &p.entries[i]; !e.ended {
			return e.came
		}
	}
	return time.Time{}
}
