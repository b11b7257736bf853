package behaviors

import (
	"context"

	"taskledger/engine"
)

// Codes that the built-in behaviors give to failures, besides those of package events.
const (
	CodeExit       = "exit"       // the program ended with another exit code than 0
	CodeStatus     = "status"     // the server answered with another status than expected
	CodeNetwork    = "network"    // the server was not reached, or broke off
	CodeRefused    = "refused"    // what the operator of the node does not allow; final
	CodeNotFound   = "not-found"  // no such program or file; final
	CodePermission = "permission" // the node may not read or execute it; final
	CodeInvalid    = "invalid"    // parameters that make no sense to the system, such as a directory as a file; final
)

// BuiltinOptions configure the built-in behaviors of a node. The zero value runs those that need no permission.
type BuiltinOptions struct {
	Exec     ExecOptions
	HTTP     HTTPOptions
	Checksum ChecksumOptions
}

// Builtin returns the built-in behaviors for NodeConfig.Behaviors: Noop, Sleep and HTTP; Exec when a program is allowed;
// and Checksum when there is a root. A node does not advertise what it would only refuse.
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
	return &Bound[P, R]{Behavior: b, fn: fn}
}

// refuse is a final failure with a code.
func refuse(code string, err error) error { return Cancel(Code(code, err, nil)) }
