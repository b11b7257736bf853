package filejournal

// Waiting returns how many entries wait to be written.
func (j *Journal) Waiting() int {
	j.queue.Lock()
	defer j.queue.Unlock()
	return len(j.waiting)
}
