// Package places bounds how many items of a job run at once in this process, and knows
// whose functions have not returned, over all sessions.
//
//	p := places.New(4)
//	p.Submit(run)      // run.Enter, run.Call and run.Left follow on a goroutine
//	p.Running()        // items whose function has not returned
//	p.Wait()           // joins all goroutines
//
// A goroutine exists for each item that runs, and none for those that wait for a place.
// A function that ends its goroutine (runtime.Goexit) gives its place back as one that
// panics does. All methods are safe for concurrent use.
package places
