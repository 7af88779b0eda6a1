package api

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/replication/metadata"
)

// elsewhere are the exported errors of lower layers that no handler gets to see, with the reason; by package they are exempt as a whole.
var elsewhere = map[string]string{
	"frame":      "the server closes the connection before a request is dispatched",
	"checkpoint": "read and written at start, stop and in the background",
	"logdir":     "partitions of a failed directory answer partition.StorageOffline",
	"vfs":        "storage wraps it in partlog.Fault, or reports it at start",
	"errorfs":    "test only",
	"compress":   "protocol/record turns it into record.Invalid",
	"quorum":     "replication/controller wraps it in ErrNotController",
	"compact":    "replication/replica compacts in the background",

	"partlog.ErrChanged": "of putting a compacted segment in its place; the cleaner tries again",
	"segment.ErrInUse":   "of putting a compacted segment in its place; the cleaner tries again",

	"producer.CorruptSnapshot": "recovery goes on without the snapshot",

	// The root package's implementation of Controller translates these, as this package must not know the drivers.
	"controller.ErrNotController": "NOT_CONTROLLER",
	"controller.Fault":            "KAFKA_STORAGE_ERROR",
}

// Every exported error of the layers below is mapped to a code in errors.go, or is named in elsewhere with the reason why not.
func TestErrors_EveryErrorOfLowerLayersIsMapped(t *testing.T) {
	mapped := selectors(t, "errors.go")
	used := map[string]bool{}
	for _, layer := range []string{"protocol", "storage", "replication"} {
		for _, name := range exportedErrors(t, filepath.Join("..", "..", layer)) {
			pkg, _, _ := strings.Cut(name, ".")
			switch {
			case mapped[name]:
			case elsewhere[name] != "":
				used[name] = true
			case elsewhere[pkg] != "":
				used[pkg] = true
			default:
				t.Errorf("%s has no row in errors.go", name)
			}
		}
	}
	for name := range elsewhere {
		if !used[name] {
			t.Logf("%s is exempt, and is not there or is mapped", name)
		}
	}
}

// selectors are the names "package.Name" that a file mentions.
func selectors(t *testing.T, file string) map[string]bool {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok {
				names[pkg.Name+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	return names
}

// exportedErrors lists the exported types with a method Error, and the exported variables named Err…, of the packages below root.
func exportedErrors(t *testing.T, root string) (names []string) {
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range parsed.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == "Error" && d.Recv != nil && len(d.Type.Params.List) == 0 {
					receiver := d.Recv.List[0].Type
					if star, ok := receiver.(*ast.StarExpr); ok {
						receiver = star.X
					}
					if id, ok := receiver.(*ast.Ident); ok && id.IsExported() {
						names = append(names, parsed.Name.Name+"."+id.Name)
					}
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					values, ok := spec.(*ast.ValueSpec)
					if !ok || d.Tok != token.VAR {
						continue
					}
					for _, id := range values.Names {
						if strings.HasPrefix(id.Name, "Err") {
							names = append(names, parsed.Name.Name+"."+id.Name)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Wrapped errors are found, Kafka's own stand for themselves, and what the table does not know does not reach the client's eyes.
func TestErrorFor(t *testing.T) {
	rejected := &metadata.Error{Code: kerr.TopicAlreadyExists.Code, Message: "Topic 'x' already exists."}
	for _, test := range []struct {
		err     error
		code    int16
		message string // "": none
	}{
		{nil, 0, ""},
		{rejected, 36, "Topic 'x' already exists."},
		{fmt.Errorf("creating x: %w", rejected), 36, "Topic 'x' already exists."},
		{&metadata.Error{Code: 41}, 41, ""},
		{fmt.Errorf("asking: %w", kerr.NotCoordinator), 16, kerr.NotCoordinator.Description},
		{errors.New("open /secret/path: permission denied"), -1, kerr.UnknownServerError.Description},
	} {
		gotCode, got := errorFor(test.err)
		message := ""
		if got != nil {
			message = *got
		}
		if gotCode != test.code || message != test.message || code(test.err) != test.code {
			t.Errorf("%v: code %d, message %q; want %d, %q", test.err, gotCode, message, test.code, test.message)
		}
	}
}
