package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/infiles"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/filestore/filejournal"
)

// reader is the part of a client that commands need which look at what was.
type reader interface {
	operations.Historian
	Shards(ctx context.Context) ([]engine.ShardInfo, error)
}

// readerCommand makes a command that looks at what was. It asks a cluster, or opens the files of a data directory where
// no node runs.
func (a *app) readerCommand(
	c *cobra.Command, waits func() bool, run func(ctx context.Context, r reader, args []string) error,
) *cobra.Command {
	a.clientCommand(c, waits, func(ctx context.Context, client operations.Client, args []string) error {
		return run(ctx, client, args)
	})
	ask := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		files, err := a.readFiles()
		if err != nil {
			return a.withFilesRemedy(err)
		}
		if files == nil {
			return ask(cmd, args)
		}
		if unsettled := files.Unsettled(); unsettled != nil {
			tellUnsettled(a.Err, a.Name, a.access.dir, unsettled)
		}
		ctx, limit := cmd.Context(), a.access.timeout
		if !waits() {
			limit = cmp.Or(limit, answerWithin)
		}
		if limit > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeoutCause(ctx, limit, exitcode.ErrTimeout)
			defer stop()
		}
		return a.withFilesRemedy(errors.Join(run(ctx, files, args), files.Close()))
	}
	return c
}

// withFilesRemedy adds what to do to damage of files on which no node starts.
func (a *app) withFilesRemedy(err error) error {
	if !errors.Is(err, events.ErrDamaged) {
		return err
	}
	what := "the directory " + a.access.dir
	if damaged, is := errors.AsType[*filejournal.DamagedError](err); is {
		what = fmt.Sprintf("%s where a backup has it as it was, else %s as a whole,", damaged.File, what)
	}
	return fmt.Errorf("%w; remedy: restore %s from a backup", err, what)
}

// readFiles opens the store in the files of --data; nil where there is none, or where a node runs, which is asked then.
func (a *app) readFiles() (*infiles.Reading, error) {
	if len(a.access.addresses.Etcd) > 0 {
		return nil, nil
	}
	if holds, err := infiles.Holds(a.access.dir); !holds {
		return nil, err
	}
	files, err := infiles.OpenToRead(a.access.dir, a.access.addresses.ID)
	if errors.Is(err, filejournal.ErrInUse) {
		return nil, nil
	}
	return files, err
}
