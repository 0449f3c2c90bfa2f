package badinput

import (
	"bytes"
	"strings"
	"testing"
)

func TestModels(t *testing.T) {
	const predict = "predict --model model --data good.svm --out p.txt"
	trials := []trial{
		{name: "no model", args: "predict --model no --data good.svm", at: "no: "},
		{name: "a file for a model", args: "predict --model good.svm --data good.svm", at: "good.svm: "},
		{name: "a data set for a model", args: "predict --model set --data good.svm", at: "set", says: "model"},
		{name: "an empty folder for a model", prep: mkdir("empty"), args: "predict --model empty --data good.svm",
			at: "empty", says: "model"},
		{name: "vectors for a text model", args: "predict --model textmodel --data good.svm",
			at: "textmodel was trained on text"},
		{name: "text for a vector model", args: "predict --model model --data good.txt --text",
			at: "model was trained on feature vectors"},
		{name: "a text model's data without --text", args: "predict --model textmodel --data good.txt",
			at: "textmodel was trained on text"},
		{name: "ingested text for another model", args: "predict --model model --data textset", at: "textset: "},
		{name: "eval with vectors for text", args: "eval --model textmodel --data good.svm",
			at: "textmodel was trained on text"},
		{name: "predictions too few", prep: edit("pred.txt", func(b []byte) []byte { return b[:len(b)-2] }),
			args: "eval --pred pred.txt --data good.svm", at: "pred.txt"},
		{name: "predictions too many", prep: edit("pred.txt", func(b []byte) []byte { return append(b, "a\n"...) }),
			args: "eval --pred pred.txt --data good.svm", at: "pred.txt:41: "},
		{name: "missing predictions", args: "eval --pred no.txt --data good.svm", at: "no.txt: no such file"},
		{name: "compare with nothing", args: "eval --model model --compare no --data good.svm", at: "no: no such file"},
		{name: "out holds a model of other data", args: "train --data good.txt --text --out model",
			at: "model: holds a model of other data"},
		{name: "out holds a model of another hierarchy", args: "train --data good.svm --out model",
			at: "model: holds a model of another hierarchy"},
		{name: "out holds a model of other options", args: "train --data good.svm --hierarchy tree.txt --out model --C 2",
			at: "model: holds a model trained with other options (C 1, not 2)"},
		{name: "out holds a damaged model", prep: flip("model/weights-00000.bin"), args: "train --data good.svm " +
			"--hierarchy tree.txt --out model", at: "model/weights-00000.bin: ", says: "--force"},
		{name: "format of the future", prep: edit("model/manifest.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"format"`), []byte(`"tamrof"`), 1)
		}), args: predict, at: "model/manifest.json: "},
	}
	for _, file := range []string{"manifest.json", "structure", "labels", "features", "weights-00000.bin", "trace.jsonl"} {
		for how, breaks := range map[string]func(string) func(*testing.T, string){"cut": half, "flipped": flip,
			"lost": lose} {
			at := "model/" + file + ": "
			if file == "manifest.json" && how == "lost" {
				at = "model"
			}
			verb := []string{predict, "eval --model model --data good.svm", "export --model model --out w.txt",
				"info model"}[len(trials)%4]
			trials = append(trials, trial{name: file + " " + how + " for " + strings.Fields(verb)[0], prep: breaks("model/" +
				file), args: verb, at: at})
		}
	}
	for _, how := range []func(string) func(*testing.T, string){half, flip, lose} {
		trials = append(trials, trial{name: "vocabulary", prep: how("textmodel/vocabulary"),
			args: "predict --model textmodel --text --data good.txt", at: "textmodel/vocabulary: "})
	}
	runAll(t, trials)
}
