// Command guest makes the history of the seed that is its argument and writes it to standard output, in gob. It is
// compiled to WebAssembly and run by the machine.
package main

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"

	"taskledger/integration/simulation/world"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// gcPercent lets the heap grow far before it is searched: a history is short.
const gcPercent = 400

func run(args []string) error {
	debug.SetGCPercent(gcPercent)
	if len(args) != 1 {
		return fmt.Errorf("%d arguments, want a seed", len(args))
	}
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	h, err := world.Run(seed)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	if err := gob.NewEncoder(out).Encode(h); err != nil {
		return err
	}
	return out.Flush()
}
