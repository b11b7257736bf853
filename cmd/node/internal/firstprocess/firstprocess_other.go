//go:build !linux

// Package firstprocess lets the program be the first process of a container, which is one of Linux.
package firstprocess

// Run does nothing.
func Run() (code int, first bool) { return 0, false }
