package natsbus

import (
	"fmt"
	"strings"
)

const (
	// public starts the subjects that anybody may read: they travel without frame and authentication.
	public = "completed."
	// replies starts the subjects on which the server's word that nobody listens is believed.
	replies = "node."
)

// maxClusterBytes bounds the prefix of every subject.
const maxClusterBytes = 64

func checkCluster(name string) error {
	if name == "" || len(name) > maxClusterBytes {
		return fmt.Errorf("cluster name %q: %d bytes, want 1 to %d", name, len(name), maxClusterBytes)
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return fmt.Errorf("cluster name %q: byte %d is %q, want [a-z0-9-]", name, i, c)
		}
	}
	return nil
}

// checkSubject accepts tokens of [A-Za-z0-9_-] joined by dots.
func checkSubject(subject string) error {
	start := 0 // of the current token
	for i := range len(subject) {
		switch c := subject[i]; {
		case c == '.' && i > start:
			start = i + 1
		case !isToken(c):
			return fmt.Errorf("subject %q: byte %d is %q, want dot-separated tokens of [A-Za-z0-9_-]", subject, i, c)
		}
	}
	if start == len(subject) {
		return fmt.Errorf("subject %q: empty token at the end", subject)
	}
	return nil
}

// checkPattern accepts a subject whose tokens may also be "*", and whose last token may be ">".
func checkPattern(pattern string) error {
	literal := strings.Split(pattern, ".")
	for i, token := range literal {
		if token == "*" || token == ">" && i == len(literal)-1 {
			literal[i] = "any"
		}
	}
	return checkSubject(strings.Join(literal, "."))
}

func isToken(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
}
