// Package wait is how the adapters pause between attempts, and wake each other:
//
//	if !wait.For(ctx, pause) {
//		return ctx.Err()
//	}
//
// # Errors
//
// None: the caller has the context.
//
// # Concurrency
//
// Nothing here has state.
package wait
