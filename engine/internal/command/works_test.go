package command_test

import (
	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
)

// drawWorks draws a command of works, nil for a number of another.
func drawWorks(t *rapid.T, c command.Command) command.Command {
	number := func(name string) uint64 { return rapid.Uint64().Draw(t, name) }
	id, node := genText.Draw(t, "id"), genText.Draw(t, "node")
	switch c.(type) {
	case *works.Plan:
		return &works.Plan{
			Task:       id,
			Started:    number("started"),
			Node:       node,
			Parent:     genText.Draw(t, "parent"),
			Definition: genText.Draw(t, "definition"),
			Partitions: genPayload.Draw(t, "partitions"),
		}
	case *works.Begin:
		return &works.Begin{
			Task:      id,
			Started:   number("started"),
			Node:      node,
			Partition: rapid.Int64().Draw(t, "partition"),
			Counted:   rapid.Bool().Draw(t, "counted"),
			Expected:  number("expected"),
		}
	case *works.Bucket:
		return &works.Bucket{
			Task:     id,
			Started:  number("started"),
			Node:     node,
			Ended:    number("ended"),
			Done:     number("done"),
			Failed:   number("failed"),
			Skipped:  number("skipped"),
			Errors:   genPayload.Draw(t, "errors"),
			Returned: number("returned"),
			Want:     rapid.Bool().Draw(t, "want"),
		}
	case *works.Permits:
		return &works.Permits{
			Task:    id,
			Started: number("started"),
			Node:    node,
			Counter: genText.Draw(t, "counter"),
			Items:   rapid.SliceOfN(rapid.Uint64(), 1, 5).Draw(t, "items"),
		}
	case *works.Reset:
		return &works.Reset{Task: id, What: rapid.Int64().Draw(t, "what"), Seen: number("seen")}
	case *works.Rerun:
		return &works.Rerun{Task: id, Seen: number("seen")}
	case *works.Show:
		return &works.Show{Task: id, Plan: rapid.Bool().Draw(t, "plan"), Linear: rapid.Bool().Draw(t, "linear")}
	}
	return nil
}
