package work_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"

	"taskledger/work"
)

// go doc shows of an alias its comment alone.
func TestDoc_TheCommentOfAnAliasNamesTheFieldsOfItsType(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "plan.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, d := range file.Decls {
		if g, is := d.(*ast.GenDecl); is && g.Tok == token.TYPE && !g.Lparen.IsValid() {
			comments[g.Specs[0].(*ast.TypeSpec).Name.Name] = g.Doc.Text()
		}
	}
	for _, of := range []any{
		work.Bucket{}, work.Threshold{}, work.Plan{}, work.PartitionPlan{}, work.Counts{}, work.ItemError{},
	} {
		is := reflect.TypeOf(of)
		for _, f := range reflect.VisibleFields(is) {
			if !f.Anonymous && !strings.Contains(comments[is.Name()], f.Name) {
				t.Errorf("the comment of %s does not name %s: %s", is.Name(), f.Name, comments[is.Name()])
			}
		}
	}
	for _, m := range []work.Mode{work.Full, work.Simulate, work.DryRun} {
		if !strings.Contains(comments["Mode"], `"`+m.String()+`"`) {
			t.Errorf("the comment of Mode does not name %s", m)
		}
	}
}
