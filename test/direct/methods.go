package direct

import _ "taxon/internal/methods/all" // the methods that are replayed
