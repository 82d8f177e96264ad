"""COSBench's workloads (XML, user guide 2.8) as workload files of ``swift-load``.

What changes nothing that is measured here (names' prefixes, drivers, reporting intervals, storage and auth
addresses, which the command line gives) is left out, and a comment of the result says so. What cannot be
expressed is refused with the line of its element: other meaning under the same name would be worse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from lxml import etree

from swift.load.samples import BadSample, Sizes
from swift.load.workload import BadWorkload, parse_sizes

#: No workload is larger, bytes.
FILE_MAX = 1 << 20
_SELECTOR = re.compile(r"([a-z])\(([^()]*)\)\s*([a-zA-Z]*)\Z")
_UNITS = {"": "B", "B": "B", "KB": "KB", "MB": "MB", "GB": "GB", "KIB": "KiB", "MIB": "MiB", "GIB": "GiB"}
_OPERATIONS = {"read": "get", "write": "put", "delete": "delete", "list": "list"}
_STAGE_KINDS = ("init", "prepare", "cleanup", "dispose", "delay")
#: Attributes of works that change nothing here, unless they are about something that is not there.
_IGNORED_SETTINGS = frozenset(("name", "type", "interval", "division", "afr", "driver", "config", "workers"))
_KNOWN_SETTINGS = _IGNORED_SETTINGS | {"runtime", "rampup", "rampdown", "totalOps", "totalBytes"}
_IGNORED_CONFIG = frozenset(
    ("cprefix", "csuffix", "oprefix", "osuffix", "createContainer", "deleteContainer", "content", "chunked")
)


@dataclass(frozen=True)
class Range:
    """Range of numbers and the way to choose one: c, u, r or s."""

    selection: str
    first: int
    last: int

    @property
    def count(self) -> int:
        """Number of elements."""
        return self.last - self.first + 1

    def covers(self, other: Range) -> bool:
        """Return True if all numbers of the other are here too."""
        return self.first <= other.first and other.last <= self.last

    def overlaps(self, other: Range) -> bool:
        """Return True if any number is in both."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Config:
    """A config string, read."""

    containers: Range | None
    objects: Range | None
    #: As a workload file writes it; empty: not said.
    sizes: str
    verify: bool


@dataclass
class _ConvertedWorkload:
    """The workload so far."""

    containers: Range | None = None
    objects: Range | None = None
    sizes: str = ""
    phases: list[str] = field(default_factory=list)
    has_cleanup: bool = False


def load(path: Path) -> str:
    """Return the workload of a file, as TOML; raises ``BadWorkload``."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadWorkload(f"{path}: cannot be read: {error}")
    return convert_workload(data, str(path))


def convert_workload(data: bytes, source: str) -> str:
    """Return the workload of XML, as TOML; raises ``BadWorkload``."""
    if len(data) > FILE_MAX:
        raise BadWorkload(f"{source}: more than {FILE_MAX} bytes are no workload")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise BadWorkload(f"{source}:{error.lineno or 1}: {error.msg}")
    if root.getroottree().docinfo.doctype:
        raise BadWorkload(f"{source}:1: a workload has no document type")
    return _Converter(source).convert(root)


class _Converter:
    """Reads one file."""

    def __init__(self, source: str):
        self._source = source
        self._converted = _ConvertedWorkload()

    def _fail(self, element: etree._Element, reason: str) -> BadWorkload:
        return BadWorkload(f"{self._source}:{element.sourceline}: <{element.tag}>: {reason}")

    def convert(self, root: etree._Element) -> str:
        if root.tag != "workload":
            raise self._fail(root, "a file of COSBench begins with <workload>")
        workflow = root.find("workflow")
        if workflow is None:
            raise self._fail(root, "there is no <workflow>")
        for stage in workflow:
            if stage.tag == "workstage":
                self._stage(stage)
            elif stage.tag not in ("auth", "storage"):
                raise self._fail(stage, "not known in a workflow")
        if not self._converted.phases:
            raise self._fail(workflow, "there is no <workstage> with work")
        return self._toml(root)

    def _toml(self, root: etree._Element) -> str:
        made = self._converted
        containers, objects = made.containers, made.objects or Range("r", 1, 1)
        assert containers is not None, "each phase says or needs containers"
        lines = [
            f"# From COSBench's {Path(self._source).name}. Not kept, because they change nothing that is",
            "# measured or are given elsewhere: storage and auth, drivers, prefixes of names, intervals,",
            "# divisions, accepted failures, closure delays.",
            f"name = {_quoted(root.get('name') or Path(self._source).stem)}",
            f"description = {_quoted(root.get('description') or '')}",
            "",
            "[objects]",
            f"containers = {containers.count}",
            f"per_container = {objects.count}",
        ]
        lines += [f"size = {made.sizes}"] if made.sizes else []
        cleanup = ['[[phase]]\nkind = "cleanup"'] if made.has_cleanup else []
        return "\n".join(lines) + "\n\n" + "\n\n".join([*made.phases, *cleanup]) + "\n"

    def _stage(self, stage: etree._Element) -> None:
        works = [child for child in stage if child.tag == "work"]
        for child in stage:
            if child.tag not in ("work", "auth", "storage"):
                raise self._fail(child, "not known in a workstage")
        if not works:
            raise self._fail(stage, "there is no <work>")
        first = works[0]
        for other in works[1:]:
            if self._shared_operations(first) != self._shared_operations(other):
                raise self._fail(
                    other, "works of one stage that differ would run at the same time; give each its stage"
                )
        self._work(first, stage, clients=sum(self._number(work, "workers", 1) for work in works), works=works)

    @staticmethod
    def _shared_operations(work: etree._Element) -> list[tuple[str, ...]]:
        """Return the operations that several works share and that all workers can do as one."""
        own = ("type", "runtime", "rampup", "rampdown", "config")
        inner = ("type", "ratio", "config")
        return [tuple(work.get(name, "") for name in own)] + [
            tuple(operation.get(name, "") for name in inner) for operation in work.iter("operation")
        ]

    def _work(
        self, work: etree._Element, stage: etree._Element, *, clients: int, works: list[etree._Element]
    ) -> None:
        for name in work.attrib:
            if name not in _KNOWN_SETTINGS:
                raise self._fail(work, f"attribute {name} is not known")
        for name in ("rampdown", "totalBytes"):
            if self._number(work, name, 0):
                raise self._fail(work, f"{name} cannot be expressed; phases end after seconds or operations")
        kind = work.get("type") or "normal"
        if kind == "delay":
            raise self._fail(work, "a delay cannot be expressed")
        if kind in ("init", "prepare"):
            self._convert_preparation(work, kind, clients)
        elif kind in ("cleanup", "dispose"):
            # One phase empties and removes all containers, whatever the workload made.
            self._converted.has_cleanup = True
        elif kind == "normal" or kind in _OPERATIONS:
            operations = sum(self._number(one, "totalOps", 0) for one in works)
            self._convert_main_work(work, stage, clients, operations)
        else:
            raise self._fail(work, f"type {kind} is not known")

    def _convert_preparation(self, work: etree._Element, kind: str, clients: int) -> None:
        """Convert an init or prepare work."""
        made, config = self._converted, self._config(work)
        if config.containers is None:
            raise self._fail(work, f"{kind} needs containers")
        if kind == "init":
            if made.containers is not None:
                raise self._fail(work, "containers are made by one init")
            made.containers = config.containers
        else:
            if made.containers is None or not _is_same(made.containers, config.containers):
                raise self._fail(work, "prepare fills the containers that init makes, all of them")
            if made.objects is not None:
                raise self._fail(work, "objects are prepared by one prepare")
            if config.objects is None or not config.sizes:
                raise self._fail(work, "prepare needs objects and sizes")
            made.objects, made.sizes = config.objects, config.sizes
        made.phases.append(f'[[phase]]\nkind = "{kind}"\nclients = {clients}')

    def _convert_main_work(
        self, work: etree._Element, stage: etree._Element, clients: int, operations: int
    ) -> None:
        made = self._converted
        if made.containers is None:
            raise self._fail(work, "nothing has made containers; an init stage does")
        seconds = self._number(work, "runtime", 0)
        if not seconds and not operations:
            raise self._fail(work, "it ends after runtime or totalOps")
        name = work.get("name") or stage.get("name") or "main"
        lines = ["[[phase]]", 'kind = "main"', f"name = {_quoted(name)}", f"clients = {clients}"]
        lines += [f"seconds = {seconds}"] if seconds else []
        lines += [f"operations = {operations}"] if operations else []
        rampup = self._number(work, "rampup", 0)
        lines += [f"rampup = {rampup}"] if rampup else []
        self._converted.phases.append("\n".join(lines + self._convert_mix(work)))

    def _convert_mix(self, work: etree._Element) -> list[str]:
        """Return mix, names and sizes of a main work."""
        found: dict[str, tuple[float, Config, etree._Element]] = {}
        inherited = self._config(work)
        for operation in work.iter("operation"):
            kind = _OPERATIONS.get(operation.get("type") or "")
            if kind is None:
                raise self._fail(operation, f"operation {operation.get('type')!r} cannot be expressed")
            if kind in found:
                raise self._fail(operation, "an operation twice in one work cannot be expressed")
            own = self._config(operation)
            config = replace(
                own,
                containers=own.containers or inherited.containers,
                objects=own.objects or inherited.objects,
                sizes=own.sizes or inherited.sizes,
            )
            found[kind] = (float(self._number(operation, "ratio", 100)), config, operation)
            self._check_containers(config, operation)
        if not found:
            raise self._fail(work, "there is no <operation>")
        mix = ", ".join(f"{kind} = {ratio:g}" for kind, (ratio, _config, _element) in found.items())
        lines = [f"mix = {{{mix}}}", *self._reads(found), *self._writes(found)]
        if any(config.verify for _ratio, config, _element in found.values()):
            lines.append("verify = true")
        return lines

    def _check_containers(self, config: Config, element: etree._Element) -> None:
        made = self._converted.containers
        if config.containers is not None and made is not None and not _is_same(made, config.containers):
            raise self._fail(element, "operations use the containers that init makes, all of them")

    def _reads(self, found: dict[str, tuple[float, Config, etree._Element]]) -> list[str]:
        if "get" not in found:
            return []
        _ratio, config, element = found["get"]
        prepared, read = self._converted.objects, config.objects
        if prepared is None:
            raise self._fail(element, "it reads, and nothing was prepared")
        if read is None:
            raise self._fail(element, "a read needs objects")
        if not prepared.covers(read):
            raise self._fail(element, "it reads objects that were not prepared")
        if read.first != prepared.first:
            raise self._fail(element, "a part of the objects begins with the first that were prepared")
        part = read.count / prepared.count
        return [f"working_set = {part!r}"] if part < 1 else []

    def _writes(self, found: dict[str, tuple[float, Config, etree._Element]]) -> list[str]:
        """Return the naming scheme and the sizes of the written objects."""
        prepared = self._converted.objects
        lines: list[str] = []
        how = "uniform"
        if "get" in found and (read := found["get"][1].objects) is not None:
            how = "sequential" if read.selection in "rs" else "uniform"
        if "put" in found:
            _ratio, config, element = found["put"]
            if config.objects is None or not config.sizes:
                raise self._fail(element, "a write needs objects and sizes")
            if prepared is None or not prepared.overlaps(config.objects):
                if how == "sequential":
                    raise self._fail(element, "new objects beside reads in sequence cannot be expressed")
                how = "fresh"
            elif not _is_same(prepared, config.objects):
                raise self._fail(
                    element, "it writes either what was prepared, all of it, or only other objects"
                )
            elif "get" not in found and config.objects.selection in "rs":
                how = "sequential"
            lines.append(f"size = {config.sizes}")
        self._check_deletes(found)
        return [f'names = "{how}"', *lines]

    def _check_deletes(self, found: dict[str, tuple[float, Config, etree._Element]]) -> None:
        if "delete" not in found:
            return
        _ratio, config, element = found["delete"]
        prepared = self._converted.objects
        if config.objects is not None and prepared is not None and prepared.overlaps(config.objects):
            raise self._fail(
                element, "only objects that the phase wrote itself are deleted, no prepared ones"
            )
        if "put" not in found:
            raise self._fail(element, "it deletes, and nothing is written beside")

    def _number(self, element: etree._Element, name: str, default: int) -> int:
        text = element.get(name)
        if text is None or text == "":
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 12:
            raise self._fail(element, f"{name} must be a whole number, not {text!r}")
        return int(text)

    def _config(self, element: etree._Element) -> Config:
        containers = objects = None
        sizes, verify = "", False
        for part in filter(None, map(str.strip, (element.get("config") or "").split(";"))):
            name, _, value = (word.strip() for word in part.partition("="))
            if name == "containers":
                containers = self._range(element, name, value)
            elif name == "objects":
                objects = self._range(element, name, value)
            elif name == "sizes":
                sizes = self._sizes(element, value)
            elif name == "hashCheck":
                verify = value.lower() == "true"
            elif name not in _IGNORED_CONFIG:
                raise self._fail(element, f"{name} in config cannot be expressed")
        return Config(containers, objects, sizes, verify)

    def _range(self, element: etree._Element, name: str, value: str) -> Range:
        match = _SELECTOR.match(value)
        numbers = match[2].split(",") if match else []
        if match is None or match[3] or not all(_is_number(number) for number in numbers):
            raise self._fail(element, f"{name} is written like r(1,32) or c(1), not {value!r}")
        ends = [int(number) for number in numbers]
        if match[1] == "c" and len(ends) == 1:
            return Range("c", ends[0], ends[0])
        if match[1] in "urs" and len(ends) == 2 and ends[0] <= ends[1]:
            return Range(match[1], ends[0], ends[1])
        raise self._fail(element, f"{name} {value!r} cannot be expressed")

    def _sizes(self, element: etree._Element, value: str) -> str:
        """Return sizes as a workload file has them."""
        match = _SELECTOR.match(value)
        unit = _UNITS.get(match[3].upper()) if match else None
        if match is None or unit is None:
            raise self._fail(element, f"sizes are written like c(64)KB, not {value!r}")
        how, inner = match[1], match[2]
        try:
            if how == "h":
                bins = (_numbers(one, "|", 3) for one in inner.split(","))
                parts = (f'{{min = "{a}{unit}", max = "{b}{unit}", weight = {w}}}' for a, b, w in bins)
                text = f"[{', '.join(parts)}]"
            elif how == "c":
                text = f'"{_numbers(inner, ",", 1)[0]}{unit}"'
            elif how in ("u", "r", "s"):
                # In sequence or by chance: all sizes of the range come about equally often.
                low, high = _numbers(inner, ",", 2)
                text = f'{{min = "{low}{unit}", max = "{high}{unit}"}}'
            else:
                raise ValueError(f"there is no {how}(...)")
            _parse_sizes(text)
        except (ValueError, BadSample) as error:
            raise self._fail(element, f"sizes {value!r}: {error}")
        return text


def _parse_sizes(text: str) -> Sizes:
    import tomllib

    return parse_sizes(tomllib.loads(f"size = {text}")["size"])


def _is_same(one: Range, other: Range) -> bool:
    return (one.first, one.last) == (other.first, other.last)


def _is_number(text: str) -> bool:
    return text.strip().isascii() and text.strip().isdigit() and len(text.strip()) <= 12


def _numbers(text: str, between: str, count: int) -> list[int]:
    parts = text.split(between)
    if len(parts) != count or not all(_is_number(part) for part in parts):
        raise ValueError(f"{count} whole numbers belong in {text!r}")
    return [int(part) for part in parts]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else " " for one in escaped) + '"'
