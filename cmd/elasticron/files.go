package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A target is a file that is to be made.
type target struct {
	name, data string
	mode       fs.FileMode
	fix        string // where it exists already
}

// writeNew makes files that do not exist, with their folders, and calls last. All are there
// afterwards, or none: so a command that has failed can be given again.
func writeNew(targets []target, last func() error) (err error) {
	if err := checkNew(targets); err != nil {
		return err
	}
	var made []string // what is removed again
	defer func() {
		if err != nil {
			for _, name := range slices.Backward(made) {
				_ = os.Remove(name)
			}
		}
	}()
	var open []*os.File
	defer func() {
		for _, f := range open {
			err = errors.Join(err, f.Close())
		}
	}()
	for _, t := range targets {
		folders, err := makeFolder(filepath.Dir(t.name))
		made = append(made, folders...)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, t.mode)
		if err != nil {
			return err
		}
		made, open = append(made, t.name), append(open, f)
	}
	for i, t := range targets {
		if _, err := open[i].WriteString(t.data); err != nil {
			return err
		}
	}
	return last()
}

// checkNew names all files that exist.
func checkNew(targets []target) error {
	var errs []error
	for _, t := range targets {
		if _, err := os.Lstat(t.name); err == nil {
			errs = append(errs, fmt.Errorf("%s exists; %s", t.name, t.fix))
		}
	}
	return errors.Join(errs...)
}

// makeFolder makes a folder, and those above it. It returns those that it has made, the outermost first.
func makeFolder(name string) (made []string, err error) {
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if made, err = makeFolder(filepath.Dir(name)); err != nil {
		return made, err
	}
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return made, err
	}
	return append(made, name), nil
}
