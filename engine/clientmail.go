package engine

import (
	"context"
	"sync"
	"time"
)

// removeMailWithin bounds how long a client that leaves removes its mail. What it cannot remove is swept.
const removeMailWithin = time.Second

// maxSendersLeft bounds how many senders a client remembers.
const maxSendersLeft = 100

// sendersLeft remembers senders that ended while their mail could not be removed. It is safe for concurrent use.
type sendersLeft struct {
	mu      sync.Mutex
	senders []string
}

// add remembers a sender. The mail of one too many is swept.
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

// removeMail removes what the client has left in the store, as it ends for good.
func (c *Client) removeMail(ctx context.Context) {
	if c.cfg.Store == nil || c.killed.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeMailWithin)
	defer cancel()
	for _, sender := range append([]string{c.sender.ID()}, c.mailLeft.take()...) {
		if err := c.cfg.Store.RemoveMailboxes(ctx, sender); err != nil {
			c.cfg.Log.WarnContext(ctx, "mail stays until it is swept", "sender", sender, "err", err)
		}
	}
}
