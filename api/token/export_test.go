package token

// Hang has the reads of a file wait until free is closed, as a file system may.
func Hang(f *File, free <-chan struct{}) {
	inner := f.open
	f.open = func(path string, before stamp) (*table, error) {
		<-free
		return inner(path, before)
	}
}
