// Package testkit gives tests what many packages need and none of them links: repetitions and random values, hostile
// bytes for decoders, calls that must not wait, attempts without an engine, and builds from edited sources.
package testkit
