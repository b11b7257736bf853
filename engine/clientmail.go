package engine

import (
	"context"
	"time"
)

// removeMailWithin bounds how long a client that leaves removes its mail. What it cannot remove is swept.
const removeMailWithin = time.Second

// removeMail removes what the client has left in the store, as it ends for good.
func (c *Client) removeMail(ctx context.Context) {
	if c.cfg.Store == nil || c.killed.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeMailWithin)
	defer cancel()
	for _, sender := range append([]string{c.sender.ID()}, c.mailLeft.Take()...) {
		if err := c.cfg.Store.RemoveMailboxes(ctx, sender); err != nil {
			c.cfg.Log.WarnContext(ctx, "mail stays until it is swept", "sender", sender, "err", err)
		}
	}
}
