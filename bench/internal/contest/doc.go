// Package contest is the side of a contender: a process that fires jobs, counts its
// runs, and does what bench asks of it, line by line on its standard input.
//
// A contender is measured from outside: bench reads the CPU of its process. Only when
// its functions began is counted here, in memory, and asked for when a window is over.
package contest
