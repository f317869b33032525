"""Configurations as YAML: dictionaries, lists, texts and numbers."""

import json
import math


def _scalar(value):
    if value is None:
        return "~"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else repr(value)
    if isinstance(value, int):
        return str(value)
    if hasattr(value, "item"):  # a number of numpy
        return _scalar(value.item())
    return json.dumps(str(value), ensure_ascii=False)


def flow(value):
    """One line: {a: 1, b: ["x", 2]}."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(v) for v in value) + "]"
    return _scalar(value)


def _key(key):
    text = str(key)
    plain = text.replace("_", "").replace("-", "").replace(".", "").isalnum() and text.isascii()
    return text if plain else json.dumps(text, ensure_ascii=False)


def dump(config):
    """Sections one after the other, the items of lists a line each."""
    lines = []
    for key, value in config.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines.append(f"{_key(key)}:")
            lines += [f"  - {flow(item)}" for item in value]
        elif isinstance(value, dict):
            lines.append(f"{_key(key)}:")
            lines += [f"  {_key(k)}: {flow(v)}" for k, v in value.items()]
        else:
            lines.append(f"{_key(key)}: {flow(value)}")
    return "\n".join(lines) + "\n"


def merge(under, over):
    """Lays one configuration over another, member by member; lists are replaced."""
    out = dict(under)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = merge(out[key], value) if both else value
    return out
