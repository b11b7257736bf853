package behaviors

import "context"

// Noop returns the behavior "noop", which does nothing and succeeds.
func Noop() *Bound[None, None] {
	return bindBuiltin(Define[None, None]("noop", nil), func(context.Context, None) (None, error) { return None{}, nil })
}
