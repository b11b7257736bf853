package filelogs

import "taskledger/filestore/internal/disk"

// OpenLayer is Open on a file layer, which nobody else uses.
func OpenLayer(l disk.Layer, cfg Config) (*Logs, error) { return open(l, cfg) }
