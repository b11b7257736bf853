// Package fronts proves that a front is a list: a table says where each part of each front stands, and a toy front is
// built of new files and one row a table.
package fronts
