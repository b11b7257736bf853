// Package signing signs and checks notes: text with the signatures of named keys below it, in the format of
// golang.org/x/mod/sumdb/note.
package signing

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// NewKey writes a new private key to a file, which must not exist, and returns the public key that belongs to it. The
// name, without blanks and plus signs, stands in every signature, with a number that tells keys of one name apart.
func NewKey(file, name string) (public string, err error) {
	private, public, err := note.GenerateKey(rand.Reader, name)
	if err == nil {
		_, err = note.NewSigner(private) // which, unlike the other, refuses what makes no name
	}
	if err != nil {
		return "", fmt.Errorf("make key: %w", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("make key: %w", err)
	}
	_, err = f.WriteString(private + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("make key: %w", err)
	}
	return public, nil
}

// Signer reads the private keys in a file, one a line, and returns what signs a text with all of them. The text must
// end in a newline; what is returned is a note. Two keys are for a change from one to the other.
func Signer(file string) (sign func(text string) (string, error), err error) {
	lines, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	var signers []note.Signer
	for line := range strings.Lines(string(lines)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		s, err := note.NewSigner(line)
		if err != nil {
			return nil, fmt.Errorf("key in %s: %w", file, err)
		}
		signers = append(signers, s)
	}
	if len(signers) == 0 {
		return nil, fmt.Errorf("%s holds no key", file)
	}
	return func(text string) (string, error) {
		signed, err := note.Sign(&note.Note{Text: text}, signers...)
		return string(signed), err
	}, nil
}

// ErrUntrusted reports a note without a valid signature of a trusted key.
var ErrUntrusted = errors.New("no signature of a trusted key")

// Open returns the text of a note and which of the trusted public keys, by name and number, have signed it. Without
// trusted keys it checks no signature and returns none. It wraps ErrUntrusted.
func Open(signed string, trusted []string) (text string, signedBy []string, err error) {
	if len(trusted) == 0 {
		text, _, _ = strings.Cut(signed, "\n\n")
		return strings.TrimSuffix(text, "\n") + "\n", nil, nil
	}
	var known []note.Verifier
	for i, key := range trusted {
		v, err := note.NewVerifier(key)
		if err != nil { // it may be a private one, and is not repeated
			return "", nil, fmt.Errorf("trusted key %d is no public key: %w", i+1, err)
		}
		known = append(known, v)
	}
	n, err := note.Open([]byte(signed), note.VerifierList(known...))
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	for _, s := range n.Sigs {
		signedBy = append(signedBy, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
	}
	return n.Text, signedBy, nil
}
