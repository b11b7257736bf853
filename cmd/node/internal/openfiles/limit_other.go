//go:build !unix

package openfiles

// Limit is how many files the process may open: the system has no such limit.
func Limit() (int, error) { return unlimited, nil }
