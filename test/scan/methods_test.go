package scan

import _ "taxon/internal/methods/all" // what the tests train by
