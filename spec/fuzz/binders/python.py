"""Reads texts from standard input, one hex line each, and prints all values of "to" in Python's parsers, as JSON."""
import json
import sys
import urllib.parse


def hexed(values):
    return [str(value).encode("utf-8", "surrogatepass").hex() for value in values]


for line in sys.stdin:
    kind, _, text = line.strip().partition(" ")
    text = bytes.fromhex(text)
    found = {}
    if kind == "json":
        try:
            value = json.loads(text)
            value = value.get("to") if isinstance(value, dict) else None
        except (ValueError, RecursionError):
            value = None
        found["json"] = hexed([] if value is None else [value])
    else:
        text = text.decode("latin-1")
        for name, separator in (("urllib", "&"), ("urllib before 3.10", ";")):
            values = []
            try:
                for part in text.split("&") if separator == ";" else [text]:
                    pairs = urllib.parse.parse_qs(part, keep_blank_values=True, separator=separator)
                    values += pairs.get("to", [])
            except ValueError:
                pass
            found[name] = hexed(values)
    print(json.dumps(found), flush=True)
