package store

// Durable is a Store that tells how safely it keeps what it has answered.
type Durable interface {
	// Durability returns a word for it; "" = it is not known.
	Durability() string
}
