// Command reference writes the schema and the reference of the file, from the tables of package
// config. It runs in the folder of that package.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/elasticron/elasticron/config"
)

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate() error {
	docs := filepath.Join("..", "docs")
	for name, text := range map[string][]byte{"jobs.schema.json": config.Schema(), "configuration.md": []byte(config.Reference())} {
		if err := os.WriteFile(filepath.Join(docs, name), text, 0o644); err != nil { //nolint:gosec // it is a page of the project
			return err
		}
	}
	return nil
}
