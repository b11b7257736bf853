package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"taskledger/cluster"
	"taskledger/collections"
	"taskledger/engine"
)

//go:embed scheduler.sh
var requests string

// design is the configuration of EventNative's scheduler design, as it stands there.
const design = "collections/testdata/design.yaml"

// scheduler sends the requests of EventNative's scheduler design to the listener of collections at an address. The
// environment is that of the examples of the node in dir.
func scheduler(dir, environment, address string) error {
	if err := setDesign(filepath.Join(dir, "taskledger-data")); err != nil {
		return fmt.Errorf("set the collections of %s: %w", design, err)
	}
	cmd := exec.Command("bash", "-euc", environment+"\nURL="+address+"\n"+requests)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("requests of the scheduler design: %w: %s", err, out)
	}
	fmt.Println("the requests of EventNative's scheduler design do what the design says")
	return nil
}

// setDesign sets the collections of the design in the cluster of a data directory.
func setDesign(data string) (err error) {
	text, err := os.ReadFile(design)
	if err != nil {
		return err
	}
	file, _, err := collections.Parse(design, text)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	c, err := cluster.Open(ctx, cluster.Config{
		Dir:      data,
		Existing: true,
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		stop()
		return err
	}
	client, err := c.NewClient(engine.ClientConfig{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		stop()
		return errors.Join(err, c.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- client.Run(ctx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended, c.Close())
	}()
	for _, is := range file.Collections {
		if _, _, err := client.Schedules().Set(ctx, is.ID(), is.Definition(), 0); err != nil {
			return err
		}
	}
	return nil
}
