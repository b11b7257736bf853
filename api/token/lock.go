package token

import (
	"errors"
	"fmt"
	"os"
)

// Lock takes the lock on the file of tokens, and waits while another process holds it. A process that reads the file
// and writes it back must hold the lock, or it may lose what another one wrote. The lock is on a file of its own,
// PATH.lock, which stays: the file of tokens is replaced by each write. The system frees the lock of a process that has
// died. On systems without flock it does nothing.
func Lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the tokens: %w", err)
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the tokens: %w", err), f.Close())
	}
	return f.Close, nil
}
