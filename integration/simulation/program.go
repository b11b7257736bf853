//go:build faketime

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"time"
	_ "time/tzdata" // for schedules, where the machine has no data of time zones

	"taskledger/integration/simulation/world"
)

// main makes the history of the seed that is the program's argument, and writes it to standard output, in gob. Package
// build compiles it with the build tag, and runs it.
func main() {
	if err := makeHistory(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// lifetime bounds what the clock shows. A history that is still not made hangs.
const lifetime = 20 * time.Minute

// computes bounds, in seconds, what a history takes of a processor: how long that lasts is the machine's affair. A
// program that computes for ever is told so by a signal, prints its goroutines, and ends.
const computes = 60

func makeHistory(args []string) error {
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: computes, Max: 2 * computes}); err != nil {
		return fmt.Errorf("bound the time of a processor: %w", err)
	}
	if len(args) != 1 {
		return fmt.Errorf("%d arguments, want a seed", len(args))
	}
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	rand.Reader = random(seed)
	time.AfterFunc(lifetime, func() { panic("the history is not made after " + lifetime.String()) }) // prints what waits
	h, err := world.Run(seed)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := gob.NewEncoder(&out).Encode(h); err != nil {
		return err
	}
	_, err = os.Stdout.Write(out.Bytes())
	return err
}

func random(seed uint64) *mathrand.ChaCha8 {
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	return mathrand.NewChaCha8(key)
}
