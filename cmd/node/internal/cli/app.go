package cli

import "taskledger/cmd/node/internal/output"

// app is what all commands share.
type app struct {
	Program
	settings *settings
	access   access
	serve    serveOptions
	output   string
	parsed   bool // the command line and the settings make sense
}

// print begins the output of a command; columns are the headings of a table.
func (a *app) print(columns ...string) *output.Printer {
	return output.New(a.Out, a.output == "json", columns...)
}
