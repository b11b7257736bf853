package engine

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/store"
)

// planMailbox is a store in which a plan is answered when it was asked for often enough.
type planMailbox struct {
	store.Store
	left     int // letters that are not answered
	answered chan struct{}
	full     bool // nothing can be removed
	sender   string
	removed  []string
}

func (s *planMailbox) Post(_ context.Context, _ int, sender string, _ uint8, _ []byte) error {
	s.sender = sender
	if s.left--; s.left == 0 {
		close(s.answered)
	}
	return nil
}

func (s *planMailbox) Answers(ctx context.Context, _ string) iter.Seq2[store.MailboxAnswer, error] {
	return func(yield func(store.MailboxAnswer, error) bool) {
		select {
		case <-s.answered:
			yield(store.MailboxAnswer{Answer: command.EncodeAnswers([]command.Answer{{Text: "planned"}})}, nil)
		case <-ctx.Done():
		}
	}
}

func (s *planMailbox) RemoveMailboxes(_ context.Context, sender string, _ ...int) error {
	if s.full {
		return store.ErrFull
	}
	s.removed = append(s.removed, sender)
	return nil
}

// Of two letters one may be answered and the other one not yet; and one whose outcome was unknown may have been
// posted twice. What is left would lie there until mail is swept.
func TestPlan_LeavesNoMailBehind(t *testing.T) {
	for name, c := range map[string]struct {
		letters int
		full    bool
	}{"asked once": {letters: 1}, "asked again": {letters: 2}, "removed when the client ends": {1, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &planMailbox{left: c.letters, answered: make(chan struct{}), full: c.full}
				client := &Client{cfg: ClientConfig{Store: s, Log: slog.New(slog.DiscardHandler)}, sender: sender.New(sender.Config{ID: "client"}), killed: t.Context()}
				a, err := client.postPlan(t.Context(), &command.Plan{Behavior: "work"}, []string{"a", "b"})
				if err != nil || a.Text != "planned" {
					t.Errorf("answer %+v, %v", a, err)
				}
				want := []string{s.sender}
				if c.full {
					s.full = false
					client.removeMailboxes(t.Context())
					want = []string{"client", s.sender}
				}
				if !slices.Equal(s.removed, want) {
					t.Errorf("mail of %q was removed, want of %q", s.removed, want)
				}
			})
		})
	}
}
