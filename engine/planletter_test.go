package engine

import (
	"context"
	"iter"
	"log/slog"
	"testing"
	"testing/synctest"
)

// planMail is a store in which a plan is answered when it was asked for often enough.
type planMail struct {
	Store
	left     int // letters that are not answered
	answered chan struct{}
	removed  []string
}

func (s *planMail) Post(context.Context, int, string, uint8, []byte) error {
	if s.left--; s.left == 0 {
		close(s.answered)
	}
	return nil
}

func (s *planMail) Answers(ctx context.Context, _ string) iter.Seq2[LetterAnswer, error] {
	return func(yield func(LetterAnswer, error) bool) {
		select {
		case <-s.answered:
			yield(LetterAnswer{Answer: encodeAnswers([]answer{{text: "planned"}})}, nil)
		case <-ctx.Done():
		}
	}
}

func (s *planMail) RemoveMail(_ context.Context, sender string) error {
	s.removed = append(s.removed, sender)
	return nil
}

// Of two letters one may be answered and the other one not yet: it would lie there until mail is swept.
func TestPlan_LeavesNoMailBehind(t *testing.T) {
	for name, c := range map[string]struct{ letters, removals int }{"asked once": {1, 0}, "asked again": {2, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &planMail{left: c.letters, answered: make(chan struct{})}
				client := &Client{cfg: ClientConfig{Store: s, Log: slog.New(slog.DiscardHandler)}}
				a, err := client.postPlan(t.Context(), &planCommand{Behavior: "work"}, []string{"a", "b"})
				if err != nil || a.text != "planned" || len(s.removed) != c.removals {
					t.Errorf("answer %+v, %v; mail was removed %d times, want %d", a, err, len(s.removed), c.removals)
				}
			})
		})
	}
}
