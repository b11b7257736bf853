package tasklog

// parts is by how many chunks the writer knows a full log.
const parts = 64

// kept counts what the store has of a log, in few chunks: what a writer trims, and remembers, does not grow with the
// number of its batches.
type kept struct {
	chunks []chunk // the oldest first
	chunk          // the sum of all
}

// chunk is consecutive batches.
type chunk struct {
	end          End
	lines, bytes int
}

func (c *chunk) add(end End, lines, bytes int) {
	c.end = end
	c.lines += lines
	c.bytes += bytes
}

// add takes a batch that was stored. A store that has lost all counts its places anew: then nothing of before is there,
// and its places are those of other batches.
func (k *kept) add(end End, b Batch) {
	if end.Place < k.end.Place {
		*k = kept{}
	}
	lines, bytes := len(b.Lines), b.Bytes()
	k.chunk.add(end, lines, bytes)
	if n := len(k.chunks); n > 0 {
		last := &k.chunks[n-1]
		if last.lines+lines <= MaxLines/parts && last.bytes+bytes <= MaxBytes/parts {
			last.add(end, lines, bytes)
			return
		}
	}
	k.chunks = append(k.chunks, chunk{end, lines, bytes})
}

// excess returns up to which end the log has to be trimmed before a batch is stored; the zero value = not at all.
// It is somewhat more than has to go, so that not every batch trims.
func (k *kept) excess(b Batch) (upTo End) {
	lines, bytes := k.lines+len(b.Lines), k.bytes+b.Bytes()
	if lines <= MaxLines && bytes <= MaxBytes {
		return End{}
	}
	for _, c := range k.chunks {
		if lines <= MaxLines-MaxLines/16 && bytes <= MaxBytes-MaxBytes/16 {
			break
		}
		lines, bytes, upTo = lines-c.lines, bytes-c.bytes, c.end
	}
	return upTo
}

// trimmed forgets what the store has removed.
func (k *kept) trimmed(upTo End) {
	for len(k.chunks) > 0 && k.chunks[0].end.Line <= upTo.Line {
		k.lines -= k.chunks[0].lines
		k.bytes -= k.chunks[0].bytes
		k.chunks = k.chunks[1:]
	}
}
