package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"taskledger/natsbus"
)

// ErrArchived reports that a cluster was not created because NATS holds an archive of its name, which is another
// one's.
var ErrArchived = errors.New("there is an archive of another cluster of this name")

// archiveTimeout bounds the search for such an archive. Where NATS does not answer, the cluster is created.
const archiveTimeout = 3 * time.Second

// mayCreate returns an error that wraps ErrArchived where a cluster must not be created, since the archive of one
// with its name is there: etcd is empty because it has lost its data, or is not the one that is meant.
func mayCreate(ctx context.Context, over natsbus.Config) error {
	search, cancel := context.WithTimeout(ctx, archiveTimeout)
	defer cancel()
	found, err := natsbus.FindArchive(search, over)
	switch {
	case err != nil:
		log := over.Log
		if log == nil {
			log = slog.Default()
		}
		log.WarnContext(ctx,
			"a cluster is created, although it is not known whether NATS holds an archive of another one", "err", err)
		return nil
	case found == nil || found.Cluster == "" && found.Messages == 0:
		return nil
	}
	of := "of cluster " + found.Cluster
	if found.Cluster == "" {
		of = "that does not tell its cluster"
	}
	return fmt.Errorf("%w: stream %s %s, with %d messages: look whether etcd is the one that is meant and has its data, "+
		"or restore it from a backup; a new cluster beside that archive takes Config.New (serve: --new-cluster), "+
		"and is archived once the stream is removed", ErrArchived, found.Stream, of, found.Messages)
}
