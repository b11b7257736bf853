package frame

// Mask combines data with the sequence of a seed.
func Mask(data []byte, seed uint32) { mask(data, seed) }
