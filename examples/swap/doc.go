// Command swap is one program with one YAML file that runs on any registry: which
// one, only the environment says.
//
//	go build -o swap ./examples/swap
//	SWAP_REGISTRY=etcd://127.0.0.1:2379/swap ./swap -config examples/swap/swap.yaml
//	SWAP_REGISTRY=zookeeper://127.0.0.1:2181/swap ./swap -config examples/swap/swap.yaml
//	SWAP_REGISTRY=postgres://127.0.0.1:5432/postgres/swap ./swap -config examples/swap/swap.yaml
//
// Two schedulers share the job of the file, each on a registry of its own, as two
// processes would. When every item has run twice, under at least two instances in
// all, a table says who ran what and with which fencing token, and the program ends
// with status 0. It ends with 1 when that takes longer than -patience or a token did
// not rise, with 2 for a wrong command line and 130 after Ctrl-C.
package main
