package segmentation

// numbers cuts the numbers from <= n < to into equally many for each bucket. The differences of two int64 are uint64,
// which wrap around to the right number.
type numbers struct {
	from  int64
	width uint64 // at least 1
	total uint64 // 1 to width
}

func cutNumbers(from, to, size, buckets int64) numbers {
	n := numbers{from: from, width: uint64(to) - uint64(from)}
	if size > 0 {
		n.total = (n.width-1)/uint64(size) + 1
	} else {
		n.total = min(uint64(buckets), n.width)
	}
	return n
}

// content returns what is in the bucket at place i, from 0 on. The first width%total buckets have one number more than
// the others.
func (n numbers) content(i uint64) Content {
	return Content{
		Kind: Numeric,
		From: n.start(i),
		To:   n.start(i + 1),
	}
}

func (n numbers) start(i uint64) int64 {
	offset := i*(n.width/n.total) + min(i, n.width%n.total) // at most width
	return int64(uint64(n.from) + offset)
}
