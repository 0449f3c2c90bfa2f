package model

// What tests from outside need of the format of fitted files.
var (
	EncodeFitted = encodeFitted
	ParseFitted  = parseFitted
)

// WriterTo is writerTo, for tests of a model on a disk that fails.
var WriterTo = writerTo
