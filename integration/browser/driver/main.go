// Command driver does what integration/browser says, which builds and runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

// within bounds a run: a browser that stands still is no reason to wait for ever.
const within = 20 * time.Minute

func run(ctx context.Context, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	flags := flag.NewFlagSet("browser", flag.ContinueOnError)
	only := flags.String("only", "", "run the checks, or show the pages, alone whose name has one of these texts, parted by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := &stage{
		dir:      os.Getenv("DRIVER_DIR"),
		patterns: strings.Fields(os.Getenv("DRIVER_PAGES")),
		only:     *only,
	}
	defer s.close()
	switch {
	case flags.NArg() == 0:
		return s.check(ctx)
	case flags.NArg() == 2 && flags.Arg(0) == "sheets":
		return s.sheets(ctx, flags.Arg(1))
	}
	return fmt.Errorf("want no arguments, or: sheets DIR")
}
