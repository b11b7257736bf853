// Package checkpoints reads the notes that an auditor has kept, and tells how far each can be trusted.
package checkpoints

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/signing"
	"taskledger/ledger"
)

// Open reads a checkpoint and says in words how far it can be trusted. An error means that it cannot at all.
func Open(signed string, trust []string) (p ledger.Checkpoint, words string, err error) {
	text, by, err := signing.Open(signed, trust)
	if err != nil && !errors.Is(err, signing.ErrUntrusted) {
		err = &exitcode.UsageError{Problem: "--trust: " + err.Error()}
	}
	if err != nil {
		return p, "", err
	}
	switch {
	case len(by) > 0:
		words = "signed by " + strings.Join(by, ", ")
	case text == signed:
		words = "unsigned"
	default:
		words = "signature not checked: --trust names no key"
	}
	if p, err = ledger.ParseCheckpoint(text); err == nil {
		words += ", of " + p.Time.Format(time.RFC3339)
	}
	return p, words, err
}

// Read is Open of a file. One that holds no checkpoint is wrong usage.
func Read(file string, trust []string) (ledger.Checkpoint, string, error) {
	signed, err := os.ReadFile(file)
	if err != nil {
		return ledger.Checkpoint{}, "", &exitcode.UsageError{Problem: fmt.Sprintf("--checkpoint: %v", err)}
	}
	text, _, _ := signing.Open(string(signed), nil) // without keys to check it has no error
	if _, err := ledger.ParseCheckpoint(text); err != nil {
		return ledger.Checkpoint{}, "", &exitcode.UsageError{Problem: "--checkpoint: " + err.Error()}
	}
	return Open(string(signed), trust)
}
