package host

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The operating guide has a remedy for every error that a caller can tell from others.
func TestGuideNamesEveryError(t *testing.T) {
	guide, err := os.ReadFile("../examples/operating/README.md")
	require.NoError(t, err)
	found := 0
	for folder, prefix := range map[string]string{".": "", "journal": "journal.", "../shared": ""} {
		names, err := fs.Glob(os.DirFS(folder), "*.go")
		require.NoError(t, err)
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), folder+"/"+name, nil, 0)
			require.NoError(t, err)
			for _, declaration := range file.Decls {
				group, isGroup := declaration.(*ast.GenDecl)
				if !isGroup {
					continue
				}
				for _, spec := range group.Specs {
					var name string
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if strings.HasSuffix(spec.Name.Name, "Error") {
							name = spec.Name.Name
						}
					case *ast.ValueSpec:
						if strings.HasPrefix(spec.Names[0].Name, "Err") {
							name = spec.Names[0].Name
						}
					}
					if name != "" && ast.IsExported(name) {
						found++
						require.Contains(t, string(guide), "| `"+prefix+name+"` |")
					}
				}
			}
		}
	}
	require.Greater(t, found, 12)
}
