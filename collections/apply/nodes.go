package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"taskledger/collections"
	"taskledger/store"
	"taskledger/task"
)

// maxQuestion bounds the bytes of a question to a node.
const maxQuestion = 60 << 10

// use names the first collection that needs something, and counts the others.
type use struct {
	id   string
	more int
}

// askNodes refuses collections that no node can run, and returns warnings of those that some cannot, and of nodes that
// could not be asked: what these have is not known.
func (a *Applier) askNodes(ctx context.Context, all []collections.Collection) (warnings []string, err error) {
	nodes, err := a.Nodes.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for nodes: %w", err)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("look for nodes that run collections: %w: %w", store.ErrUnavailable, task.ErrNoNode)
	}
	nodes = slices.DeleteFunc(nodes, func(n store.NodeInfo) bool { return !runsCollections(&n) })
	if len(nodes) == 0 {
		return nil, fmt.Errorf(
			"%w: no node runs %s: want one that does not drain, with slots for it (--slots, --sync-workers)",
			task.ErrUnknownBehavior,
			collections.Behavior,
		)
	}
	uses := usesOf(all)
	if len(uses) == 0 {
		return nil, nil
	}
	needs := slices.SortedFunc(maps.Keys(uses), collections.Need.Compare)
	lacks, failed := make([]map[collections.Need]bool, len(nodes)), make([]error, len(nodes))
	err = atOnce(ctx, len(nodes), func(ctx context.Context, i int) error {
		if lacks[i], failed[i] = a.ask(ctx, nodes[i].ID, needs); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, err := range failed {
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("node %s was not asked what it has: %v", nameOf(&nodes[i]), err))
		}
	}
	lacking, err := judge(nodes, needs, lacks, uses)
	return append(warnings, lacking...), err
}

// usesOf returns what collections need.
func usesOf(all []collections.Collection) map[collections.Need]*use {
	uses := map[collections.Need]*use{}
	for i := range all {
		for _, n := range all[i].Needs() {
			if u := uses[n]; u != nil {
				u.more++
				continue
			}
			uses[n] = &use{id: all[i].ID()}
		}
	}
	return uses
}

// judge refuses what all nodes lack, and returns warnings of what some lack. lacks has an entry for each node, nil for
// one that was not asked.
func judge(
	nodes []store.NodeInfo, needs []collections.Need, lacks []map[collections.Need]bool,
	uses map[collections.Need]*use,
) (warnings []string, err error) {
	refused := &RefusedError{}
	for _, n := range needs {
		var without []string
		for i := range nodes {
			if lacks[i][n] {
				without = append(without, nameOf(&nodes[i]))
			}
		}
		switch {
		case len(without) == len(nodes):
			refused.Problems = append(refused.Problems, fmt.Sprintf("%sno node has the %s", uses[n].of(n), n))
		case len(without) > 0:
			slices.Sort(without)
			names := strings.Join(slices.Compact(without), ", ")
			warnings = append(warnings, fmt.Sprintf("%sno %s on %s", uses[n].of(n), n, names))
		}
	}
	if len(refused.Problems) > 0 {
		slices.Sort(refused.Problems)
		return nil, refused
	}
	return warnings, nil
}

// of begins a line about what the collections need.
func (u *use) of(n collections.Need) string {
	others := ""
	switch {
	case u.more == 1:
		others = " (and another one)"
	case u.more > 1:
		others = fmt.Sprintf(" (and %d others)", u.more)
	}
	return fmt.Sprintf("%s%s: %s: ", u.id, others, n.Field())
}

func runsCollections(n *store.NodeInfo) bool {
	limit, limited := n.Limits[collections.Behavior]
	return !n.Draining && n.Slots > 0 && (!limited || limit > 0) && slices.Contains(n.Behaviors, collections.Behavior)
}

func nameOf(n *store.NodeInfo) string { return cmp.Or(n.Name, n.ID) }

// ask returns what a node lacks, in as many questions as it takes.
func (a *Applier) ask(
	ctx context.Context, session string, needs []collections.Need,
) (lacks map[collections.Need]bool, err error) {
	lacks = map[collections.Need]bool{}
	for more := true; more; more = len(needs) > 0 {
		var question []byte
		if question, needs, err = piece(needs); err != nil {
			return nil, err
		}
		answer, err := a.askOnce(ctx, session, question)
		if err != nil {
			return nil, err
		}
		some, err := collections.ReadNeeds(answer)
		if err != nil {
			return nil, err
		}
		for _, n := range some {
			lacks[n] = true
		}
	}
	return lacks, nil
}

// askOnce asks one question, and again where the node answers too many others.
func (a *Applier) askOnce(ctx context.Context, session string, question []byte) (answer []byte, err error) {
	for range tries {
		answer, err = a.Nodes.Ask(ctx, session, collections.Question, question)
		if _, busy := errors.AsType[*task.OverloadError](err); !busy {
			return answer, err
		}
		a.pause(ctx, firstPause)
	}
	return answer, err
}

// piece returns the question of as many needs as one may have, one at least, and the others.
func piece(needs []collections.Need) (question []byte, rest []collections.Need, err error) {
	question = []byte{'['}
	for i, n := range needs {
		text, err := json.Marshal(n)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 {
			if len(question)+len(text) > maxQuestion {
				return append(question, ']'), needs[i:], nil
			}
			question = append(question, ',')
		}
		question = append(question, text...)
	}
	return append(question, ']'), nil, nil
}
