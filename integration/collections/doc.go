// Package collections tests collections as their users see them: over the HTTP API of several nodes of one cluster.
package collections
