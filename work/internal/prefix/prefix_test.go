package prefix_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/work/internal/prefix"
)

// model is a Prefix as lists of everything that has ever come.
type model struct {
	tokens []string
	came   []time.Time
	ended  []bool
	passed int
}

var epoch = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func TestPrefix_PassesWhatHasEndedBeforeEverythingThatIsOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p prefix.Prefix[int]
		m := &model{}
		some := func(ended bool) (place int) { // one that was not passed, -1: there is none
			var all []int
			for i := m.passed; i < len(m.ended); i++ {
				if m.ended[i] == ended {
					all = append(all, i)
				}
			}
			if len(all) == 0 {
				return -1
			}
			return rapid.SampledFrom(all).Draw(t, "place")
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				token := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "token"))
				came := epoch.Add(time.Duration(len(m.tokens)))
				if place := p.Add(token, came); place != uint64(len(m.tokens))+1 {
					t.Fatalf("place %d of change %d", place, len(m.tokens)+1)
				}
				m.tokens, m.came, m.ended = append(m.tokens, token), append(m.came, came), append(m.ended, false)
			},
			"end": func(*rapid.T) {
				if i := some(false); i >= 0 {
					p.End(uint64(i)+1, i)
					m.ended[i] = true
				}
			},
			"reopen": func(*rapid.T) {
				if i := some(true); i >= 0 {
					p.Reopen(uint64(i) + 1)
					m.ended[i] = false
				}
			},
			"pass": func(t *rapid.T) {
				last, _ := p.Front(func(int) {})
				p.Pass(last)
				m.passed = int(last)
			},
			"": func(t *rapid.T) { m.check(t, &p) },
		})
	})
}

func (m *model) check(t *rapid.T, p *prefix.Prefix[int]) {
	var outcomes []int
	last, token := p.Front(func(o int) { outcomes = append(outcomes, o) })
	front, want := m.passed, ""
	for front < len(m.ended) && m.ended[front] {
		if len(outcomes) <= front-m.passed || outcomes[front-m.passed] != front {
			t.Fatalf("outcomes %d from change %d on", outcomes, m.passed+1)
		}
		want = m.tokens[front]
		front++
	}
	if last != uint64(front) || token != want || len(outcomes) != front-m.passed {
		t.Fatalf("front %d with the token %q, want %d with %q", last, token, front, want)
	}
	open, oldest := 0, time.Time{}
	for i := len(m.ended) - 1; i >= m.passed; i-- {
		if !m.ended[i] {
			open, oldest = open+1, m.came[i]
		}
	}
	if p.Open() != open || !p.Oldest().Equal(oldest) || p.Len() != len(m.ended)-m.passed {
		t.Fatalf("%d of %d are open since %s, want %d since %s", p.Open(), p.Len(), p.Oldest(), open, oldest)
	}
}
