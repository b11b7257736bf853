package api

import (
	"net/http"

	"taskledger/api/operations"
	"taskledger/api/view"
	"taskledger/engine"
	"taskledger/ledger"
	"taskledger/meter"
)

// Nodes lists the members.
type Nodes struct {
	Nodes []view.Node `json:"nodes"`
}

// Shards lists the journals and their owners.
type Shards struct {
	Shards []engine.ShardInfo `json:"shards"`
	// Figures tell what the owners have committed, of each shard in order, where they are asked for.
	Figures []Figures `json:"figures,omitempty"`
}

// Figures holds what package meter packs: a text of each behavior, and as many numbers of each.
type Figures struct {
	Behaviors []string `json:"behaviors"`
	Numbers   []int64  `json:"numbers"`
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
	figures, err := c.Flag("figures")
	if err != nil {
		return err
	}
	all, err := s.observer.Shards(c.ctx)
	if err != nil {
		return err
	}
	answer := Shards{Shards: all}
	for i := range all {
		if figures {
			behaviors, numbers := meter.Pack(all[i].Figures)
			answer.Figures = append(answer.Figures, Figures{behaviors, numbers})
		}
	}
	return c.JSON(http.StatusOK, answer)
}

func (s cluster) checkpoint(c *Call) error {
	p, err := s.historian.Ledger().Checkpoint(c.ctx)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, Checkpoint{p, p.String()})
}
