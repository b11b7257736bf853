package store

// Durable is a Store that tells how safely it keeps what it has answered.
type Durable interface {
	// Durability returns a word for it; "" = it is not known.
	Durability() string
}

// InFiles reports whether a store has files of its own, so that a copy of their directory is its backup.
func InFiles(s any) bool {
	d, tells := s.(Durable)
	return tells && d.Durability() != ""
}
