package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// advertFile tells other processes of the same user where the servers of a directory listen.
const advertFile = "cluster.json"

// Advertised is how other processes on this machine reach running servers.
type Advertised struct {
	Etcd []string `json:"etcd"`           // endpoints
	NATS string   `json:"nats,omitempty"` // URL with the token; "" = no NATS
}

// Advertise writes the addresses into the directory, readable by the user alone, until Close: another process joins with
// ReadAdvertised.
func (s *Servers) Advertise() error {
	text, err := json.Marshal(Advertised{Etcd: []string{s.EtcdEndpoint()}, NATS: s.NATSURL()})
	if err != nil {
		return fmt.Errorf("advertise: %w", err)
	}
	if err := replaceFile(filepath.Join(s.dir, advertFile), text); err != nil {
		return fmt.Errorf("advertise: %w", err)
	}
	return nil
}

// ReadAdvertised returns what the servers on dir advertise. It wraps fs.ErrNotExist when none do. After a crash it returns
// addresses where nobody listens, until servers start on dir again.
func ReadAdvertised(dir string) (Advertised, error) {
	var a Advertised
	text, err := os.ReadFile(filepath.Join(dir, advertFile))
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return Advertised{}, fmt.Errorf("no running cluster advertised in %s: %w", dir, err)
	}
	return a, nil
}

func withdraw(dir string) error {
	if err := os.Remove(filepath.Join(dir, advertFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("withdraw advertised addresses: %w", err)
	}
	return nil
}

// replaceFile writes the file whole or not at all, for the user alone. Both files of this package can be made again, so
// a crash may undo it.
func replaceFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
