// Package remote is a client of a cluster over the HTTP API of one of its nodes: by its unix socket, or by a URL.
//
// A Client implements operations.Client, as operations.Direct does in a process that is itself a client of the store.
// It sends each request once. An error names the operation and wraps what the engine would have returned: what was not
// sent, or only asked, is store.ErrUnavailable, and a change that was sent and not answered is task.ErrUnknown. What
// the API has no route for wraps ErrNoRoute, and says where to do it instead.
package remote

import (
	"context"
	"fmt"

	"taskledger/api/operations"
	"taskledger/ledger"
	"taskledger/taskstore/client"
)

// Client asks the API. Its methods may be called by many at once.
type Client struct {
	submitter
	operator
	reader
	logs
	observer

	link      *link
	stores    *client.Client
	historian *ledger.Ledger
	cluster   string
}

var _ operations.Client = (*Client)(nil)

// Open returns a client once the API has told which cluster it is of. The error wraps store.ErrUnavailable where nobody
// answers.
func Open(ctx context.Context, o Options) (*Client, error) {
	l, err := newLink(o)
	if err != nil {
		return nil, err
	}
	items, err := client.New(client.Options{URL: o.URL, Token: o.Token})
	if err != nil {
		return nil, err
	}
	c := &Client{
		submitter: submitter{link: l},
		operator:  operator{l},
		reader:    reader{l},
		logs:      logs{l},
		observer:  observer{l},
		link:      l,
		stores:    items,
	}
	if c.cluster, c.historian, err = newLedger(ctx, l); err != nil {
		c.Close()
		return nil, fmt.Errorf("open the HTTP API at %s: %w", l.where, err)
	}
	c.submitter.historian = c.historian
	return c, nil
}

// Cluster returns the id of the cluster; "" = the token may not learn it.
func (c *Client) Cluster() string { return c.cluster }

// Close closes the connections that are not in use.
func (c *Client) Close() {
	c.link.close()
	c.stores.Close()
}

// Ledger implements operations.Historian: it reads entries over the API, and computes here what they tell.
func (c *Client) Ledger() *ledger.Ledger { return c.historian }

// Stores implements operations.Client.
func (c *Client) Stores() operations.Stores { return c.stores }

// Schedules implements operations.Client.
func (c *Client) Schedules() operations.Schedules { return schedules{c.link, c.submitter} }

// Backfills implements operations.Client.
func (c *Client) Backfills() operations.Backfills { return schedules{c.link, c.submitter} }

// Works implements operations.Client.
func (c *Client) Works() operations.Works { return works{c.link} }
