package engine

import (
	"context"
	"sync"
	"time"
)

// removeMailboxesWithin bounds the time for which a client that ends removes its mailboxes. The rest is swept.
const removeMailboxesWithin = time.Second

// maxSendersLeft bounds how many senders a client remembers.
const maxSendersLeft = 100

// sendersLeft remembers senders that ended while their mailboxes could not be removed. It is safe for concurrent use.
type sendersLeft struct {
	mu      sync.Mutex
	senders []string
}

// add remembers a sender, unless they are too many: then its mailboxes are swept.
func (s *sendersLeft) add(sender string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.senders) < maxSendersLeft {
		s.senders = append(s.senders, sender)
	}
}

// take returns the remembered senders, and forgets them.
func (s *sendersLeft) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	senders := s.senders
	s.senders = nil
	return senders
}

// removeMailboxes removes the mailboxes of the client as it ends for good.
func (c *Client) removeMailboxes(ctx context.Context) {
	if c.cfg.Store == nil || c.killed.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeMailboxesWithin)
	defer cancel()
	for _, sender := range append([]string{c.sender.ID()}, c.sendersLeft.take()...) {
		if err := c.cfg.Store.RemoveMailboxes(ctx, sender); err != nil {
			c.cfg.Log.WarnContext(ctx, "mail stays until it is swept", "sender", sender, "err", err)
		}
	}
}
