package lint

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "sluice"

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func (p goPackage) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// listPackages asks the go command for every package of the module.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "./...")
	cmd.Dir = root(t)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatal("go list found no package")
	}
	return packages
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// matches reports whether a path is the pattern itself, or below it where the pattern ends in "/...".
func matches(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(path, below+"/")
	}
	return pattern == path
}

// TestLayers holds every import of one package by another against the table of edges.
func TestLayers(t *testing.T) {
	for _, p := range listPackages(t) {
		allowed, known := edges[p.name()]
		if !known {
			t.Errorf("%s is not in the table of edges (internal/lint/allow.go): say there what it may import", p.name())
			continue
		}
		for _, path := range p.Imports {
			imported, ours := strings.CutPrefix(path, module+"/")
			switch {
			case ours:
				if !slices.ContainsFunc(allowed, func(pattern string) bool { return matches(pattern, imported) }) {
					t.Errorf("%s must not import %s: no such edge in internal/lint/allow.go", p.name(), imported)
				}
			case strings.Contains(strings.Split(path, "/")[0], "."):
				if !slices.ContainsFunc(modules[p.name()], func(m string) bool { return path == m || strings.HasPrefix(path, m+"/") }) {
					t.Errorf("%s must not import %s: not in its list of modules in internal/lint/allow.go", p.name(), path)
				}
			case path == "net" || strings.HasPrefix(path, "net/"):
				if strings.HasPrefix(p.name(), "storage/") || strings.HasPrefix(p.name(), "protocol/") {
					t.Errorf("%s must not import %s: no network below the drivers", p.name(), path)
				}
			}
		}
	}
}

// TestTables refuses rows of the tables about packages that are not there: they would let in a package of that name unseen.
func TestTables(t *testing.T) {
	there := map[string]bool{}
	for _, p := range listPackages(t) {
		there[p.name()] = true
	}
	tables := map[string][]string{"edges": slices.Sorted(maps.Keys(edges)), "modules": slices.Sorted(maps.Keys(modules)), "pure": pure, "wallClock": wallClock}
	for table, names := range tables {
		for _, name := range names {
			if !there[name] {
				t.Errorf("%s (internal/lint/allow.go) has a row for %s, which is not there", table, name)
			}
		}
	}
}

var impureImports = []string{"net", "net/http", "os", "os/exec", "sync", "sync/atomic", "context", "math/rand", "math/rand/v2", "crypto/rand", "syscall"}

// TestPurity checks that the deciding packages cannot act: what they may not import, and no goroutine, channel wait or clock.
func TestPurity(t *testing.T) {
	for _, p := range listPackages(t) {
		if !slices.Contains(pure, p.name()) {
			continue
		}
		eachFile(t, p, func(file string, fset *token.FileSet, tree *ast.File) {
			at := func(n ast.Node) string { return filepath.Base(file) + ":" + strconv.Itoa(fset.Position(n.Pos()).Line) }
			for _, spec := range tree.Imports {
				if path, _ := strconv.Unquote(spec.Path.Value); slices.Contains(impureImports, path) {
					t.Errorf("%s %s imports %s, but the package is pure", p.name(), at(spec), path)
				}
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s %s starts a goroutine, but the package is pure", p.name(), at(n))
				case *ast.SelectStmt, *ast.SendStmt:
					t.Errorf("%s %s uses a channel, but the package is pure", p.name(), at(n))
				case *ast.SelectorExpr:
					if isTimeCall(n, "Now", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Since", "Until") {
						t.Errorf("%s %s reads the clock, but the package is pure: take nowMs as an argument", p.name(), at(n))
					}
				}
				return true
			})
		})
	}
}

// TestWallClock checks that only drivers and the outermost layers read the time, so that everything else runs on any clock.
func TestWallClock(t *testing.T) {
	for _, p := range listPackages(t) {
		if slices.Contains(wallClock, p.name()) {
			continue
		}
		eachFile(t, p, func(file string, fset *token.FileSet, tree *ast.File) {
			ast.Inspect(tree, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && isTimeCall(s, "Now", "Since", "Until") {
					t.Errorf("%s %s:%d reads the wall clock: take nowMs as an argument", p.name(), filepath.Base(file), fset.Position(n.Pos()).Line)
				}
				return true
			})
		})
	}
}

func isTimeCall(s *ast.SelectorExpr, names ...string) bool {
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == "time" && slices.Contains(names, s.Sel.Name)
}

var bannedTypeName = regexp.MustCompile(`(?i)(util|helper)|^(manager|data|info)$|(data|info)$`)

// TestNames refuses type names that say nothing, and packages named after a kind instead of an idea.
func TestNames(t *testing.T) {
	for _, p := range listPackages(t) {
		if last := filepath.Base(p.name()); slices.Contains([]string{"util", "utils", "common", "helpers", "types", "models"}, last) {
			t.Errorf("package %s is named after a kind: name the idea", p.name())
		}
		eachFile(t, p, func(file string, fset *token.FileSet, tree *ast.File) {
			ast.Inspect(tree, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if ok && bannedTypeName.MatchString(spec.Name.Name) && !slices.Contains(kafkaNames, spec.Name.Name) {
					t.Errorf("%s %s:%d: type %s says nothing: name what it is", p.name(), filepath.Base(file), fset.Position(n.Pos()).Line, spec.Name.Name)
				}
				return true
			})
		})
	}
}

// kafkaNames are type names that would be refused but are Kafka's own published terms.
var kafkaNames = []string{"AppendInfo", "OffsetAndMetadata"}

// TestPanics refuses panic in the packages that handle bytes of peers or disks: those are errors. assert is for our own invariants.
func TestPanics(t *testing.T) {
	for _, p := range listPackages(t) {
		if !strings.HasPrefix(p.name(), "protocol/") && !strings.HasPrefix(p.name(), "storage/") && !strings.HasPrefix(p.name(), "replication/") && !strings.HasPrefix(p.name(), "broker") {
			continue
		}
		eachFile(t, p, func(file string, fset *token.FileSet, tree *ast.File) {
			ast.Inspect(tree, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" {
					t.Errorf("%s %s:%d panics: return an error, or assert an invariant of our own", p.name(), filepath.Base(file), fset.Position(n.Pos()).Line)
				}
				return true
			})
		})
	}
}

var handlerFile = regexp.MustCompile(`^(\d\d)_([a-z0-9_]+)\.go$`)

// TestHandlerFiles checks that the API table and the handler files agree: one file for each key, none without a row.
func TestHandlerFiles(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(root(t), "broker/api/table.go"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile(`route\(\s*kmsg\.([A-Za-z0-9]+)`).FindAllStringSubmatch(string(table), -1) {
		rows[strings.ToLower(m[1])] = true
	}
	if len(rows) == 0 {
		t.Fatal("no route( row found in broker/api/table.go")
	}
	files, err := os.ReadDir(filepath.Join(root(t), "broker/api"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range files {
		m := handlerFile.FindStringSubmatch(f.Name())
		if m == nil || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		name := strings.ReplaceAll(m[2], "_", "")
		seen[name] = true
		if !rows[name] {
			t.Errorf("broker/api/%s has no row in table.go", f.Name())
		}
	}
	for name := range rows {
		if !seen[name] {
			t.Errorf("table.go has a row for %s, but there is no file NN_….go of that name in broker/api", name)
		}
	}
}

var documented = regexp.MustCompile("`((?:cmd|broker|protocol|storage|replication|internal|compat-tests|docs)/[^`\\s]+)`")

// TestArchitecturePaths checks that each file and folder that the architecture page names is there.
func TestArchitecturePaths(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), "docs/ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := documented.FindAllStringSubmatch(string(page), -1)
	if len(found) < 20 {
		t.Fatalf("docs/ARCHITECTURE.md names only %d paths", len(found))
	}
	for _, m := range found {
		if strings.ContainsAny(m[1], "*…<") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root(t), m[1])); err != nil {
			t.Errorf("docs/ARCHITECTURE.md names %s: %v", m[1], err)
		}
	}
}

// TestArchitectureRooms checks that the architecture page has a row for each package; the commands under cmd/sluice/cli share one.
func TestArchitectureRooms(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), "docs/ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	const commands = "cmd/sluice/cli"
	for _, p := range listPackages(t) {
		name := p.name()
		if strings.HasPrefix(name, commands+"/") {
			name = commands
		}
		if !strings.Contains(string(page), "\n| `"+name+"` | ") {
			t.Errorf("docs/ARCHITECTURE.md has no row for %s", name)
		}
	}
}

var sleeping = regexp.MustCompile(`\btime\.Sleep\(`)

// TestNoSleepingTests refuses a test that waits for time to pass on the real clock. Under testing/synctest a sleep is free and exact, and is allowed.
func TestNoSleepingTests(t *testing.T) {
	err := filepath.WalkDir(root(t), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if strings.HasPrefix(entry.Name(), ".") && path != root(t) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if sleeping.Match(text) && !strings.Contains(string(text), "testing/synctest") {
			t.Errorf("%s sleeps: wait for the event, or run in testing/synctest", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func eachFile(t *testing.T, p goPackage, visit func(file string, fset *token.FileSet, tree *ast.File)) {
	t.Helper()
	for _, name := range p.GoFiles {
		file := filepath.Join(p.Dir, name)
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		visit(file, fset, tree)
	}
}
