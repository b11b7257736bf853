package storetest

// Strays writes keys that no method of a store writes, as a copy by hand leaves them: they have no lease, and nothing
// guards them. Each method returns the key as the store names it.
type Strays interface {
	// Entry writes the key of an entry, over what is there.
	Entry(shard int, number uint64, data string) (key string)
	// NoEntry writes a key into a journal that no entry can have. It sorts behind those of all entries.
	NoEntry(shard int, data string) (key string)
	// OfShard writes a key of each kind that is kept by shard: into its journal, for one.
	OfShard(shard int) (keys []string)
	// Node writes the key of a node, over what is there.
	Node(id, data string) (key string)
}
