package behaviors

import (
	"context"

	"taskledger/engine"
)

// Codes that the built-in behaviors give to failures, beside the Code constants of package events.
const (
	CodeExit       = "exit"       // the program ended with another exit code than 0
	CodeStatus     = "status"     // the server answered with another status than expected
	CodeNetwork    = "network"    // the server could not be reached, or broke off
	CodeRefused    = "refused"    // the operator of the node does not allow it; final
	CodeNotFound   = "not-found"  // there is no such program or file; final
	CodePermission = "permission" // the node may not read or execute it; final
	CodeInvalid    = "invalid"    // the parameters make no sense to the system, such as a directory in place of a file; final
)

// BuiltinOptions configure the built-in behaviors of a node. The zero value runs those that need no permission.
type BuiltinOptions struct {
	Exec     ExecOptions
	HTTP     HTTPOptions
	Checksum ChecksumOptions
}

// Builtin returns the built-in behaviors that the options allow, for engine.NodeConfig.Behaviors: Noop, Sleep and HTTP always, Exec
// if a program is allowed, and Checksum if there is a root.
func Builtin(o BuiltinOptions) []engine.Behavior {
	all := []engine.Behavior{Noop(), Sleep(), HTTP(o.HTTP)}
	if len(o.Exec.Allow) > 0 {
		all = append(all, Exec(o.Exec))
	}
	if o.Checksum.Root != "" {
		all = append(all, Checksum(o.Checksum))
	}
	return all
}

func bindBuiltin[P, R any](b *Behavior[P, R], fn func(ctx context.Context, params P) (R, error)) *Bound[P, R] {
	b.strict = !isNone[P]() // who gives parameters to noop wants them stored
	return &Bound[P, R]{Behavior: b, fn: fn}
}

// refuse is a final failure with a code.
func refuse(code string, err error) error { return Cancel(Code(code, err, nil)) }
