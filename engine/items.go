package engine

import (
	"taskledger/engine/internal/stores"
	"taskledger/store"
)

func itemSubject(sender string) string { return "node." + sender + ".items" }

// onItems takes the news that items are there.
func (c *Client) onItems(m store.Message) {
	h, err := stores.DecodeHint(m.Data)
	if err != nil {
		c.cfg.Log.Warn("hint cannot be read", "err", err)
		return
	}
	c.items.Hinted(h)
}
