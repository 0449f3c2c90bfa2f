package direct

import _ "taxon/internal/methods/all" // what is replayed
