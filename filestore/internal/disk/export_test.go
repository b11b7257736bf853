package disk

// MakeDirWith is MakeDir with another function that syncs a directory.
func MakeDirWith(dir string, sync func(dir string) error) error { return makeDir(dir, sync) }
