package trees

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
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
	parts  parts
	opened atomic.Bool // the modes of directories were changed
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

// check returns an error unless the trees are those of the parameters, and still where they were: a source that was
// removed looks as if it were empty.
func (p *Pair) check(params Params) error {
	if params != p.params {
		return fmt.Errorf("this process mirrors %s to %s, and the task %s to %s",
			p.params.Source, p.params.Target, params.Source, params.Target)
	}
	for at, tree := range map[string]*os.Root{params.Source: p.source, params.Target: p.target} {
		is, err := os.Stat(at)
		if err != nil {
			return err
		}
		was, err := tree.Stat(".")
		if err != nil {
			return err
		}
		if !os.SameFile(is, was) {
			return fmt.Errorf("%s was replaced since it was opened", at)
		}
	}
	return nil
}

// Close closes both trees.
func (p *Pair) Close() error { return errors.Join(p.source.Close(), p.target.Close()) }
