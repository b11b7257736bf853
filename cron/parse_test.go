package cron_test

import (
	"strings"
	"testing"
	"time"

	"taskledger/cron"
)

func TestParse_BadTextIsRefusedWithItsFieldAndTheLimit(t *testing.T) {
	const question = "one of day-of-month (field 4) and day-of-week (field 6) must be ?, the other one must not"
	for text, want := range map[string]string{
		"":                                 "0 fields, want 6 or 7: second minute hour day-of-month month day-of-week [year]",
		"now":                              "1 fields, want 6 or 7",
		"0 0 12 * * ? 2027 1 2":            `9 fields, want 6 or 7: "1" follows the year`,
		strings.Repeat(" ", 513):           "513 bytes exceed the limit of 512",
		"0 0 12 * * ſUN":                   "byte 12 is neither printable ASCII nor a space",
		"0 0 12 * * \xff":                  "byte 12 is neither printable ASCII nor a space",
		"0 0 12 * * \x00":                  "byte 12 is neither printable ASCII nor a space",
		"0 0 12 * * \u007f":                "byte 12 is neither printable ASCII nor a space",
		"60 0 0 * * ?":                     "second (field 1): 60 is above 59",
		"0 60 0 * * ?":                     "minute (field 2): 60 is above 59",
		"0 0 24 * * ?":                     "hour (field 3): 24 is above 23",
		"0 0 0 0 * ?":                      "day-of-month (field 4): 0 is below 1",
		"0 0 0 1-32 * ?":                   "day-of-month (field 4): 32 is above 31",
		"0 0 0 1 13 ?":                     "month (field 5): 13 is above 12",
		"0 0 0 ? * 0":                      "day-of-week (field 6): 0 is below 1: weekdays go from 1 = SUN to 7 = SAT",
		"0 0 0 ? * 8":                      "day-of-week (field 6): 8 is above 7: weekdays go from 1 = SUN to 7 = SAT",
		"0 0 0 * * ? 1969":                 "year (field 7): 1969 is below 1970",
		"0 0 0 * * ? 2027-2200":            "year (field 7): 2200 is above 2199",
		"0 0 0 * * ? 99999999999999":       "year (field 7): 99999999999999 is above 2199",
		"0 0 0 * * ? 2030-2027":            "year (field 7): 2030-2027: years do not begin again",
		"0/0 0 0 * * ?":                    `second (field 1): step "0", want 1 to 59`,
		"0 0/60 0 * * ?":                   `minute (field 2): step "60", want 1 to 59`,
		"0 0 */24 * * ?":                   `hour (field 3): step "24", want 1 to 23`,
		"0 0 0 */32 * ?":                   `day-of-month (field 4): step "32", want 1 to 31`,
		"0 0 0 1 1/13 ?":                   `month (field 5): step "13", want 1 to 12`,
		"0 0 0 ? * 1/8":                    `day-of-week (field 6): step "8", want 1 to 7`,
		"0 0 0 * * ? */231":                `year (field 7): step "231", want 1 to 230`,
		"0 */ 0 * * ?":                     `minute (field 2): step "", want 1 to 59`,
		"0 */2/3 0 * * ?":                  `minute (field 2): step "2/3", want 1 to 59`,
		"0 , 0 * * ?":                      "minute (field 2): an element of the list is empty",
		"0 1, 0 * * ?":                     "minute (field 2): an element of the list is empty",
		"0 ,1 0 * * ?":                     "minute (field 2): an element of the list is empty",
		"0 -5 0 * * ?":                     `minute (field 2): "" is not a number`,
		"0 5- 0 * * ?":                     `minute (field 2): "" is not a number`,
		"0 1-2-3 0 * * ?":                  `minute (field 2): "2-3" is not a number`,
		"0 *-5 0 * * ?":                    `minute (field 2): "*" is not a number`,
		"0 +5 0 * * ?":                     `minute (field 2): "+5" is not a number`,
		"0 MON 0 * * ?":                    `minute (field 2): "MON" is not a number`,
		"0 0 0 1 JAN,XXX ?":                `month (field 5): "XXX" is neither a number nor a name from JAN to DEC`,
		"0 0 0 1 ANF ?":                    `month (field 5): "ANF" is neither`,
		"0 0 0 1 JANU ?":                   `month (field 5): "JANU" is neither`,
		"0 0 0 ? * MONX":                   `day-of-week (field 6): "MONX" is neither a number nor a name from SUN to SAT`,
		"0 0 0 ? * MON/2":                  "day-of-week (field 6): MON/2: a step goes with numbers, not with names",
		"0 0 0 1 JAN-6/2 ?":                "month (field 5): JAN-6/2: a step goes with numbers, not with names",
		"0 0 0 1W,15 * ?":                  "day-of-month (field 4): 1W,15: L and W stand alone, not in a list",
		"0 0 0 1,L * ?":                    "day-of-month (field 4): 1,L: L and W stand alone, not in a list",
		"0 0 0 LW,1 * ?":                   "day-of-month (field 4): LW,1: L and W stand alone, not in a list",
		"0 0 0 W * ?":                      `day-of-month (field 4): "" is not a number`,
		"0 0 0 32W * ?":                    "day-of-month (field 4): 32 is above 31",
		"0 0 0 1-5W * ?":                   `day-of-month (field 4): "1-5" is not a number`,
		"0 0 0 15L * ?":                    `day-of-month (field 4): "15L": want L, LW, 15W, or L-1 and L-1W with up to 30`,
		"0 0 0 L-31 * ?":                   `day-of-month (field 4): "L-31": want L, LW, 15W, or L-1 and L-1W with up to 30`,
		"0 0 0 L3 * ?":                     `day-of-month (field 4): "L3": want L, LW, 15W, or L-1 and L-1W with up to 30`,
		"0 0 0 L- * ?":                     `day-of-month (field 4): "L-": want L, LW, 15W, or L-1 and L-1W with up to 30`,
		"0 0 0 LWW * ?":                    `day-of-month (field 4): "LWW": want L, LW, 15W, or L-1 and L-1W with up to 30`,
		"0 0 0 ? * 6L,2":                   "day-of-week (field 6): 6L,2: L and # stand alone, not in a list",
		"0 0 0 ? * L,MON":                  "day-of-week (field 6): L,MON: L and # stand alone, not in a list",
		"0 0 0 ? * MON,L":                  "day-of-week (field 6): MON,L: L and # stand alone, not in a list",
		"0 0 0 ? * MON#1,FRI":              "day-of-week (field 6): MON#1,FRI: L and # stand alone, not in a list",
		"0 0 0 ? * 6#0":                    "day-of-week (field 6): 6#0: want # and 1 to 5",
		"0 0 0 ? * 6#6":                    "day-of-week (field 6): 6#6: want # and 1 to 5",
		"0 0 0 ? * 6#":                     "day-of-week (field 6): 6#: want # and 1 to 5",
		"0 0 0 ? * 8#1":                    "day-of-week (field 6): 8 is above 7",
		"0 0 0 ? * #1":                     `day-of-week (field 6): "" is neither`,
		"0 0 0 ? * FRI#1L":                 `day-of-week (field 6): "FRI#1L": L and # exclude each other`,
		"0 0 0 ? * MON-FRIL":               `day-of-week (field 6): "MON-FRI" is neither`,
		"0 0 ? * * MON":                    "hour (field 3): ? stands alone, and only in day-of-month and day-of-week",
		"0 0 0 ? * MON ?":                  "year (field 7): ? stands alone, and only in day-of-month and day-of-week",
		"0 0 0 ?,1 * ?":                    "day-of-month (field 4): ? stands alone",
		"0 0 0 ? * ?":                      question + `; did you mean "0 0 0 * * ?"?`,
		"0 0 0 * * *":                      question + `; did you mean "0 0 0 * * ?"?`,
		"* * * * * * *":                    question + `; did you mean "* * * * * ? *"?`,
		"0 0 9 * * mon-fri":                question + `; did you mean "0 0 9 ? * MON-FRI"?`,
		"0 0 9 15 * *":                     question + `; did you mean "0 0 9 15 * ?"?`,
		"0 0 9 * * 1-5":                    question + `; did you mean "0 0 9 ? * 1-5"? Weekdays go from 1 = SUN to 7 = SAT.`,
		"0 0 9 15 * MON":                   question,
		"@daily 5":                         `@daily stands alone, "5" follows it`,
		"@reboot":                          `"@reboot" is unknown: there are @yearly, @annually, @monthly, @weekly, @daily`,
		"@every":                           `"@every" is unknown: there are`,
		"@every 1 h":                       `"@every" is unknown: there are`,
		"@every soon":                      `@every: "soon" is no duration such as 90s, 15m or 1h30m`,
		"@every 999ms":                     "@every: 999ms, want 1s to 8760h",
		"@every 0s":                        "@every: 0s, want 1s to 8760h",
		"@every -5m":                       "@every: -5m, want 1s to 8760h",
		"@every 8761h":                     "@every: 8761h, want 1s to 8760h",
		"@every 1500ms":                    "@every: 1500ms, want whole seconds",
		"every minute please now and then": `second (field 1): "EVERY" is not a number`,
	} {
		e, err := cron.Parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if e != (cron.Expression{}) {
			t.Errorf("%q: refused, and not the zero value: %q", text, e)
		}
	}
}

func TestParse_UnixCronIsRefusedWithTheExpressionThatWasMeant(t *testing.T) {
	for text, want := range map[string]string{
		"*/5 * * * *":        `"0 */5 * * * ?"`,
		"30 9 * * 1-5":       `"0 30 9 ? * MON-FRI"`,
		"0 9 * * 0":          `"0 0 9 ? * SUN"`,
		"0 9 * * 7":          `"0 0 9 ? * SUN"`,
		"0 9 * * 6,0":        `"0 0 9 ? * SAT,SUN"`,
		"0 9 * * 5-7":        `"0 0 9 ? * FRI-SUN"`,
		"0 9 * * 0-7":        `"0 0 9 * * ?"`,
		"0 9 * * 1-5/2":      `"0 0 9 ? * 2-6/2"`,
		"0 9 * * 5-7/2":      `"0 0 9 ? * 6-1/2"`,
		"0 9 * * */2":        `"0 0 9 ? * */2"`,
		"0 9 * * 0-6/3":      `"0 0 9 ? * */3"`,
		"0 9 * * mon,3":      `"0 0 9 ? * MON,WED"`,
		"0 0 1 * *":          `"0 0 0 1 * ?"`,
		"15 10 ? * 6":        `"0 15 10 ? * SAT"`,
		"0 0 1,15 jan-mar *": `"0 0 0 1,15 JAN-MAR ?"`,
		"0 0 1 * 1":          "", // the first of the month and every Monday
		"0 9 * * 8":          "",
		"0 25 * * *":         "",
	} {
		_, err := cron.Parse(text)
		const say = "5 fields, want 6 or 7: second minute hour day-of-month month day-of-week [year]"
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if err == nil || !strings.HasPrefix(err.Error(), say+want) || want == "" && err.Error() != say {
			t.Errorf("%s: %v, want %s%s", text, err, say, want)
		}
	}
}

func TestParse_TextsOfOneMeaningFireAtTheSameTimes(t *testing.T) {
	from := at(t, "2026-02-27T22:30:00Z")
	for _, texts := range [][]string{
		{"0 0 9 ? * MON-FRI", "0 0 9 ? * mon-fri *"},
		{"0 0 9 ? * MON-FRI", "\t0 0  9 ? * 2-6\n", "0 0 9 ? * MON,3,WED-6", "0 0 9 ? * 2-6/1 1970-2199"},
		{"0 0 9 ? * SAT", "0 0 9 ? * L", "0 0 9 ? * 7", "0 0 9 ? * 7-7", "0 0 9 ? * SAT,7"},
		{"0 0 9 ? * FRIL", "0 0 9 ? * 6L", "0 0 9 ? * friL"},
		{"0 0 9 ? * FRI#3", "0 0 9 ? * 6#3"},
		{"0 0 9 L * ?", "0 0 9 L-0 * ?"},
		{"0 0 9 LW * ?", "0 0 9 L-0W * ?", "0 0 9 lw jan-dec ?"},
		{"0 0/20 9 1 NOV-FEB ?", "0 */20 9 1 11-2 ?", "0 /20 9 1 11,12,1,2 ?", "0 0,20,40 9 1 jan-FEB,Nov-dec ?"},
		{"0 0 22-2 * * ?", "0 0 22,23,0,1,2 * * ?", "0 0 0-2,22-23 1-31 * ?", "0 0 22-2/1 * * ?"},
		{"0 0 22-2/2 * * ?", "0 0 22,0,2 * * ?"},
		{"0 0 0 * * ?", "@daily", "@midnight", " @DAILY "},
		{"0 0 0 1 1 ?", "@yearly", "@annually"},
		{"0 0 0 1 * ?", "@monthly"},
		{"0 0 0 ? * SUN", "@weekly"},
		{"0 0 * * * ?", "@hourly", "@every 1h", "@every 60m"},
	} {
		var want []string
		for i, text := range texts {
			got := following(parse(t, text), vector{from: from, location: time.UTC}, 50)
			if i == 0 {
				want = got
			}
			same(t, text+" as "+texts[0], got, want)
		}
	}
}

func TestString_IsTheTextInOneForm(t *testing.T) {
	for text, want := range map[string]string{
		" 0\t0 9 ? jan mon-fri \n": "0 0 9 ? JAN MON-FRI",
		"@Daily":                   "@daily",
		"@EVERY  1H30M":            "@every 1h30m",
		"0 0 9 lw * ? 2027":        "0 0 9 LW * ? 2027",
	} {
		e := parse(t, text)
		if e.String() != want || parse(t, e.String()) != e {
			t.Errorf("%q: %q, want %q, and the same when read again", text, e, want)
		}
	}
}
