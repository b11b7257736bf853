package mirror

import (
	"io"
	"log/slog"

	"taskledger/cmd/node/internal/mirror/trees"
)

// Config names the two directories of a mirror, and holds its choices. Its writers are required.
type Config struct {
	Source    string
	Target    string
	Limits    trees.Limits // bound the run; a zero field stands for that of the running mirror, or else for the default
	Dir       string       // keeps etcd and NATS; "" = a temporary directory
	Processes int          // have to be there before the work begins, this one included; 0 = 1
	Follow    bool         // the target follows the source once it is equal, until ctx ends
	Join      string       // names the directory of a running mirror, which this process joins; "" = it is the first
	// Invite returns the command line of one more process of a mirror of trees, whose servers are in a directory.
	Invite func(dir string, of trees.Params) string

	JSON bool      // writes the counts as one JSON object
	Out  io.Writer // receives the counts
	Err  io.Writer // receives lines that tell how far the work has come, and the first failures
	Log  *slog.Logger
}
