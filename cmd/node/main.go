// Command node is taskledger: the node that serves, and the command line that talks to it.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // for schedules, where the system has no data of time zones

	"taskledger/cmd/node/internal/cli"
	"taskledger/cmd/node/internal/firstprocess"
)

// gcPercent lets the heap grow to three times its live part before a collection: a busy node has little live memory and
// allocates much. GOGC overrides it.
const gcPercent = 200

func main() {
	if code, first := firstprocess.Run(); first {
		os.Exit(code)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ignored := signal.Ignored(os.Interrupt) // as in the background of a shell that is no terminal's
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Once the first signal has been taken, a second one does what signals do by default: it ends the process.
	context.AfterFunc(ctx, func() {
		if ignored { // stop would have the second interrupt ignored
			interrupts := make(chan os.Signal, 1)
			signal.Notify(interrupts, os.Interrupt)
			go endAt(interrupts)
		}
		stop()
	})
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	os.Exit(cli.Main(ctx, cli.Program{
		Name: cli.StartedAs(executable, os.Args[0]),
		Args: os.Args[1:],
		In:   os.Stdin,
		Out:  os.Stdout,
		Err:  os.Stderr,
	}))
}

// endAt ends the process at the next interrupt, with the exit code that shells give to one.
func endAt(interrupts <-chan os.Signal) {
	<-interrupts
	os.Exit(128 + int(syscall.SIGINT))
}
