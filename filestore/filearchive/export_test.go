package filearchive

import "taskledger/filestore/internal/disk"

// OpenLayer is Open on a file layer, which nobody else uses.
func OpenLayer(l disk.Layer, cluster string) (*Archive, error) { return open(l, cluster) }
