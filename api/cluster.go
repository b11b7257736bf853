package api

import (
	"net/http"

	"taskledger/api/operations"
	"taskledger/api/view"
	"taskledger/engine"
	"taskledger/ledger"
)

// Nodes lists the members.
type Nodes struct {
	Nodes []view.Node `json:"nodes"`
}

// Shards lists the journals and their owners.
type Shards struct {
	Shards []engine.ShardInfo `json:"shards"`
}

// Checkpoint holds the chain hashes of all journals.
type Checkpoint struct {
	ledger.Checkpoint
	Text string `json:"text"` // the same as the command verify reads it from a file
}

// cluster serves the routes that show nodes and shards.
type cluster struct {
	observer  operations.Observer
	historian operations.Historian
}

func (s cluster) nodes(c *Call) error {
	all, err := s.observer.Nodes(c.ctx)
	if err != nil {
		return err
	}
	answer := Nodes{[]view.Node{}}
	for _, n := range all {
		answer.Nodes = append(answer.Nodes, view.OfNode(n))
	}
	return c.JSON(http.StatusOK, answer)
}

func (s cluster) shards(c *Call) error {
	all, err := s.observer.Shards(c.ctx)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, Shards{all})
}

func (s cluster) checkpoint(c *Call) error {
	p, err := s.historian.Ledger().Checkpoint(c.ctx)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, Checkpoint{p, p.String()})
}
