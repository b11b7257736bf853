package trees

import (
	"errors"
	"fmt"
	"os"
)

// Params are the parameters of the work: directories, by absolute paths without links.
type Params struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Pair holds the two trees of a work open in a process. It may be used concurrently.
type Pair struct {
	params Params
	source *os.Root
	target *os.Root
}

// Open opens both trees. It makes the target if there is none.
func Open(p Params) (*Pair, error) {
	source, err := os.OpenRoot(p.Source)
	if err != nil {
		return nil, fmt.Errorf("open the source: %w", err)
	}
	if err = os.MkdirAll(p.Target, 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("make the target: %w", err), source.Close())
	}
	target, err := os.OpenRoot(p.Target)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the target: %w", err), source.Close())
	}
	return &Pair{
		params: p,
		source: source,
		target: target,
	}, nil
}

// Close closes both trees.
func (p *Pair) Close() error { return errors.Join(p.source.Close(), p.target.Close()) }
