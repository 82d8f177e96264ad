"""Proxy configurations with other filters than the all-in-one cluster's."""

import re


def with_filters(text, places, options=""):
    """The text of a ``proxy-server.conf`` with more filters in its pipeline.

    ``places`` is filter → the filter that it goes before. ``options`` are their sections, or ones that
    replace those of the text; a filter without one gets a section with its entry point alone.
    """
    for name, before in places.items():
        text = re.sub(rf"(?m)^(pipeline = .*?)(?= {re.escape(before)}\b)", rf"\1 {name}", text, count=1)
    for name in re.findall(r"(?m)^\[filter:(.*)\]$", options):
        text = re.sub(rf"\[filter:{re.escape(name)}\]\n([^\[\n].*\n)*", "", text)
    sections = options
    for name in places:
        if f"[filter:{name}]" not in text + sections:
            sections += f"\n[filter:{name}]\nuse = egg:swift#{name.replace('-', '_')}\n"
    return f"{text}\n{sections}"
