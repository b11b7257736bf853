// Package uicli is the command that lets the user of a machine into the dashboard of the node there.
package uicli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/remote"
	"taskledger/api/ui"
	"taskledger/cluster"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/internal/advertised"
	"taskledger/store"
)

// Terminal connects the command to the command line.
type Terminal struct {
	Out  io.Writer
	JSON func() bool
	Dir  func() string // of the node's data
}

// Told is the output of the command as JSON.
type Told struct {
	Dashboard string    `json:"dashboard"` // address of the first page
	Link      string    `json:"link"`      // address that logs in once
	Expires   time.Time `json:"expires"`
}

// Command returns the command.
func (t *Terminal) Command() *cobra.Command {
	return &cobra.Command{
		Use:   "ui",
		Short: "Print a link that logs you in to the dashboard of the node on --data",
		Long: `The link opens a page with one button, which begins a session of the user of this machine, who may do everything. It can be
used once, within ten minutes. Whoever has a token of the API logs in with that instead.`,
		Args: flags.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return t.run(c.Context()) },
	}
}

func (t *Terminal) run(ctx context.Context) error {
	dir := t.Dir()
	at, err := advertised.Read(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w on %s: %w", cluster.ErrNoNode, dir, err)
	case err != nil:
		return err
	case at.URL == "":
		return fmt.Errorf("%w: the node on %s has no HTTP API that a browser reaches: start it with --api ADDRESS:PORT",
			store.ErrUnavailable, dir)
	}
	asked := at.URL
	if path := at.Socket(); path != "" { // its certificate may be of another name than the address here
		asked = "unix:" + path
	}
	client, err := remote.Open(ctx, remote.Options{URL: asked, Token: at.Token})
	if errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil { // a killed node leaves its addresses behind
		return fmt.Errorf("%w on %s any more: %w", cluster.ErrNoNode, dir, err)
	}
	if err != nil {
		return err
	}
	defer client.Close()
	link, err := client.LoginLink(ctx)
	if err != nil {
		return err
	}
	told := Told{at.URL + ui.Root, at.URL + link.Path, link.Expires}
	if t.JSON() {
		return json.NewEncoder(t.Out).Encode(told)
	}
	_, err = fmt.Fprintf(t.Out, "%s\nfor one login, until %s\n", told.Link, output.Time(events.MillisOf(told.Expires)))
	return err
}
