// Command fromfile runs the jobs of a file that says all: a command and a request. There is no
// function of a job in this program.
//
//	REGISTRY=etcd://127.0.0.1:2379/shop go run ./examples/fromfile -config examples/fromfile/jobs.yaml
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/elasticron/elasticron/config"
	"github.com/elasticron/elasticron/core"
	_ "github.com/elasticron/elasticron/errorhandler/chat"  // registers SLACK, DINGTALK, WECHAT, FEISHU
	_ "github.com/elasticron/elasticron/errorhandler/mail"  // registers EMAIL
	_ "github.com/elasticron/elasticron/registry/etcd"      // registers etcd://
	_ "github.com/elasticron/elasticron/registry/zookeeper" // registers zookeeper://
)

func main() {
	file := flag.String("config", "examples/fromfile/jobs.yaml", "the YAML `file`")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "fromfile: unknown argument %q; name the file with -config\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *file)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	reg, err := cfg.Open(ctx)
	if err != nil {
		return err
	}
	defer reg.Close()
	sched := core.New(reg)
	if err := cfg.Bind(sched, nil); err != nil {
		return err
	}
	fmt.Println("starting:", cfg)
	return sched.Run(ctx)
}
