package simulation

import (
	"fmt"
	"os"
)

func init() {
	dbg = func(w *world) {
		if os.Getenv("DBG") == "" {
			return
		}
		for _, j := range w.jobs {
			for _, id := range w.list(j.layout.Ledgers()) {
				at := j.layout.Ledger(id)
				fmt.Println(at, w.read(at))
				for _, p := range w.list(at) {
					fmt.Println("   ", p, w.read(at+"/"+p))
				}
			}
			fmt.Println(w.read(j.layout.Base()), w.list(j.layout.Lives()))
		}
	}
}
