// Package segmentation says how a partition of a work cuts its set of items into buckets. A Plan is data: it is
// recorded once, and the bounds of each bucket follow from the plan and the number of the bucket alone, so that no
// bucket is stored before it is worked on.
//
// Buckets are numbered from 1 to Plan.Total, which is exact, and the lowest number has the lowest keys. No number is 0,
// so 0 can stand for no bucket.
//
// Keys of text are compared by their bytes. For valid UTF-8 this is the order of code points, which is that of the
// collations named "C", "POSIX" and "BINARY" of databases. A source that compares by another collation, such as one
// that ignores case, must not select items by the bounds of an interval with its own comparison. Keys may hold any
// bytes, and need not be UTF-8.
//
// The kinds None, Interval and OID cover every key, each in exactly one bucket. Numeric covers every number of its
// range that way. Prefix, Exact and Explicit cover what they list and nothing else: an item beside it is in no bucket,
// and no error tells of it. Of all kinds, no key is in two buckets.
//
// A segmentation should cut by a key that does not change while the work runs: an item whose key changes can move to a
// bucket that is done, or be met twice.
//
// Everything here is pure and may be used concurrently.
package segmentation
