package builtin

import "taskledger/behaviors"

// Codes that the built-in behaviors give to failures, beside the Code constants of package events.
const (
	CodeExit       = "exit"       // the program ended with another exit code than 0
	CodeStatus     = "status"     // the server answered with another status than expected
	CodeNetwork    = "network"    // the server could not be reached, or broke off
	CodeRefused    = "refused"    // the operator of the node does not allow it; final
	CodeNotFound   = "not-found"  // there is no such program or file; final
	CodePermission = "permission" // the node may not read or execute it; final
	CodeInvalid    = "invalid"    // the system rejects the parameters, such as a directory in place of a file; final
)

// refuse returns a final failure with a code.
func refuse(code string, err error) error { return behaviors.Cancel(behaviors.Code(code, err, nil)) }
