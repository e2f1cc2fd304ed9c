"""Which probes commands and runs use: the former ones with SONDE_PROBES=former, until these go."""

import os

if os.environ.get("SONDE_PROBES") == "former":
    from sonde.former import PROBES as PROBES
    from sonde.former import SUMMARIES as SUMMARIES
else:
    from sonde.probes import PROBES as PROBES
    from sonde.probes import SUMMARIES as SUMMARIES
