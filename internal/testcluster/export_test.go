package testcluster

import "log/slog"

// Swept returns a log, and what reports whether a key is mail that a client has left behind by its lines.
func Swept(to slog.Handler) (*slog.Logger, func(key string) bool) {
	s := new(swept)
	return slog.New(handler{to, s}), s.has
}
