package main

import (
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
)

//go:embed scheduler.sh
var requests string

// design is the configuration of EventNative's scheduler design, as it stands there.
const design = "collections/testdata/design.yaml"

// scheduler sends the requests of EventNative's scheduler design to the listener of collections at an address. They
// find a token in the environment that the examples make in dir.
func scheduler(dir, environment, address string) error {
	file, err := filepath.Abs(design)
	if err != nil {
		return err
	}
	apply := "./taskledger sync apply '" + file + "'"
	cmd := exec.Command("bash", "-euc", environment+"\nURL="+address+"\n"+apply+"\n"+requests)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("requests of the scheduler design: %w: %s", err, out)
	}
	fmt.Println("the requests of EventNative's scheduler design do what the design says")
	return nil
}
