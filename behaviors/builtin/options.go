package builtin

import (
	"context"

	"taskledger/behaviors"
	"taskledger/task"
)

// Options configures the built-in behaviors of a node. The zero value runs those that need no permission.
type Options struct {
	Exec     ExecOptions
	HTTP     HTTPOptions
	Checksum ChecksumOptions
}

// Behaviors returns the built-in behaviors that the options allow, for engine.NodeConfig.Behaviors: Noop, Sleep and
// HTTP always, Exec if a program is allowed, and Checksum if there is a root.
func Behaviors(o Options) []task.Behavior {
	all := []task.Behavior{Noop(), Sleep(), HTTP(o.HTTP)}
	if len(o.Exec.Allow) > 0 {
		all = append(all, Exec(o.Exec))
	}
	if o.Checksum.Root != "" {
		all = append(all, Checksum(o.Checksum))
	}
	return all
}

// bind defines a behavior that refuses a submit with fields that P does not have, and binds fn to it.
func bind[P, R any](id string, fn func(ctx context.Context, params P) (R, error)) *behaviors.Bound[P, R] {
	b := behaviors.Define(id, &behaviors.Rules[P, R]{DisallowUnknownFields: true})
	return b.Bind(fn).(*behaviors.Bound[P, R])
}
