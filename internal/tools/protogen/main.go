// Command protogen regenerates the Go code of the .proto files. It needs nothing but Go: the
// compiler is github.com/bufbuild/protocompile, pinned in this nested module so that its
// dependencies stay out of taxon's, and the plugins are the tool directives of taxon's go.mod.
//
//	go -C internal/tools/protogen run . -root ../../.. -proto proto
//
// It writes each x.pb.go and x_grpc.pb.go beside its x.proto. With -check it writes nothing and
// fails if a file would change.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

// plugins are run in this order by `go tool`.
var plugins = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

func main() {
	root := flag.String("root", ".", "folder with the go.mod that pins the plugins")
	dir := flag.String("proto", "proto", "folder of the .proto files, within root")
	check := flag.Bool("check", false, "write nothing, fail if a file would change")
	flag.Parse()
	if err := run(context.Background(), *root, *dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, dir string, check bool) error {
	folder := filepath.Join(root, dir)
	names, err := protoFiles(folder)
	if err != nil {
		return err
	}
	request, err := compile(ctx, folder, names)
	if err != nil {
		return err
	}
	var stale []string
	for _, plugin := range plugins {
		files, err := generate(ctx, root, plugin, request)
		if err != nil {
			return err
		}
		changed, err := write(folder, files, check)
		if err != nil {
			return err
		}
		stale = append(stale, changed...)
	}
	if check && len(stale) > 0 {
		return fmt.Errorf("generated code is stale (run make generate): %s", strings.Join(stale, " "))
	}
	return nil
}

// protoFiles lists the .proto files below folder, relative to it, sorted.
func protoFiles(folder string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".proto" {
			return err
		}
		name, err := filepath.Rel(folder, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no .proto file below %s", folder)
	}
	slices.Sort(names)
	return names, err
}

// compile makes the plugins' request, with every file after those that it imports.
func compile(ctx context.Context, folder string, names []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{folder}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		Parameter:      proto.String("paths=source_relative"),
	}
	seen := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		request.ProtoFile = append(request.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
	}
	for _, f := range files {
		add(f)
	}
	return request, nil
}

// generate runs one plugin, with the request on its standard input and the answer on its output.
func generate(ctx context.Context, root, plugin string,
	request *pluginpb.CodeGeneratorRequest) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	in, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return nil, err
	}
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = root, bytes.NewReader(in), &out, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", plugin, err, strings.TrimSpace(stderr.String()))
	}
	var answer pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out.Bytes(), &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", plugin, err)
	}
	if answer.Error != nil {
		return nil, fmt.Errorf("%s: %s", plugin, answer.GetError())
	}
	return answer.File, nil
}

// write updates the files and returns the names of those that were not up to date.
func write(folder string, files []*pluginpb.CodeGeneratorResponse_File, check bool) ([]string, error) {
	var changed []string
	for _, f := range files {
		path := filepath.Join(folder, filepath.FromSlash(f.GetName()))
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && string(old) == f.GetContent() {
			continue
		}
		changed = append(changed, f.GetName())
		if check {
			continue
		}
		if err := os.WriteFile(path, []byte(f.GetContent()), 0o644); err != nil {
			return nil, err
		}
	}
	return changed, nil
}
