package shape_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"taskledger/api/problem"
	"taskledger/api/shape"
	"taskledger/store"
)

type even int

func (e *even) UnmarshalJSON(data []byte) error {
	var n int
	if json.Unmarshal(data, &n) != nil || n%2 != 0 {
		return &store.InvalidError{Field: "number", Problem: "want it even"}
	}
	*e = even(n)
	return nil
}

type inner struct {
	A int    `json:"a"`
	E *even  `json:"e"`
	B []byte `json:"b"`
}

type base struct {
	N int `json:"n"`
}

type outer struct {
	base
	List  []inner        `json:"list"`
	Deep  [][]inner      `json:"deep"`
	One   *inner         `json:"one"`
	Map   map[string]int `json:"map"`
	Plain []int          `json:"plain"`
	May   int            `json:"may,omitempty"`
}

func TestDecode_NamesThePlaceOfTheFirstValueThatItsTypeDoesNotTake(t *testing.T) {
	for body, want := range map[string]string{
		`{"n":1,"list":[{"a":1,"e":2,"b":"eA=="}],"deep":[[{}],null],"one":null,"map":{"x":1},"plain":[1]}`: "",
		`{"plain":null,"list":null,"map":null,"may":null}`:                                                  "",
		`{"n":null}`:                         "n",
		`{"list":[null]}`:                    "list[0]",
		`{"list":[{"a":1}, null ]}`:          "list[1]",
		`{"list":[{"b":null,"a":null}]}`:     "list[0].a",
		`{"deep":[[],[{},null]]}`:            "deep[1][1]",
		`{"plain":[1,null]}`:                 "plain[1]",
		`{"map":{"x":1,"y":null}}`:           "map.y",
		`{"n":"1"}`:                          "n",
		`{"list":[{"a":1},{"a":1.5}]}`:       "list[1].a",
		`{"list":[{"e":2},{},{"e":3}]}`:      "list[2].e",
		`{"plain":["x"],"list":[{"e":3}]}`:   "plain[0]", // in the order of the body
		`{"list":[{"a":"x"}],"n":true}`:      "list[0].a",
		`{"deep":[[],[{},{"b":7}]]}`:         "deep[1][1].b",
		`{"deep":[[{}],{}]}`:                 "deep[1]",
		`{"one":{"e":"2"}}`:                  "one.e",
		`{"one":[]}`:                         "one",
		`{"map":{"x":1,"y":"2"}}`:            "map.y",
		`{"plain":[1,2,3,{}]}`:               "plain[3]",
		`[]`:                                 "body",
		`{"list":[{"b":"not base64!"}]}`:     "list[0].b",
		`{"list":[{"b":"eA=="},{"e":null}]}`: "",
	} {
		err := shape.Decode([]byte(body), new(outer))
		got := ""
		if p, is := errors.AsType[*problem.Problem](err); is {
			got = p.Field
			if !strings.HasPrefix(p.Detail, p.Field+": ") {
				t.Errorf("%s: %q does not begin with the field %q", body, p.Detail, p.Field)
			}
		} else if invalid, is := errors.AsType[*store.InvalidError](err); is {
			got = invalid.Field
		}
		if got != want || (err == nil) != (want == "") {
			t.Errorf("%s: %v, want the field %q", body, err, want)
		}
	}
}

func TestDecode_NamesThePlaceInALargeBody(t *testing.T) {
	body := `{"list":[{"a":1.5}],"plain":[` + strings.Repeat("1,", 1<<19) + `1]}`
	err := shape.Decode([]byte(body), new(outer))
	if p, is := errors.AsType[*problem.Problem](err); !is || p.Field != "list[0].a" {
		t.Errorf("%v, want the field list[0].a", err)
	}
}

func TestDecode_TakesLittleMemoryForNulls(t *testing.T) {
	body := []byte(`{"list":[` + strings.Repeat(`{"b":null,"c":null},`, 999) + `{}]}`)
	type row struct {
		B int `json:"b,omitempty"`
		C int `json:"c,omitempty"`
	}
	made := testing.AllocsPerRun(10, func() {
		if err := shape.Decode(body, new(struct {
			List []row `json:"list"`
		})); err != nil {
			t.Fatal(err)
		}
	})
	if made > 20*2*999 {
		t.Errorf("%.0f values were allocated for %d nulls", made, 2*999)
	}
}
