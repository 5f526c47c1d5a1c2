package main

import (
	"context"
	"fmt"
)

func Example() {
	fmt.Println(run(context.Background(), "embedded:///?namespace=shop", "memory://several/shop"))
	// Unordered output:
	// one runs items of orders
	// two runs items of orders
	// three runs items of reports
	// <nil>
}
