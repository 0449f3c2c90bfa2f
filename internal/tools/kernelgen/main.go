// Command kernelgen writes the assembly kernels of mapper, internal/methods/hblr/solver and
// internal/methods/msvm/solver with avo, which is pinned in this nested module so that it stays out
// of taxon's go.mod.
//
//	go -C internal/tools/kernelgen run . -root ../../..
//
// With -check it writes nothing and fails if a file would change. The kernels are documented at
// their twins in Go: mapper/visit.go, mapper/loops.go, mapper/lanes.go,
// internal/methods/hblr/solver/loops.go and kernel.go, and internal/methods/msvm/solver/kernel.go.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/buildtags"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	flags := flag.NewFlagSet("kernelgen", flag.ExitOnError) // avo has added its own to the global one
	root := flags.String("root", ".", "the repository")
	check := flags.Bool("check", false, "write nothing, fail if a file would change")
	_ = flags.Parse(os.Args[1:])
	for _, f := range []struct {
		folder, pkg string
		kernels     func(*build.Context)
	}{{"mapper", "mapper", kernels}, {"internal/methods/hblr/solver", "solver", smooth}, {"internal/methods/msvm/solver",
		"solver", multiclass}} {
		if err := run(filepath.Join(*root, f.folder, "kernel_amd64.s"), f.pkg, f.kernels, *check); err != nil {
			fmt.Fprintln(os.Stderr, "kernelgen:", err)
			os.Exit(1)
		}
	}
}

// run generates the file at path, or compares it.
func run(path, pkg string, kernels func(*build.Context), check bool) error {
	text, err := generate(pkg, kernels)
	if err != nil {
		return err
	}
	if check {
		old, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(old, text) {
			err = fmt.Errorf("%s is stale (run make generate)", path)
		}
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// generate returns the assembly of a package's kernels.
func generate(pkg string, kernels func(*build.Context)) ([]byte, error) {
	ctx := build.NewContext()
	ctx.Constraint(buildtags.Term("amd64").ToConstraint())
	ctx.Constraint(buildtags.Term("!purego").ToConstraint())
	kernels(ctx)
	file, err := ctx.Result()
	if err != nil {
		return nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, err
	}
	return printer.NewGoAsm(printer.Config{Name: "kernelgen", Pkg: pkg}).Print(file)
}

// kernels writes the kernels of mapper.
func kernels(ctx *build.Context) {
	for _, size := range []int{4, 8} {
		for _, squared := range []bool{false, true} {
			visit512(ctx, size, squared)
		}
	}
	constants256(ctx)
	for _, squared := range []bool{false, true} {
		visit256(ctx, squared, false)
		visit256(ctx, squared, true)
	}
	visitDense(isa{ctx, 32, 4, lanes})
	visitDense(isa{ctx, 32, 8, lanes})
	for _, width := range []int{64, 32} {
		g := isa{ctx, width, 4, lanes}
		scoreRows(g)
		exactRow(g)
		addRows(g)
		gatherDuals(g)
		layRows(g)
		spreadLine(g)
	}
}
