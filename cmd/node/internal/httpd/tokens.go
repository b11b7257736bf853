package httpd

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"taskledger/api/token"
)

// TokensIn is the file of tokens in a data directory.
func TokensIn(dir string) string { return filepath.Join(dir, "tokens.json") }

// readTokens reads the file of tokens of a path; "" = the one in the data directory, which is made where it is not
// there yet. The user of the machine has a token that is drawn at each start.
func readTokens(path, dir string, log *slog.Logger) (k secrets, err error) {
	if path == "" {
		path = TokensIn(dir)
		if err := makeTokens(path); err != nil {
			return k, err
		}
	}
	file, err := token.Open(path, func(err error) { log.Error("the tokens of the API cannot be read: those of before hold", "err", err) })
	if err != nil {
		return k, err
	}
	k.file = file
	if dir != "" {
		k.own = "tl_" + rand.Text()
	}
	return k, nil
}

// makeTokens makes a file of no tokens, if there is none.
func makeTokens(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil // it is there; any other error is told when the file is opened
	}
	unlock, err := token.Lock(path)
	if err != nil {
		return err
	}
	if _, is := os.Stat(path); errors.Is(is, fs.ErrNotExist) { // no other process has made the file meanwhile
		err = token.Write(path, nil)
	}
	return errors.Join(err, unlock())
}

// secrets are the tokens of the file, and the one of the node's own user.
type secrets struct {
	file *token.File
	own  string
}

var local = token.Token{Name: token.Local, Role: token.Admin}

// Find implements api.Tokens.
func (k secrets) Find(secret string) *token.Token {
	if k.own != "" && secret == k.own { // nobody learns a drawn text of 130 bits by how long this takes
		return &local
	}
	return k.file.Find(secret)
}

// CheckTokens counts the tokens of a file, or says why it cannot be used.
func CheckTokens(path string) (int, error) {
	all, err := token.Read(path)
	return len(all), err
}
