// Package trees makes a directory, the target, equal to another one, the source, by the partitions of a work. It writes
// below the target alone, and follows no link out of either.
//
// Files and symbolic links are copied where they differ, by their size and SHA-256. Files and directories keep the bits
// of their mode that give permissions, and the time of their last change. A copy is written beside its place, under a
// name that ends in .part and holds a random number, so that two processes may copy the same file at the same time; it
// is synced, and then takes the place of what was there in one step. What the source does not have is deleted. Named
// pipes, sockets and devices of the source are left out, and whatever stands in their place stays.
//
// A directory that cannot be read fails as one item, the rest is done, and nothing in its place is deleted: what is
// below it is unknown.
package trees
