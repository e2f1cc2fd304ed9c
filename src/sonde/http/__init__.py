"""Ask servers over HTTP, patiently and many things at once. Knows nothing of what is asked."""
