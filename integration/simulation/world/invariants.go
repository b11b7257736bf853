package world

// The invariants that the world itself sees broken, as package check names them.
const (
	served       = "3 served"
	acknowledged = "7 acknowledged"
	ended        = "8 ended"
	clean        = "13 clean"
)
