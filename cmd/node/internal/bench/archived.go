package bench

import (
	"context"
	"errors"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/task"
)

// StartArchived is StartPair on nodes that archive their journals and trim them, and keep logs, for a load of more
// tasks than etcd has room for.
func StartArchived(ctx context.Context, callers int, others ...task.Behavior) (p *Pair, err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return nil, err
	}
	p = &Pair{servers: s}
	defer func() {
		if err == nil {
			return
		}
		for _, n := range []*node{p.a, p.b} {
			if n != nil {
				err = errors.Join(err, n.close())
			}
		}
		err = errors.Join(err, s.close())
	}()
	all := append([]task.Behavior{builtin.Noop()}, others...)
	if p.a, err = startKeeping(ctx, s, "a", -1, all); err != nil {
		return nil, err
	}
	if p.b, err = startKeeping(ctx, s, "b", max(512, perTaskSlots*callers), all); err != nil {
		return nil, err
	}
	if err = settle(ctx, p.a, p.b); err != nil {
		return nil, err
	}
	p.Client = p.a.Client
	return p, nil
}

// startKeeping starts a node that archives, and keeps logs.
func startKeeping(ctx context.Context, s *servers, name string, slots int, all []task.Behavior) (*node, error) {
	link, err := s.link(ctx)
	if err != nil {
		return nil, err
	}
	return startNode(ctx, link, engine.NodeConfig{
		Name:      name,
		Slots:     slots,
		Archive:   link.Archive,
		Logs:      link.Logs,
		Behaviors: all,
	})
}
