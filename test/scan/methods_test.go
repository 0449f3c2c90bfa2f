package scan

import _ "taxon/internal/methods/all" // the methods by which the tests train
