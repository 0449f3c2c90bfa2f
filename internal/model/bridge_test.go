package model

// What tests from outside need of the format of fitted files.
var (
	EncodeFitted = encodeFitted
	ParseFitted  = parseFitted
)
