package events

// arena hands out values of one kind that are all taken back at once. The zero arena is empty.
type arena[T any] struct {
	chunks [][]T
	used   int // values, in the order of chunks
}

// arenaChunk is the number of values made at once.
const arenaChunk = 128

// keep returns a copy of v in the arena.
func (a *arena[T]) keep(v T) *T {
	if a.used == len(a.chunks)*arenaChunk {
		a.chunks = append(a.chunks, make([]T, arenaChunk))
	}
	p := &a.chunks[a.used/arenaChunk][a.used%arenaChunk]
	a.used++
	*p = v
	return p
}

// reset takes back what was handed out.
func (a *arena[T]) reset() {
	for i := 0; a.used > 0; i++ {
		n := min(a.used, arenaChunk)
		clear(a.chunks[i][:n])
		a.used -= n
	}
}
