package jinja

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxAmount is how many of a unit a date is moved by at most.
const maxAmount = 1_000_000_000

var errDate = errors.New("a date is outside the years 1 to 9999")

func inRange(t time.Time) (Value, error) {
	if t.Year() < 1 || t.Year() > 9999 {
		return nil, errDate
	}
	return Time{t}, nil
}

func (t Time) plus(d Delta) (Value, error) { return inRange(t.Add(time.Duration(d))) }

// moved adds years, months, weeks, days, hours, minutes and seconds; a day that the month does not have becomes its last.
func (t Time) moved(n [7]int64) (Value, error) {
	if abs(n[0]) > 20_000 || abs(n[1]) > 240_000 {
		return nil, errDate
	}
	months := int(t.Month()) - 1 + int(n[1])
	year, month := t.Year()+int(n[0])+months/12, months%12
	if month < 0 {
		year, month = year-1, month+12
	}
	last := time.Date(year, time.Month(month+2), 0, 0, 0, 0, 0, time.UTC).Day()
	moved := time.Date(year, time.Month(month+1), min(t.Day(), last), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	moved = moved.AddDate(0, 0, int(7*n[2]+n[3]))
	seconds := 3600*n[4] + 60*n[5] + n[6]
	return inRange(moved.AddDate(0, 0, int(seconds/86400)).Add(time.Duration(seconds%86400) * time.Second))
}

func abs(n int64) int64 { return max(n, -n) }

// Text is the moment as Airflow's ts.
func (t Time) Text() string { return t.isoformat() }

// Compact is Airflow's ts_nodash_with_tz.
func (t Time) Compact() string { return strings.NewReplacer("-", "", ":", "").Replace(t.isoformat()) }

// isoformat is Python's, of a moment in UTC.
func (t Time) isoformat() string { return t.iso('T') }

func (t Time) str() string { return t.iso(' ') }

func (t Time) iso(separator byte) string {
	text := t.Format("2006-01-02") + string(separator) + t.Format("15:04:05")
	if micro := t.Nanosecond() / 1000; micro != 0 {
		text += fmt.Sprintf(".%06d", micro)
	}
	return text + "+00:00"
}

// part is an attribute of a date.
func (t Time) part(name string) (Value, bool) {
	n, ok := map[string]int64{
		"year": int64(t.Year()), "month": int64(t.Month()), "day": int64(t.Day()), "hour": int64(t.Hour()), "minute": int64(t.Minute()),
		"second": int64(t.Second()), "microsecond": int64(t.Nanosecond() / 1000), "int_timestamp": t.Unix(), "day_of_year": int64(t.YearDay()),
	}[name]
	return n, ok
}

// strftime is Python's, in the C locale.
func (t Time) strftime(format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		plain := i < len(format) && format[i] == '-' // glibc: no zeros in front
		if plain {
			i++
		}
		if i >= len(format) {
			return "", errors.New("the format ends with %")
		}
		text, ok := t.directive(format[i])
		if !ok || plain && !strings.ContainsRune("mdHIMSjyUWV", rune(format[i])) {
			return "", fmt.Errorf("%%%c in a format is not supported", format[i])
		}
		if plain {
			n, _ := strconv.Atoi(text) // it is digits
			text = strconv.Itoa(n)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func (t Time) directive(c byte) (string, bool) {
	two := func(n int) (string, bool) { return fmt.Sprintf("%02d", n), true }
	isoYear, isoWeek := t.ISOWeek()
	switch c {
	case 'Y':
		return t.Format("2006"), t.Year() >= 1000
	case 'm', 'd', 'H', 'M', 'S', 'y', 'I', 'p', 'a', 'A', 'b', 'B', 'F', 'T', 'D', 'R':
		return t.Format(map[byte]string{
			'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'I': "03", 'p': "PM", 'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January",
			'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04",
		}[c]), c != 'F' || t.Year() >= 1000
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay()), true
	case 'e':
		return fmt.Sprintf("%2d", t.Day()), true
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1), true
	case 'w':
		return strconv.Itoa(int(t.Weekday())), true
	case 'U':
		return two((t.YearDay() + 6 - int(t.Weekday())) / 7)
	case 'W':
		return two((t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7)
	case 'V':
		return two(isoWeek)
	case 'G':
		return strconv.Itoa(isoYear), isoYear >= 1000
	case 'Z':
		return "UTC", true
	case 'z':
		return "+0000", true
	case '%':
		return "%", true
	}
	return "", false
}

// parseDate is Python's strptime for dates without a zone.
func parseDate(text, format string) (Time, error) {
	layout := map[byte]string{'Y': "2006", 'm': "1", 'd': "2", 'H': "15", 'M': "4", 'S': "5", 'y': "06", 'b': "Jan", 'B': "January", '%': "%"}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' {
			if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' && c != 'T' || c >= 'a' && c <= 'z' || c == '_' { // time.Parse has its own words
				return Time{}, fmt.Errorf("the format %.40q is not supported", format)
			}
			b.WriteByte(c)
			continue
		}
		i++
		if i >= len(format) || layout[format[i]] == "" {
			return Time{}, fmt.Errorf("the format %.40q is not supported", format)
		}
		b.WriteString(layout[format[i]])
	}
	t, err := time.Parse(b.String(), text)
	if err != nil || t.Nanosecond() != 0 { // time.Parse takes fractions unasked
		return Time{}, fmt.Errorf("%.40q is no date of the format %.40q", text, format)
	}
	return Time{t}, nil
}

// str is Python's text of a timedelta.
func (d Delta) str() string {
	micros := time.Duration(d).Microseconds()
	days := int64(math.Floor(float64(micros) / 86_400e6))
	rest := micros - days*86_400_000_000
	text := fmt.Sprintf("%d:%02d:%02d", rest/3_600_000_000, rest/60_000_000%60, rest/1_000_000%60)
	if rest%1_000_000 != 0 {
		text += fmt.Sprintf(".%06d", rest%1_000_000)
	}
	switch days {
	case 0:
		return text
	case 1, -1:
		return fmt.Sprintf("%d day, %s", days, text)
	}
	return fmt.Sprintf("%d days, %s", days, text)
}

// Macros are those of Airflow's macros that give the same whenever they are called.
func Macros() *Object {
	const changing = "gives another value each time, or needs what only Airflow has; ds_add, ds_format and timedelta are supported"
	return &Object{Name: "macros", Why: changing, Attr: map[string]Value{
		"ds_add":    Func(dsAdd),
		"ds_format": Func(dsFormat),
		"timedelta": Func(timedelta),
	}}
}

func dsAdd(args Args) (Value, error) {
	given, err := args.Take(2, "ds", "days")
	if err != nil {
		return nil, err
	}
	ds, ok := given[0].(string)
	days, ok2 := given[1].(int64)
	if !ok || !ok2 || abs(days) > 4_000_000 {
		return nil, errors.New("takes a date as text and a number of days")
	}
	if days == 0 {
		return ds, nil
	}
	t, err := parseDate(ds, "%Y-%m-%d")
	if err != nil {
		return nil, err
	}
	moved, err := inRange(t.AddDate(0, 0, int(days)))
	if err != nil {
		return nil, err
	}
	return valueOf(moved.(Time).strftime("%Y-%m-%d"))
}

func dsFormat(args Args) (Value, error) {
	given, err := args.Take(3, "ds", "input_format", "output_format")
	if err != nil {
		return nil, err
	}
	var texts [3]string
	for i, v := range given {
		text, ok := v.(string)
		if !ok {
			return nil, errors.New("takes text")
		}
		texts[i] = text
	}
	t, err := parseDate(texts[0], texts[1])
	if err != nil {
		return nil, err
	}
	return valueOf(t.strftime(texts[2]))
}

func timedelta(args Args) (Value, error) {
	names := []string{"days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks"}
	units := []time.Duration{24 * time.Hour, time.Second, time.Microsecond, time.Millisecond, time.Minute, time.Hour, 7 * 24 * time.Hour}
	given, err := args.Take(0, names...)
	if err != nil {
		return nil, err
	}
	total := Delta(0)
	for i, v := range given {
		if v == nil {
			continue
		}
		n, ok := v.(int64)
		if !ok || abs(n) > int64(math.MaxInt64/8/int64(units[i])) {
			return nil, fmt.Errorf("takes whole %s, and not so many", names[i])
		}
		total += Delta(n * int64(units[i]))
	}
	return total, nil
}
