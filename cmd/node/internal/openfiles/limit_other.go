//go:build !unix

package openfiles

// Limit returns the number of files that the process may open: the system has no such limit.
func Limit() (int, error) { return unlimited, nil }
