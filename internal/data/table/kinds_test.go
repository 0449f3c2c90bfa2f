package table

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"taxon/internal/fs"
)

// kindTest is a column of testdata/kinds.py, with its four rows separated by |.
type kindTest struct {
	column string
	files  int // number of files that have the column

	// texts holds the expected values as label, list of labels, path, text, id and weight, with &
	// between the entries of a list, or refused for an error.
	texts string

	// numbers holds the expected features. Empty stands for those that the texts parse to; refused
	// stands for an error.
	numbers string
}

const refusal = "refused"

// kindTests lists the expected value of each logical type, in every format that has the type.
var kindTests = []kindTest{
	{"int8", 12, "-128|7||127", ""},
	{"uint8", 12, "255|7||128", ""},
	{"int16", 12, "-32768|7||32767", ""},
	{"uint16", 12, "65535|7||32768", ""},
	{"int32", 12, "-2147483648|7||2147483647", ""},
	{"uint32", 12, "4294967295|7||2147483648", ""},
	{"int64", 12, "-9223372036854775808|7||9223372036854775807", ""},
	{"uint64", 12, "18446744073709551615|7||9223372036854775808", ""},
	{"bool", 12, "true|false||true", "1:1|1:0||1:1"},
	{"half", 6, "0.5|2.0||-1.25", ""},
	{"float", 8, "0.1|2.0||", ""},
	{"double", 11, "0.1|1e-7||2e+20", ""},
	{"infinite", 6, "inf|-inf||3.0", refusal},
	{"decimal", 10, "1.10|-0.05||3.00", ""},
	{"decimal32", 2, "1.10|-0.05||3.00", ""},
	{"decimal64", 10, "123456789012345.678|-1.500||0.000", ""},
	{"decimal128", 9, "1234567890123456789012345678.0123456789|-0.0000000001||7.0000000000", ""},
	{"decimal256", 4, "1" + strings.Repeat("0", 40) + ".00001|-2.00000||7.00000", refusal}, // beyond float32
	{"date32", 10, "2020-01-01|1969-12-31||0001-01-01", refusal},
	{"date64", 4, "2020-01-01|1969-12-31||0001-01-01", refusal},
	{"time_s", 9, "12:30:00|00:00:00||23:59:59", refusal},
	{"time_ms", 9, "12:30:00.500|00:00:00||23:59:59", refusal},
	{"time_us", 9, "12:30:00.500|00:00:00||00:00:00.000001", refusal},
	{"time_ns", 9, "12:30:00.500|00:00:00||00:00:00.000001", refusal},
	{"timestamp_s", 9, "2020-01-01T00:00:00|1955-11-05T06:15:00||2020-01-01T12:30:00", refusal},
	{"timestamp_ms", 10, "2020-01-01T00:00:00|1955-11-05T06:15:00||2020-01-01T12:30:00.500", refusal},
	{"timestamp_us", 10, "2020-01-01T00:00:00|1955-11-05T06:15:00||2020-01-01T12:30:00.500", refusal},
	{"timestamp_ns", 10, "2020-01-01T00:00:00|1955-11-05T06:15:00||2020-01-01T12:30:00.500", refusal},
	{"instant", 9, "2020-01-01T00:00:00Z|1955-11-05T06:15:00Z||2020-01-01T12:30:00.500Z", refusal},
	{"berlin", 9, "2020-01-01T00:00:00Z|1955-11-05T06:15:00Z||2020-01-01T12:30:00.500Z", refusal},
	{"duration", 5, refusal, refusal},
	{"months", 2, refusal, refusal},
	{"string", 11, "cat|7.5||é > ü", refusal},
	{"large_string", 9, "cat|7.5||é > ü", refusal},
	{"string_view", 9, "cat|7.5||é > ü and more than is stored inline", refusal},
	{"binary", 6, "cat|7.5||é > ü", refusal},
	{"large_binary", 6, "cat|7.5||é > ü", refusal},
	{"binary_view", 6, "cat|7.5||é > ü and more than is stored inline", refusal},
	{"fixed_binary", 7, "cat|7.5||dog", refusal},
	{"not_text", 6, refusal, refusal},
	{"null", 10, "|||", "|||"},
	{"dictionary", 9, "cat|dog||cat", refusal},
	{"dictionary_dates", 4, "2020-01-01|2020-01-01||1969-12-31", refusal},
	{"runs", 1, "cat|dog||cat", refusal},
	{"uuid", 4, "00000000-0000-0000-0000-000000000001|80000000-0000-0000-0000-000000000000||00000000-0000-0000-0000-000000000003", refusal},
	{"json", 4, `"cat"|7.5||{}`, refusal},
	{"strings", 7, "cat&dog|||cat", refusal},
	{"large_strings", 7, "cat&dog|||cat", refusal},
	{"list_view", 2, "cat&dog|||cat", refusal},
	{"binaries", 6, "cat&dog|||cat", refusal},
	{"floats", 7, "0.5&2.0|1.0||4.0", "1:0.5 2:2|1:1||2:4"},
	{"uints", 7, "3000000000&2|1||4294967295&4", "1:3e+09 2:2|1:1||1:4.294967295e+09 2:4"},
	{"uint64s", 7, "9223372036854775808&2|1||18446744073709551615&4", "1:9.223372036854776e+18 " +
		"2:2|1:1||1:1.8446744073709552e+19 2:4"},
	{"decimals", 7, "1.10&2.00|-0.05||1.00&4.00", "1:1.1 2:2|1:-0.05||1:1 2:4"},
	{"bools", 7, "true&false|true||false&false", "1:1 2:0|1:1||1:0 2:0"},
	{"dates", 7, "2020-01-01&2020-01-01|||2020-01-01", refusal},
	{"timestamps", 7, "2020-01-01T00:00:00&2020-01-01T12:30:00.500|||1955-11-05T06:15:00", refusal},
	{"durations", 5, refusal, refusal},
	{"lists", 7, refusal, refusal},
	{"struct", 7, refusal, refusal},
	{"struct_of_one", 7, refusal, refusal},
	{"structs", 7, refusal, refusal},
	{"map", 4, refusal, refusal},
	{"union", 2, refusal, refusal},
}

// readKind reads a column in a role. It returns the rows in the form of kindTest, or refusal.
func readKind(t *testing.T, path string, o Options, role string) string {
	t.Helper()
	r, err := Open(t.Context(), fs.Local{}, path, o, Use{Labels: o.Label+o.Labels != "", Weights: o.Weight != "",
		Features: true})
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var rows []string
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return strings.Join(rows, "|")
		}
		if in := (*fs.InputError)(nil); errors.As(err, &in) && in.Line > 0 {
			return refusal
		}
		if err != nil {
			return err.Error()
		}
		var out []string
		switch role {
		case "label":
			for _, l := range row.Labels {
				out = append(out, string(l))
			}
		case "text":
			out = append(out, string(row.Text))
		case "id":
			out = append(out, row.ID)
		case "weight":
			out = append(out, row.Weight)
		case "number":
			for i, x := range row.Index {
				out = append(out, fmt.Sprintf("%d:%g", x, row.Value[i]))
			}
			rows = append(rows, strings.Join(out, " "))
			continue
		}
		rows = append(rows, strings.Join(out, "&"))
	}
}

// numbersOf returns the features to which texts parse.
func numbersOf(texts string) string {
	rows := strings.Split(texts, "|")
	for i, s := range rows {
		if x, err := strconv.ParseFloat(s, 64); err == nil {
			rows[i] = fmt.Sprintf("1:%g", x)
		}
	}
	return strings.Join(rows, "|")
}

// tables returns the folder that testdata/kinds.py has written.
func tables() string { return cmp.Or(os.Getenv("TAXON_TEST_TABLES"), "testdata") }

// TestKinds checks that a value is read alike, or is refused, in every format and role. pyarrow,
// polars and NumPy wrote the files; `make test-formats` writes them again and tests those too.
func TestKinds(t *testing.T) {
	dir := filepath.Join(tables(), "kinds")
	files, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	has := map[string][]string{} // columns by file
	for _, file := range files {
		if strings.HasSuffix(file, ".npy") {
			continue
		}
		r, err := Open(t.Context(), fs.Local{}, file, Options{Columns: Columns{Text: []string{"row"}}}, Use{Features: true})
		if err != nil {
			t.Fatal(err)
		}
		if has[file] = r.in.columns(); has[file] == nil {
			if _, err := r.Read(); err != nil {
				t.Fatal(err)
			}
			has[file] = r.in.(*jsonRecords).keys()
		}
		r.Close()
	}
	for _, k := range kindTests {
		seen := 0
		check := func(file, role string, o Options, want string) {
			t.Helper()
			got := readKind(t, file, o, role)
			if role == "number" && (k.column == "float" || strings.HasSuffix(file, ".matrix.npy")) { // held in float32
				got, want = inFloat32(got), inFloat32(want)
			}
			if got != want {
				t.Errorf("%s, column %s as %s: %q, want %q", filepath.Base(file), k.column, role, got, want)
			}
		}
		numbers := cmp.Or(k.numbers, numbersOf(k.texts))
		for file, columns := range has {
			if !slices.Contains(columns, k.column) {
				continue
			}
			seen++
			row := []string{"row"}
			check(file, "label", Options{Columns: Columns{Text: row, Label: k.column}}, k.texts)
			check(file, "label", Options{Columns: Columns{Text: row, Label: k.column, PathSeparator: " > "}}, k.texts)
			check(file, "text", Options{Columns: Columns{Text: []string{k.column}, Label: "row"}}, strings.ReplaceAll(k.texts,
				"&", " "))
			check(file, "number", Options{Columns: Columns{Features: []string{k.column}, Label: "row"}}, numbers)
			one := k.texts
			if strings.Contains(one, "&") { // a list
				one = refusal
			}
			check(file, "id", Options{Columns: Columns{Text: row, ID: k.column}}, one)
			check(file, "weight", Options{Columns: Columns{Text: row, Weight: k.column}}, one)
		}

		// skipNull returns the three rows that arrays have: those that are not null.
		skipNull := func(rows string) string {
			if all := strings.Split(rows, "|"); len(all) == 4 {
				return strings.Join(slices.Delete(all, 2, 3), "|")
			}
			return rows
		}
		if file := filepath.Join(dir, k.column+".npy"); slices.Contains(files, file) {
			seen++
			check(filepath.Join(dir, "int8.matrix.npy"), "label", Options{Labels: file}, skipNull(k.texts))
		}
		if file := filepath.Join(dir, k.column+".matrix.npy"); slices.Contains(files, file) {
			seen++
			// zeros are left out
			check(file, "number", Options{Labels: filepath.Join(dir, "int8.npy")}, zeroless(skipNull(numbers)))
		}
		if seen != k.files {
			t.Errorf("column %s is in %d files, want %d", k.column, seen, k.files)
		}
	}
}

// inFloat32 rounds the numbers of rows to float32.
func inFloat32(rows string) string {
	all := strings.Split(rows, "|")
	for i, row := range all {
		cells := strings.Fields(row)
		for j, cell := range cells {
			if feature, number, ok := strings.Cut(cell, ":"); ok {
				x, err := strconv.ParseFloat(number, 64)
				if err != nil {
					panic(err)
				}
				cells[j] = fmt.Sprintf("%s:%g", feature, float32(x))
			}
		}
		all[i] = strings.Join(cells, " ")
	}
	return strings.Join(all, "|")
}

// zeroless removes the features of a matrix that are 0.
func zeroless(rows string) string {
	all := strings.Split(rows, "|")
	for i, row := range all {
		if row == "1:0" {
			all[i] = ""
		}
	}
	return strings.Join(all, "|")
}
