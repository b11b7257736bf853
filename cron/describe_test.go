package cron_test

import "testing"

func TestDescribe_SaysInEnglishWhatTheExpressionMeans(t *testing.T) {
	for text, want := range map[string]string{
		"0 0/15 8-17 ? * MON-FRI":   "every 15 minutes, between 08:00 and 17:59, Monday to Friday",
		"0/1 * 0 ? * * *":           "every second, between 00:00 and 00:59",
		"0 * * ? * * *":             "every minute",
		"*/20 * * * * ?":            "every 20 seconds",
		"7/20 * * * * ?":            "every 20 seconds from second 7",
		"5,10 * * * * ?":            "every minute, at seconds 5 and 10",
		"0/5 3-39,52 * ? * MON-FRI": "every 5 seconds, in minutes 3 to 39 and 52, Monday to Friday",
		"0 7/20 * * * ?":            "every 20 minutes from minute 7",
		"0 0/7 9,11-12 1,15 * ?": "every hour at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56, between 09:00 and 09:59 and " +
			"between 11:00 and 12:59, on days 1 and 15 of the month",
		"0 0/5 */2 * * ?":       "every 5 minutes, in hours 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and 22",
		"0 0/10 22-2 * * ?":     "every 10 minutes, between 22:00 and 02:59",
		"0 0 * * * ?":           "every hour",
		"15 30 * * * ?":         "every hour at minute 30, at second 15",
		"0 0 8-17 * * ?":        "every hour, between 08:00 and 17:59",
		"0 30 1/2 * * ?":        "every 2 hours from 01:30",
		"0 0 0/6 * * ?":         "at 00:00, 06:00, 12:00 and 18:00, every day",
		"30 0 12 * * ?":         "at 12:00:30, every day",
		"0 10,44 14 ? 3 WED":    "at 14:10 and 14:44, Wednesday, in March",
		"0 0 9 ? * SAT,SUN":     "at 09:00, Saturday and Sunday",
		"0 0 9 ? * FRI-MON":     "at 09:00, Friday to Monday",
		"0 0 9 ? * MON,WED,FRI": "at 09:00, Monday, Wednesday and Friday",
		"0 0 9 ? * L":           "at 09:00, Saturday",
		"0 0 9 ? * *":           "at 09:00, every day",
		"0 0 9 1/5 * ?":         "at 09:00, on days 1, 6, 11, 16, 21, 26 and 31 of the month",
		"0 0 9 L * ?":           "at 09:00, on the last day of the month",
		"0 0 9 L-2 * ?":         "at 09:00, on day 2 before the last day of the month",
		"0 0 9 LW * ?":          "at 09:00, on the day from Monday to Friday nearest to the last day of the month",
		"0 0 9 L-3W * ?": "at 09:00, on the day from Monday to Friday nearest to " +
			"day 3 before the last day of the month",
		"0 0 9 15W * ?":           "at 09:00, on the day from Monday to Friday nearest to day 15 of the month",
		"0 0 9 ? * FRI#3":         "at 09:00, on the third Friday of the month",
		"0 0 9 ? * SUNL":          "at 09:00, on the last Sunday of the month",
		"0 0 9 1 NOV-FEB ? 2027":  "at 09:00, on day 1 of the month, in November to February, in 2027",
		"0 0 9 * 1 ? 2027/2":      "at 09:00, every day, in January, in 2027, 2029, 2031 ... 2199",
		"0 0 9 * 1 ? 2027-2051/2": "at 09:00, every day, in January, in 2027, 2029, 2031 ... 2051",
		"@every 90s":              "every 90 seconds, counted from midnight of 1970-01-01 UTC",
		"@every 1h":               "every hour, counted from midnight of 1970-01-01 UTC",
		"@every 2m":               "every 2 minutes, counted from midnight of 1970-01-01 UTC",
		"@weekly":                 "at 00:00, Sunday",
	} {
		if got := parse(t, text).Describe(); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}
