// Package formats checks exports with the programs they are written for: SciPy,
// scikit-learn, safetensors, pyarrow and LIBLINEAR. `make test-formats` builds the Python
// environment and runs it; without one the readers' part is skipped.
package formats
