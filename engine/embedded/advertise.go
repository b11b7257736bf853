package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"taskledger/internal/advertised"
)

// Advertise writes where the servers are, and the HTTP API if there is one, into the directory, readable by the user
// alone, until Close: another process joins with cluster.Config.Dir. Only the command line has an API to name; other
// programs pass nil.
func (s *Servers) Advertise(api *advertised.API) error {
	at := advertised.Servers{
		Data: s.member,
		Etcd: s.etcdEndpoints(),
		NATS: s.NATSURL(),
		NKey: s.NATSNKey(),
	}
	if api != nil {
		at.API = *api
	}
	text, err := json.Marshal(at)
	if err != nil {
		return fmt.Errorf("advertise: %w", err)
	}
	if err := replaceFile(advertised.Path(s.dir), text); err != nil {
		return fmt.Errorf("advertise: %w", err)
	}
	return nil
}

// Served reports whether servers have ever been started on the directory.
func Served(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, seedFile))
	return err == nil
}

func withdraw(dir string) error {
	if err := os.Remove(advertised.Path(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("withdraw advertised addresses: %w", err)
	}
	return nil
}

// replaceFile writes the file whole or not at all, for the user alone. A crash may undo it, and does not leave it
// empty.
func replaceFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
