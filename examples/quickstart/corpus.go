package main

import (
	"bytes"
	"context"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Sums are what indexing counts.
type Sums struct {
	Files       int `json:"files"`
	Lines       int `json:"lines"`
	Bytes       int `json:"bytes"`
	Identifiers int `json:"identifiers"`
}

func (s Sums) plus(o Sums) Sums {
	return Sums{s.Files + o.Files, s.Lines + o.Lines, s.Bytes + o.Bytes, s.Identifiers + o.Identifiers}
}

func (s Sums) String() string {
	return fmt.Sprintf("%d files, %d lines, %d bytes, %d identifiers", s.Files, s.Lines, s.Bytes, s.Identifiers)
}

// goRoot asks the toolchain where its sources are.
func goRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("quickstart: go env GOROOT: %w", err)
	}
	// Some distributions link it, and a walk does not follow its own root.
	return filepath.EvalSymlinks(filepath.Join(strings.TrimSpace(string(out)), "src"))
}

// listFiles returns every .go file below root, in one order for all processes.
func listFiles(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no .go files below %s", root)
	}
	return files, err
}

// share returns the files of one item: every total-th.
func share(files []string, item, total int) []string {
	var mine []string
	for i := item; i < len(files); i += total {
		mine = append(mine, files[i])
	}
	return mine
}

// index counts files. It tells how many are done, now and then, and stops when ctx ends.
func index(ctx context.Context, files []string, done func(n int)) (Sums, error) {
	var total Sums
	for i, path := range files {
		if err := ctx.Err(); err != nil {
			return Sums{}, context.Cause(ctx)
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return Sums{}, err
		}
		total = total.plus(count(src))
		if i%100 == 99 {
			done(i + 1)
		}
	}
	return total, nil
}

func count(src []byte) Sums {
	s := Sums{Files: 1, Lines: bytes.Count(src, []byte{'\n'}), Bytes: len(src)}
	fset := token.NewFileSet()
	var scan scanner.Scanner
	scan.Init(fset.AddFile("", fset.Base(), len(src)), src, nil, 0) // test data may be malformed: its tokens count all the same
	for {
		_, tok, _ := scan.Scan()
		if tok == token.EOF {
			return s
		}
		if tok == token.IDENT {
			s.Identifiers++
		}
	}
}
