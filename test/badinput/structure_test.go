package badinput

import "testing"

func TestStructures(t *testing.T) {
	bad := func(name, text, at, says string) trial {
		return trial{name: name, files: map[string]string{"bad.txt": text},
			args: "train --data good.svm --hierarchy bad.txt --out m", at: at, says: says}
	}
	runAll(t, []trial{
		bad("self-loop", "r a\nb b\n", "bad.txt:2: self-loop: \"b\"", ""),
		bad("cycle of two", "r a\na r\n", "bad.txt:2: ", "r -> a -> r"),
		bad("cycle of three", "q x\nx y\ny z\nz x\n", "bad.txt:4: ", "x -> y -> z -> x"),
		bad("one name", "r a\nb\n", "bad.txt:2: 1 name ", ""),
		bad("three names", "r a b\n", "bad.txt:1: 3 names ", ""),
		bad("empty", "", "bad.txt: empty structure", ""),
		bad("comments only", "# r a\n", "bad.txt: empty structure", ""),
		bad("comma in a name", "r a,b\n", "bad.txt:1: comma in the name", ""),
		bad("NUL bytes", "r a\nr b\x00\n", "bad.txt:2: ", "NUL"),
		bad("UTF-16", wide("r a\nr b\n", true), "bad.txt:1: ", "UTF-16"),
		bad("CR line ends", "r a\rr b\r", "bad.txt:1: carriage return", "tr '\\r' '\\n'"),
		bad("quote that is not closed", "r a\nr \"b\n", "bad.txt:2: ", "JSON string"),
		bad("comment for a child", "r a\nr #b\n", "bad.txt:2: 1 name ", `"#b"`),
		bad("of other data", "r x\nr y\n", "bad.txt: no label of the data is in it: they are \"a\", \"b\"", "\"r\", \"x\""),
		{name: "graph of other data", files: map[string]string{"bad.txt": "r x\nr y\n"}, args: "train --data good.svm " +
			"--graph bad.txt --out m", at: "bad.txt: no label of the data is in it"},
		{name: "of other data, flat", files: map[string]string{"bad.txt": "r x\nr y\n"}, args: "train --method bsvm --data " +
			"good.svm --hierarchy bad.txt --out m", at: "bad.txt: no label of the data is in it"},
		{name: "of other data, tune", files: map[string]string{"bad.txt": "r x\nr y\n"}, args: "tune --data good.svm " +
			"--hierarchy bad.txt --out t", at: "bad.txt: no label of the data is in it"},
		{name: "of other data, eval", files: map[string]string{"bad.txt": "r x\nr y\n"}, args: "eval --pred pred.txt " +
			"--data good.svm --hierarchy bad.txt", at: "bad.txt: no label of the data is in it"},
		{name: "of other data, eval of a model", files: map[string]string{"bad.txt": "r x\nr y\n"},
			args: "eval --model model --data good.svm --hierarchy bad.txt", at: "bad.txt: no label of the data is in it"},
		{name: "of other data, info", files: map[string]string{"bad.txt": "r x\nr y\n"},
			args: "info good.svm --hierarchy bad.txt", at: "bad.txt: no label of the data is in it"},
		bad("not UTF-8", "r a\nr b\xff\n", "bad.txt:2: ", "UTF-8"),
		bad("binary junk", junk(4096), "bad.txt", ""),
		bad("cut gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x2a", "bad.txt: ", ""),
		{name: "instances for a structure", args: "train --data good.svm --hierarchy good.svm --out m",
			at: "good.svm:1: 3 names "},
		{name: "structure for instances", args: "train --data tree.txt --out m", at: "tree.txt:1: "},
		{name: "several parents", args: "train --data good.svm --hierarchy dag.txt --x dag=refuse --out m", at: "dag.txt",
			says: "--x dag=first-parent"},
		{name: "both from standard input", args: "train --data - --hierarchy - --out m", at: "train: ",
			says: "standard input"},
		{name: "cycle in eval", files: map[string]string{"bad.txt": "a b\nb a\n"}, args: "eval --pred pred.txt --data " +
			"good.svm --hierarchy bad.txt", at: "bad.txt:2: ", says: "a -> b -> a"},
		{name: "cycle in info", files: map[string]string{"bad.txt": "a b\nb a\n"}, args: "info bad.txt", at: "bad.txt:2: "},
	})
}
