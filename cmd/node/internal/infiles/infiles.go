// Package infiles opens what a node stands on whose store is in files: store, archive and logs of tasks in its data
// directory, and a bus in memory. One process at a time has them.
package infiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/filelogs"
	"taskledger/internal/advertised"
	"taskledger/store"
	"taskledger/store/membus"
)

// What lies below the data directory beside the journal.
const (
	archiveDir = "archive"
	logsDir    = "logs"
)

// Config says how to open a data directory. The zero value opens or creates any store, without logs of tasks.
type Config struct {
	Store filestore.Config
	Files filejournal.Options
	Logs  *filelogs.Config // nil = none are kept; its Cluster does not count
}

// Files are the parts of a node on a data directory.
type Files struct {
	Store   *filestore.Store
	Archive *filearchive.Archive
	Logs    *filelogs.Logs // nil = none are kept
	Bus     *membus.Bus

	dir     string
	socket  string
	closers []func() error // the first one opened is closed last
	close   func() error
}

// ErrOtherStore reports a data directory with a store of another kind.
var ErrOtherStore = errors.New("directory holds a store of another kind")

// ErrInUse reports a data directory on which another program runs.
var ErrInUse = filejournal.ErrInUse

// Holds reports whether a store in files was ever created in a directory, also if it is damaged. It returns an error
// where that cannot be seen, which may be a want of permission.
func Holds(dir string) (bool, error) {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look for a store in files: %w", err)
	}
	return slices.ContainsFunc(names, func(e fs.DirEntry) bool {
		return e.Name() == "format" || strings.HasPrefix(e.Name(), "log-")
	}), nil
}

// InUse reports whether a program has the store of a directory.
func InUse(dir string) bool { return filejournal.CheckFree(dir) != nil }

// CheckFree returns an error that wraps filejournal.ErrInUse where a program runs on the store of a directory that
// nobody can ask: a node that serves advertises its API there. A node that starts is such a program for a moment.
func CheckFree(dir string) error {
	if _, err := advertised.Read(dir); err == nil {
		return nil
	}
	if err := filejournal.CheckFree(dir); err != nil {
		return fmt.Errorf("%w, by a program without an API, such as one that has taskledger/engine/local: that alone can be asked", err)
	}
	return nil
}

// Open opens the parts in a directory, which it makes where it is missing. It wraps filejournal.ErrInUse and what else
// filestore.Open wraps. The caller closes them, after the node has ended.
func Open(dir string, cfg Config) (*Files, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	f := &Files{dir: dir}
	f.close = sync.OnceValue(f.shutDown)
	if err := f.open(cfg); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Files) open(cfg Config) (err error) {
	holds, err := Holds(f.dir)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if id := cfg.Store.ID; id != "" && !holds { // none is created
		return fmt.Errorf("open store: %w: %s holds none, and that of id %s was expected",
			filestore.ErrOtherCluster, f.dir, id)
	}
	if err := advertised.CheckClosed(f.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open store: %w", err)
	}
	cfg.Store.Beside = func(c store.Cluster) (func() error, error) { return f.beginBeside, f.lookBeside(c.ID, cfg.Logs) }
	if f.Store, err = filestore.Open(f.dir, cfg.Store, cfg.Files); err != nil {
		return err
	}
	f.closers = append(f.closers, f.Store.Close)
	// What a process that was killed has advertised is void from now on.
	if err := advertised.Withdraw(f.dir); err != nil {
		return err
	}
	if f.socket, err = advertised.MakeSocketDir(f.dir, "api"); err != nil {
		return err
	}
	f.closers = append(f.closers, func() error { return os.RemoveAll(filepath.Dir(f.socket)) })
	f.Bus = membus.New()
	f.closers = append(f.closers, f.Bus.Close)
	return nil
}

// lookBeside looks at archive and logs, which may be another cluster's than the store, and changes nothing.
func (f *Files) lookBeside(id string, logs *filelogs.Config) (err error) {
	if f.Archive, err = filearchive.Look(filepath.Join(f.dir, archiveDir), id); err != nil {
		return err
	}
	f.closers = append(f.closers, f.Archive.Close)
	if logs == nil {
		return nil
	}
	of := *logs
	of.Cluster = id
	if f.Logs, err = filelogs.Look(filepath.Join(f.dir, logsDir), of); err != nil {
		return err
	}
	f.closers = append(f.closers, f.Logs.Close)
	return nil
}

// beginBeside makes archive and logs ready to be written.
func (f *Files) beginBeside() error {
	if err := f.Archive.Begin(); err != nil {
		return err
	}
	if f.Logs == nil {
		return nil
	}
	return f.Logs.Begin()
}

// Dir returns the data directory.
func (f *Files) Dir() string { return f.dir }

// SocketPath returns where to make a socket that nobody but the user reaches.
func (f *Files) SocketPath(name string) string { return filepath.Join(filepath.Dir(f.socket), name) }

// Advertise tells other processes of the user where the API of the node is, until Close.
func (f *Files) Advertise(api *advertised.API) error {
	at := advertised.Servers{Data: f.Store.Cluster().ID, Store: advertised.InFiles}
	if api != nil {
		at.API = *api
	}
	if err := advertised.Write(f.dir, at); err != nil {
		return err
	}
	f.closers = append(f.closers, func() error { return advertised.Withdraw(f.dir) })
	return nil
}

// Close closes the parts. Calls after the first return what it returned.
func (f *Files) Close() error { return f.close() }

func (f *Files) shutDown() error {
	var errs []error
	for i := len(f.closers) - 1; i >= 0; i-- {
		errs = append(errs, f.closers[i]())
	}
	return errors.Join(errs...)
}
