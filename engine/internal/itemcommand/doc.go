// Package itemcommand is what is asked of the items of a shard: the commands, with their limits, what they decide, and their answers.
// They are commands of package command, in a package of their own. Like that one it is pure.
//
// An update and a claim are decided within an entry; the rest are questions, which the owner answers.
package itemcommand
