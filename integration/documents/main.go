// Command documents does what documents say, as it stands there. It is run from the root of the project:
//
//	go run ./integration/documents                examples of the HTTP API, guides, and clients that are generated
//	go run ./integration/documents hour           what a newcomer does first: the quick start, guesses, and guides
//	go run ./integration/documents backups DIR    scripts of docs/backup.md, in a new directory
//	go run ./integration/documents otheruser      what another user of the machine is kept from
package main

import (
	"fmt"
	"os"
)

// commands are the parts by their names. Where a machine has users, there are more.
var commands = map[string]func(args []string) error{
	"":        examples,
	"hour":    hour,
	"backups": backups,
}

func main() {
	name, args := "", os.Args[1:]
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	command, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "documents: no command is named %q\n", name)
		os.Exit(2)
	}
	if err := command(args); err != nil {
		fmt.Fprintf(os.Stderr, "documents %s: %v\n", name, err)
		os.Exit(1)
	}
}
