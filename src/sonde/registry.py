"""Which probes commands and runs use: the former ones until the new ones are complete.

SONDE_PROBES=new uses the new ones. Goes with the former probes: then this is `sonde.probes`.
"""

import os

if os.environ.get("SONDE_PROBES") == "new":
    from sonde.probes import PROBES as PROBES
    from sonde.probes import SUMMARIES as SUMMARIES
else:
    from sonde.former import PROBES as PROBES
    from sonde.former import SUMMARIES as SUMMARIES
