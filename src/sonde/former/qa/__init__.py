"""Questions, answered in writing with lists that are judged as sets."""
