// Package works is the front of works, over projection/works: a work is a task whose items are processed bucket by
// bucket. It has the commands by which attempts take buckets and permits, what owners record unasked, and what a work
// is shown as.
package works
