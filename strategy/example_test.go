package strategy_test

import (
	"fmt"

	"github.com/elasticron/elasticron/strategy"
)

func ExampleByName() {
	s, err := strategy.ByName("") // the default
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Name())
	_, err = strategy.ByName("SHUFFLE")
	fmt.Println(err)
	// Output:
	// AVG_ALLOCATION
	// strategy: unknown strategy "SHUFFLE"; there are: AVG_ALLOCATION, ODEVITY, ROUND_ROBIN, STICKY
}

func ExampleAvgAllocation() {
	in := strategy.Input{
		Job:       "orders",
		Instances: []string{"10.0.0.9@-@12", "10.0.0.10@-@3", "10.0.0.9@-@7"},
		Total:     10,
	}
	a := strategy.AvgAllocation{}.Assign(in)
	fmt.Println(a["10.0.0.9@-@7"], a["10.0.0.9@-@12"], a["10.0.0.10@-@3"])
	// Output: [0 1 2 9] [3 4 5] [6 7 8]
}

// The instance web-1 restarts and web-3 joins: web-1 keeps its items, and web-3
// gets no more than balance asks for.
func ExampleSticky() {
	previous := strategy.Assignment{
		"10.0.0.1@-@web-1-k3f": {0, 1, 2},
		"10.0.0.2@-@web-2-9qd": {3, 4, 5},
	}
	a := strategy.Sticky{}.Assign(strategy.Input{
		Job:       "orders",
		Instances: []string{"10.0.0.7@-@web-1-x0a", "10.0.0.2@-@web-2-9qd", "10.0.0.3@-@web-3-p5c"},
		Total:     6,
		Previous:  previous,
	})
	fmt.Println(a)
	// Output: map[10.0.0.2@-@web-2-9qd:[3 4] 10.0.0.3@-@web-3-p5c:[2 5] 10.0.0.7@-@web-1-x0a:[0 1]]
}

func ExampleAssignment_Owners() {
	a := strategy.Assignment{"web-1": {0, 2}, "web-2": {1}}
	for item, id := range a.Owners(3) {
		fmt.Println(item, id)
	}
	// Output:
	// 0 web-1
	// 1 web-2
	// 2 web-1
}
