package cli

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"taskledger/cmd/node/internal/logqueue"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/progress"
)

// lastWords bounds how long the end of a node waits until its last lines are written: they say why it ends.
const lastWords = time.Second

// app holds the state that all commands share.
type app struct {
	Program
	settings *settings
	access   access
	serve    serveOptions
	sync     syncing
	output   string
	parsed   bool             // the command line and the settings make sense
	log      *logqueue.Writer // of a node; nil before it serves, and in other commands
	said     *logqueue.Writer // of a node, what it prints
	terminal bool             // somebody reads at once what a node prints
}

// inBackground lets nothing that a node says from now on wait for whoever reads it.
func (a *app) inBackground() {
	a.log = logqueue.New(a.Err, func(dropped int64) []byte {
		var line bytes.Buffer
		if log, err := a.serve.logger(&line); err == nil {
			log.Log(context.Background(), max(a.serve.logLevel, slog.LevelWarn), "lines were dropped: nobody read them in time", "dropped", dropped)
		}
		return line.Bytes()
	})
	a.said, a.terminal = logqueue.New(a.Out, nil), progress.IsTerminal(a.Out)
	a.Err, a.Out = a.log, a.said
	go a.log.Run()
	go a.said.Run()
}

// flush waits a moment until what a node said is written.
func (a *app) flush() {
	if a.log == nil {
		return
	}
	until := time.Now().Add(lastWords)
	a.log.Close(lastWords)
	a.said.Close(time.Until(until))
}

// print begins the output of a command; columns are the headings of a table.
func (a *app) print(columns ...string) *output.Printer {
	return output.New(a.Out, a.output == "json", columns...)
}
