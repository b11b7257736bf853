package remote

import (
	"context"
	"net/http"
	"time"
)

// LoginLink is an address of the dashboard that begins one session of the caller.
type LoginLink struct {
	Path    string    `json:"path"` // with its query, below the URL of the API
	Expires time.Time `json:"expires"`
}

// LoginLink asks for a link that logs the caller in to the dashboard of the node once.
func (c *Client) LoginLink(ctx context.Context) (l LoginLink, err error) {
	_, err = c.link.ask(ctx, request{
		does:   "ask for a link to the dashboard",
		method: http.MethodPost,
		path:   "/ui/links",
	}, &l)
	return l, err
}
