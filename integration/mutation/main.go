// Command mutation breaks the code in the ways that its design forbids, one at a time, and fails when one is not
// noticed. The source is never touched: edited files are laid over the tree for a build. Run it from the root of the
// module:
//
//	go run ./integration/mutation test            every mutation: the one test that is there for it must fail
//	go run ./integration/mutation test commit     those whose name contains the text
//	go run ./integration/mutation hunt            every planted bug: a harness that makes faults must find it
//	go run ./integration/mutation hunt commit     those whose name contains the text
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "test":
			return test(ctx, args[1:], out)
		case "hunt":
			return hunt(ctx, args[1:], out)
		}
	}
	return fmt.Errorf("no command %q: want test [TEXT], or hunt [FLAGS] [TEXT], where hunt -h names the flags", args)
}
