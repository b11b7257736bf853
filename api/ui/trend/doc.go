// Package trend remembers what a cluster has done in the last quarter of an hour: each node with a dashboard asks all
// owners for their figures every ten seconds, and keeps the differences in its memory. A Sampler asks, a Trend keeps,
// and Draw lays out curves of what is kept, of which a template makes SVG.
//
// Owners count from when they took their shards over. So a new owner's figures count as they are, and a shard that did
// not answer is left out until it has answered twice: what it did meanwhile belongs to no ten seconds.
package trend
