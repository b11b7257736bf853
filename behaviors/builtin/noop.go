package builtin

import (
	"context"

	"taskledger/behaviors"
)

// Noop returns the behavior "noop", which does nothing and succeeds. A submit may give it any JSON object: it is
// recorded and ignored.
func Noop() *behaviors.Bound[behaviors.None, behaviors.None] {
	b := behaviors.Define[behaviors.None, behaviors.None]("noop", nil)
	return b.Bind(noop).(*behaviors.Bound[behaviors.None, behaviors.None])
}

func noop(context.Context, behaviors.None) (none behaviors.None, err error) { return none, nil }
