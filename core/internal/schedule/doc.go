// Package schedule says when a job fires.
package schedule
