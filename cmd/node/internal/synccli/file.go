package synccli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/input"
	"taskledger/cmd/node/internal/output"
	"taskledger/collections"
	"taskledger/collections/apply"
)

// askOf is Ask for a command that has a file of collections as its argument. The file is read before the cluster is
// looked for, so that its problems are told without one.
func (t *Terminal) askOf(
	c *cobra.Command, waits func() bool, run func(ctx context.Context, client *Client, file *apply.File) error,
) *cobra.Command {
	var file apply.File
	t.Ask(c, waits, func(ctx context.Context, client *Client, _ []string) error { return run(ctx, client, &file) })
	ask := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if file, err = t.read(cmd.Context(), args[0]); err != nil {
			return err
		}
		return ask(cmd, args)
	}
	return c
}

// read reads a file, and prints its warnings and problems.
func (t *Terminal) read(ctx context.Context, path string) (apply.File, error) {
	name, what := path, "file "+path
	if path == "-" {
		name, what = "standard input", "standard input"
	}
	text, err := input.Read(ctx, what, path, t.In, collections.MaxBytes)
	if err != nil {
		return apply.File{}, err
	}
	file, warnings, err := apply.Read(name, text)
	for _, w := range warnings {
		fmt.Fprintf(t.Err, "warning: %s\n", output.Clean(w.String()))
	}
	if invalid, is := errors.AsType[*collections.InvalidFileError](err); is {
		for _, p := range invalid.Problems {
			fmt.Fprintln(t.Err, output.Clean(p.String()))
		}
		n := len(invalid.Problems) + invalid.More
		err = &exitcode.UsageError{Problem: fmt.Sprintf("%s: problems: %d; nothing was changed", name, n)}
	}
	return file, err
}
