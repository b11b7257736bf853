// Package syncfile keeps the collections of a cluster as the file of a node says: serve --sync.
package syncfile

import (
	"context"
	"log/slog"
	"os"
	"time"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/input"
	"taskledger/collections"
	"taskledger/collections/apply"
)

const (
	// Every is the time between two tries to apply a file.
	Every = time.Minute
	// within bounds a try: a file of 10,000 collections takes a minute.
	within = 10 * time.Minute
)

// Read reads the file of a path. A file that cannot be read, and a bad one, is a *exitcode.UsageError, with a line for
// each problem.
func Read(ctx context.Context, path string) (apply.File, []collections.Warning, error) {
	if path == "-" {
		return apply.File{}, nil, &exitcode.UsageError{Problem: "--sync -: want a file, which is read again at SIGHUP"}
	}
	text, err := input.Read(ctx, "--sync "+path, path, nil, collections.MaxBytes)
	if err != nil {
		return apply.File{}, nil, err
	}
	file, warnings, err := apply.Read(path, text)
	if err != nil {
		err = &exitcode.UsageError{Problem: "--sync: " + err.Error()}
	}
	return file, warnings, err
}

// Applier applies a file when the node is ready, and as often as it is told to.
type Applier struct {
	Path    string
	Applier *apply.Applier
	// File, with Warnings, is the file as it was read at start.
	File     apply.File
	Warnings []collections.Warning
	Again    <-chan os.Signal // reads the file again, and applies it
	Log      *slog.Logger
	// After returns a channel that is sent to after so long. nil = by the clock.
	After func(time.Duration) <-chan time.Time
}

// Run applies files until ctx ends. What fails is logged, and tried again every minute, or when Again says so.
func (k *Applier) Run(ctx context.Context) {
	k.warn(ctx, k.Warnings)
	file, said := &k.File, ""
	for {
		var retry <-chan time.Time
		if file != nil {
			if err := k.apply(ctx, file); err == nil {
				file, said = nil, ""
			} else if ctx.Err() == nil {
				if text := err.Error(); text != said {
					k.Log.ErrorContext(ctx, "collections are not as the file says: it is tried again every minute",
						"file", k.Path, "err", err)
					said = text
				}
				retry = k.after(Every)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-retry:
		case <-k.Again:
			read, warnings, err := Read(ctx, k.Path)
			if err != nil {
				k.Log.ErrorContext(ctx, "the file of collections is not taken, and what was stays", "err", err)
				continue
			}
			k.warn(ctx, warnings)
			file, said = &read, ""
		}
	}
}

func (k *Applier) after(d time.Duration) <-chan time.Time {
	if k.After != nil {
		return k.After(d)
	}
	return time.After(d)
}

func (k *Applier) warn(ctx context.Context, warnings []collections.Warning) {
	for _, w := range warnings {
		k.Log.WarnContext(ctx, "the file of collections: "+w.String())
	}
}

// apply applies a file unless its hash is one of those that were applied.
func (k *Applier) apply(ctx context.Context, file *apply.File) error {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	is, err := k.Applier.Standing(ctx, file)
	if err != nil {
		return err
	}
	log := k.Log.With("file", k.Path, "hash", apply.Short(file.Hash))
	switch {
	case is.IsNewest():
		log.InfoContext(ctx, "the file of collections was applied last: nothing is compared")
		return nil
	case is.Applied != nil:
		const older = "the file of collections was applied before a newer one, and turns nothing back; sync apply FILE does"
		log.WarnContext(ctx, older, "applied", is.Applied.At.Time(), "newest", apply.Short(is.Newest.Hash),
			"newest_file", is.Newest.File, "newest_applied", is.Newest.At.Time(), "newest_by", is.Newest.By)
		return nil
	}
	compared, err := k.Applier.Compare(ctx, *file)
	if err != nil {
		return err
	}
	for _, w := range compared.Warnings {
		log.WarnContext(ctx, "the file of collections: "+w)
	}
	done, err := k.Applier.Apply(ctx, compared)
	n := done.Counts()
	log = log.With("added", n[collections.Added], "changed", n[collections.Changed], "removed", n[collections.Removed])
	if err != nil {
		log.WarnContext(ctx, "a part of the file of collections may have been applied")
		return err
	}
	log.InfoContext(ctx, "the file of collections was applied")
	return nil
}
