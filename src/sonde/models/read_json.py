"""Read a JSON file of a model's folder, whoever wrote it. Knows nothing of what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sonde.core.errors import ModelError


def read_json(path: Path, advice: str = "fetch or save the model again") -> dict[str, Any]:
    """The object that a file holds; `advice`: what to do where it holds none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
        reason = f"it holds a {type(found).__name__}"
    except RecursionError:
        reason = "it is nested too deeply"
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError as error:
        reason = str(error)
    raise ModelError(f"{path} cannot be read as a JSON object ({reason}); {advice}")
