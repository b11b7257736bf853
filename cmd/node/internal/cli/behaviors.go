package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
)

// behaviorRow tells of a behavior which nodes run its tasks.
type behaviorRow struct {
	Behavior string          `json:"behavior"`
	Nodes    []string        `json:"nodes"`
	Paused   events.Millis   `json:"paused_since,omitzero"` // zero = it is not paused
	Sample   json.RawMessage `json:"sample,omitempty"`      // parameters of a built-in behavior, as an example
}

func (a *app) behaviorsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "behaviors",
		Short: "List the behaviors that nodes run, with sample parameters",
		Long: `Behaviors lists what submit takes: each behavior that a present node runs, and the names of these nodes. Of a built-in
behavior it shows parameters as an example; those of other behaviors are known to the program that defines them alone.`,
		Args: flags.NoArguments,
	}
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, _ []string) error {
		all, err := behaviorRows(ctx, client)
		if err != nil {
			return err
		}
		p := a.print("BEHAVIOR", "NODES", "PAUSED", "SAMPLE")
		for _, b := range all {
			sample := "-"
			if b.Sample != nil {
				sample = string(b.Sample)
			}
			err = errors.Join(err, p.Row(b, b.Behavior, strings.Join(b.Nodes, " "), output.Time(b.Paused), sample))
		}
		return errors.Join(err, p.Flush())
	})
}

// behaviorRows returns a row for each behavior that nodes run or that is paused, by name.
func behaviorRows(ctx context.Context, client operations.Client) (all []behaviorRow, err error) {
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	settings, err := client.Settings(ctx)
	if err != nil {
		return nil, err
	}
	of := func(name string) *behaviorRow {
		i, found := slices.BinarySearchFunc(all, name, func(b behaviorRow, name string) int { return strings.Compare(b.Behavior, name) })
		if !found {
			all = slices.Insert(all, i, behaviorRow{Behavior: name, Nodes: []string{}})
			if sample := builtin.Sample(name); sample != "" {
				all[i].Sample = json.RawMessage(sample)
			}
		}
		return &all[i]
	}
	for _, n := range nodes {
		for _, name := range n.Behaviors {
			b := of(name)
			b.Nodes = append(b.Nodes, n.Name)
		}
	}
	for _, p := range settings.Paused {
		of(p.Behavior).Paused = p.Since
	}
	return all, nil
}
