// Command measures prints what internal/archtest counts of each package of the module in the folder given, by default the one
// at hand, as a table of Markdown.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"taskledger/internal/archtest"
)

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(context.Background(), dir, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "measures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, out io.Writer) error {
	source, err := archtest.Load(os.DirFS(dir))
	if err != nil {
		return err
	}
	foreign, err := archtest.Exports(ctx, dir)
	if err != nil {
		return err
	}
	typed, err := source.Types(foreign)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| package | files | largest circle | lines | test lines | of these black box | exported names | widest interface in a field |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|")
	for _, m := range source.Measures(typed) {
		share, widest := "-", "-"
		if m.TestLines > 0 {
			share = fmt.Sprintf("%d %%", 100*m.BlackBox/m.TestLines)
		}
		if m.Widest > 0 {
			widest = fmt.Sprintf("%d, %s", m.Widest, m.WidestName)
		}
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %s | %d | %s |\n",
			m.Package, m.Files, m.Circle, m.Lines, m.TestLines, share, m.Exported, widest)
	}
	return nil
}
