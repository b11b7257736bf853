package command

// Ownership describes the owner of the shard to the nodes that report their attempts and offers.
type Ownership struct {
	Shard Shard

	Self  string // session of the owner
	Epoch int64  // of its ownership
	Began uint64 // the first entry of that
	// OffersAnswered is called when a node has received the answers to its offers up to a number.
	OffersAnswered func(sender string, through uint64)
}
