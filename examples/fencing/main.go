// Command fencing counts stock into a table of SQLite that refuses a zombie: a run that was paused, and writes
// after its item has been run by somebody else. Nothing in the process can know that; Shard.Fence can.
//
//	go run ./examples/fencing
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	_ "modernc.org/sqlite"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/etcd"          // registers etcd://
	_ "github.com/elasticron/elasticron/registry/etcd/embedded" // registers embedded://
)

const table = "CREATE TABLE IF NOT EXISTS stock (item INTEGER PRIMARY KEY, counted TEXT NOT NULL, fence INTEGER NOT NULL)"

// A row takes no fencing token below the one that it has.
const fenced = `INSERT INTO stock (item, counted, fence) VALUES (?, ?, ?)
	ON CONFLICT (item) DO UPDATE SET counted = excluded.counted, fence = excluded.fence WHERE excluded.fence >= stock.fence`

var errZombie = errors.New("a later run has written this row")

func write(ctx context.Context, db *sql.DB, s core.Shard, counted string) error {
	done, err := db.ExecContext(ctx, fenced, s.Item, counted, int64(s.Fence))
	if err != nil {
		return err
	}
	if rows, err := done.RowsAffected(); err != nil || rows == 0 {
		return errors.Join(errZombie, err)
	}
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	reg, err := registry.Open(ctx, cmp.Or(os.Getenv("REGISTRY"), "embedded:///?namespace=shop"))
	if err != nil {
		return err
	}
	defer reg.Close()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	if _, err := db.ExecContext(ctx, table); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var first core.Shard
	count := core.JobFunc(func(ctx context.Context, s core.Shard) error {
		if first.Job == "" {
			first = s
			return nil // paused before it could write, say
		}
		fmt.Println("the run of now:  ", write(ctx, db, s, "now"))
		fmt.Println("the one before it:", write(ctx, db, first, "then"))
		stop()
		return nil
	})
	return core.Run(ctx, reg, count, core.JobConfig{Name: "count", Cron: "* * * * * ?", Shards: 1})
}
