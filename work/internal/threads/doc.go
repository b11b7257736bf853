// Package threads carries out the items of an iterator with several threads: one goroutine fetches, and up to 256
// process. Two items for each thread wait ready, so fetching goes on while items are processed, and no further; with
// one thread the iterator is one item ahead. Package order says which item may be processed next.
//
// The iterator, the function of keys and the one that processes belong to somebody else. Whatever they do, Run returns:
// an error, a panic and the end of their goroutine are told apart, and an iterator that does not return when it is told
// to stop is left behind after a grace, is named in the error, and counted until it returns. A function that processes
// is waited for: only its end tells what became of its item.
package threads
